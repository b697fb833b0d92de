"""Nsight Compute on one call of a kernel: collect, read the report, and say in words why there is none.

``ncu`` watches the judge's own small program (``team/judge/runner/standalone.cu``), which begins to be profiled when it
says so: the launches of one call and nothing else. Clocks are left as they are, values come in base units, and which
metrics are collected is pinned by name. A report that cannot be had is a ``NcuFailed`` with its kind: no numbers are
made up in its place.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from team.evidence.metrics import SECTIONS, Bundle, installed_names, requested
from team.evidence.reports import RawKernel, Unreadable, parse_raw_page, parse_reader

COLLECT_S = 150.0  # seconds for one collection; the full set on one launch takes about 11 on an H200
IMPORT_S = 60.0
QUERY_S = 60.0
MOST_LAUNCHES = 64  # launches of one call that are profiled
_TAIL = 300  # characters of output that an error carries
PLACES = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute/*", "/usr/local/cuda-*/bin", "/opt/cuda*/bin")
_COMPLAINT = re.compile(r"^==(?:ERROR|WARNING)==.*metric.*$", re.MULTILINE | re.IGNORECASE)
_READER = Path(__file__).with_name("reader.py")


class Kind(StrEnum):
    """Why there is no report."""

    MISSING = "missing"
    DENIED = "denied"
    UNAVAILABLE = "unavailable"
    TIMED_OUT = "timed out"
    NO_KERNEL = "no kernel"
    UNREADABLE = "unreadable"
    FAILED = "failed"


class NcuFailed(Exception):
    """There is no report; ``kind`` and one clause that says why, with the remedy where there is one."""

    def __init__(self, kind: Kind, what: str) -> None:
        super().__init__(what)
        self.kind = kind
        self.what = what


@dataclass(frozen=True)
class Collected:
    """One report: its launches in their order, the set, the metrics that this version lacks, and the file."""

    launches: tuple[RawKernel, ...]
    bundle: Bundle
    unknown: tuple[str, ...]
    file: Path
    attempts: tuple[str, ...] = ()


def find_ncu() -> str:
    """The profiler's path; ``NcuFailed`` where it is not installed."""
    found = shutil.which("ncu")
    roots = [Path(os.environ[name]) / "bin" for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    roots += [path for place in PLACES for path in sorted(Path("/").glob(place.lstrip("/")), reverse=True)]
    found = found or next((str(root / "ncu") for root in roots if os.access(root / "ncu", os.X_OK)), None)
    if found is None:
        raise NcuFailed(Kind.MISSING, "Nsight Compute (ncu) is not installed; it comes with the CUDA toolkit")
    return found


def installed(ncu: str, environment: Mapping[str, str], room: Path) -> frozenset[str]:
    """The metrics of the chip, without suffixes, as the installed version lists them."""
    status, said = _ran([ncu, "--query-metrics"], environment, room, QUERY_S)
    names = installed_names(said)
    if status != 0 or not names:
        raise failure(said, status)
    return names


def collect(
    ncu: str,
    program: Sequence[str],
    bundle: Bundle,
    known: frozenset[str],
    file: Path,
    environment: Mapping[str, str],
    timeout_s: float = COLLECT_S,
) -> Collected:
    """Profile one call with one set, the program in the folder TMPDIR; refused metrics are left out and reported."""
    names, unknown = requested(bundle, known)
    options = ["--profile-from-start", "off", "--clock-control", "none", "--target-processes", "application-only"]
    options += ["--launch-count", str(MOST_LAUNCHES), "--force-overwrite", "--export", str(file.with_suffix(""))]
    options += [word for section in SECTIONS[bundle] for word in ("--section", section)]

    def profile() -> tuple[int, str]:
        asked = ["--metrics", ",".join(names)] if names else []
        return _ran([ncu, *options, *asked, *program], environment, Path(environment["TMPDIR"]), timeout_s)

    status, said = profile()
    if refused := _refused(names, said):
        names, unknown = tuple(name for name in names if name not in refused), (*unknown, *refused)
        status, said = profile()
    if status != 0 or not file.is_file():
        raise failure(said, status)
    launches = read_report(ncu, file, environment)
    if not launches:
        raise NcuFailed(Kind.NO_KERNEL, "the profiled call launched no kernel")
    return Collected(launches, bundle, unknown, file)


def collect_adaptively(
    ncu: str,
    program: Sequence[str],
    bundle: Bundle,
    known: frozenset[str],
    file: Path,
    environment: Mapping[str, str],
    timeout_s: float = COLLECT_S,
) -> Collected:
    """As ``collect``; when the full set takes too long or breaks the program, the light one is tried."""
    try:
        return collect(ncu, program, bundle, known, file, environment, timeout_s)
    except NcuFailed as failed:
        if bundle == "light" or failed.kind not in (Kind.TIMED_OUT, Kind.FAILED, Kind.UNREADABLE):
            raise
        tried = f"the full set {_put(failed)}"
    found = collect(ncu, program, "light", known, file, environment, timeout_s)
    return Collected(found.launches, found.bundle, found.unknown, found.file, (tried,))


def read_report(ncu: str, file: Path, environment: Mapping[str, str]) -> tuple[RawKernel, ...]:
    """Launches of a kept report, by NVIDIA's own reader where the installation has one, else from the raw page."""
    module = _module_folder(ncu)
    if module is not None:
        status, said = _ran(
            [sys.executable, "-I", str(_READER), str(module), str(file)], environment, file.parent, IMPORT_S
        )
        try:
            return parse_reader(said) if status == 0 else read_page(ncu, file, environment)
        except Unreadable:
            pass
    return read_page(ncu, file, environment)


def read_page(ncu: str, file: Path, environment: Mapping[str, str]) -> tuple[RawKernel, ...]:
    """Launches of a kept report, from the profiler's CSV in base units."""
    command = [ncu, "--import", str(file), "--csv", "--page", "raw", "--print-units", "base"]
    status, said = _ran(command, environment, file.parent, IMPORT_S)
    try:
        return parse_raw_page(said)
    except Unreadable as unreadable:
        raise failure(said, status) if status else NcuFailed(Kind.UNREADABLE, f"its report: {unreadable}") from None


def failure(said: str, status: int) -> NcuFailed:
    """What the profiler's words mean."""
    if "ERR_NVGPUCTRPERM" in said:
        remedy = "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"
        return NcuFailed(Kind.DENIED, f"the driver refuses its counters (ERR_NVGPUCTRPERM): {remedy}")
    if "LibraryNotLoaded" in said:
        return NcuFailed(
            Kind.UNAVAILABLE, "the profiler cannot load its driver library here (LibraryNotLoaded; seen under gVisor)"
        )
    if "No kernels were profiled" in said:
        return NcuFailed(Kind.NO_KERNEL, "the profiled call launched no kernel")
    telling = (line for line in said.splitlines() if "rror" in line or "ERROR" in line or "WARNING" in line)
    words = " ".join(telling) or said
    return NcuFailed(Kind.FAILED, f"ncu left with status {status}: {' '.join(words.split())[-_TAIL:] or 'no words'}")


def _refused(names: Sequence[str], said: str) -> list[str]:
    """Those of the metrics that a complaint about metrics names, in whatever words."""
    complaints = {word for line in _COMPLAINT.findall(said) for word in re.findall(r"[\w.]+", line)}
    return [name for name in names if name in complaints or name.partition(".")[0] in complaints]


def _put(failed: NcuFailed) -> str:
    return "took too long" if failed.kind is Kind.TIMED_OUT else f"failed: {failed.what}"


def _module_folder(ncu: str) -> Path | None:
    """Where the installation keeps the Python module that reads reports."""
    around = [*Path(ncu).resolve().parents][:3]
    newest = sorted(Path("/opt/nvidia/nsight-compute").glob("*"), reverse=True)
    folders = [place / "extras" / "python" for place in (*around, *newest)]
    return next((folder for folder in folders if (folder / "ncu_report.py").is_file()), None)


def _ran(command: list[str], environment: Mapping[str, str], room: Path, timeout_s: float) -> tuple[int, str]:
    """Exit status and output of a command in a process group of its own, which is killed when it takes too long."""
    try:
        process = subprocess.Popen(
            command,
            cwd=room,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
    except OSError as error:
        raise NcuFailed(Kind.MISSING, f"{command[0]} cannot be started ({error.strerror})") from None
    with process:
        try:
            said, _ = process.communicate(timeout=timeout_s)
            return process.returncode, said.decode(errors="replace")
        except subprocess.TimeoutExpired:
            what = f"{Path(command[0]).name} did not end within {timeout_s:g} s"
            raise NcuFailed(Kind.TIMED_OUT, what) from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

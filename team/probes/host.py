"""Programs, packages, cores, memory and disk."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from team.probes.finding import EVERY, FLASHINFER, PROFILES, Finding, first_line, program

_GIB = 1 << 30


def programs() -> Iterator[Finding]:
    """Python, git, the compilers for the CPU and perf."""
    python = ".".join(map(str, sys.version_info[:3]))
    fits = sys.version_info >= (3, 11)
    yield Finding("python", fits, f"Python {python}", "" if fits else "Install Python 3.11 or newer.")
    yield _git()
    yield program("g++", "Install it, e.g. with: apt-get install g++", EVERY)
    yield program("clang++", "Install it, e.g. with: apt-get install clang", "tasks that ask for clang")
    yield _perf()


def _git() -> Finding:
    finding = program("git", "Install it, e.g. with: apt-get install git", EVERY)
    numbers = [part for part in finding.what.replace(".", " ").split() if part.isdigit()]
    if finding.ok and tuple(map(int, numbers[:2])) < (2, 31):
        return Finding("git", False, f"{finding.what} is too old.", "Install git 2.31 or newer.")
    return finding


def _perf() -> Finding:
    finding = program("perf", "Install it, e.g. with: apt-get install linux-perf", PROFILES)
    if not finding.ok:
        return finding
    counted = first_line("perf", "stat", "-x,", "-e", "instructions:u", "true")
    if counted is None or counted.startswith("<not"):
        remedy = "Allow it with: sysctl kernel.perf_event_paranoid=1; in a virtual machine, expose the counters."
        return Finding("perf", False, f"{finding.what}, but it may not count instructions here.", remedy, PROFILES)
    return finding


def packages() -> Iterator[Finding]:
    """The packages whose version matters to a person, and one that only some tasks need."""
    ours = "Install with: pip install -c constraints.txt -e ."
    wanted = (
        ("ray", EVERY, ours),
        ("torch", EVERY, ours),
        ("apache-tvm-ffi", FLASHINFER, "Install it: pip install apache-tvm-ffi"),
    )
    for name, who, remedy in wanted:
        try:
            yield Finding(name, True, f"{name} {version(name)}", "", who)
        except PackageNotFoundError:
            yield Finding(name, False, f"{name} is not installed.", remedy, who)


def machine(run_folder: Path) -> Iterator[Finding]:
    """Cores, memory, shared memory, and disk where runs are kept."""
    yield _cores()
    limit = _cgroup_bytes()
    memory = min(psutil.virtual_memory().total, limit or sys.maxsize)
    enough = memory >= 4 * _GIB
    yield Finding("memory", enough, f"{memory / _GIB:.1f} GiB", "" if enough else "Use a machine with 4 GiB or more.")
    yield _space("shared memory", Path("/dev/shm"), 0.5, "Enlarge it: in Docker with --shm-size=2g.")
    where = next(folder for folder in (run_folder, *run_folder.parents) if folder.exists())
    yield _space("disk", where, 2.0, "Free some space, or point KERNELTEAM_HOME at a larger disk.")


def _cores() -> Finding:
    usable = sorted(os.sched_getaffinity(0))
    what = f"{len(usable)} of {os.cpu_count()} cores usable ({_ranges(usable)})"
    quota = _cgroup_quota()
    if quota is not None and quota < len(usable):
        what += f", limited to the time of {quota:.1f} by the cgroup"
        return Finding("cores", False, what, "Lift the CPU quota, or pin to that many cores: quotas disturb timing.")
    few = "" if len(usable) > 1 else "Use two cores or more: agents on one core disturb each other's timing."
    return Finding("cores", not few, what, few, "more than one agent on the CPU")


def _ranges(numbers: Sequence[int]) -> str:
    """[0, 1, 2, 5] as '0-2,5'."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _cgroup_quota() -> float | None:
    """Cores' worth of time that cgroup v2 grants, or None without a limit."""
    words = _read("/sys/fs/cgroup/cpu.max").split()
    return int(words[0]) / int(words[1]) if len(words) == 2 and words[0].isdigit() else None


def _cgroup_bytes() -> int | None:
    text = _read("/sys/fs/cgroup/memory.max").strip()
    return int(text) if text.isdigit() else None


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _space(name: str, folder: Path, gib: float, remedy: str) -> Finding:
    if not folder.is_dir():
        return Finding(name, False, f"{folder} does not exist.", remedy)
    free = shutil.disk_usage(folder).free / _GIB
    writable = os.access(folder, os.W_OK)
    what = f"{free:.1f} GiB free in {folder}" + ("" if writable else ", which is not writable")
    ok = free >= gib and writable
    return Finding(name, ok, what, "" if ok else remedy)

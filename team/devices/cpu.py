"""A CPU core set as a device. Nothing is looked up by name: everything is read from this machine.

When the set has more than one core, the first is the judge's and the rest are the kernel's, so that filling and
checking never compete with what is timed; a set of one core is shared, and the judge sleeps while a runner runs.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from protocol.messages import DeviceInfo
from team.devices.peaks import known_peaks
from team.errors import UserError

_CPU = Path("/sys/devices/system/cpu")
_ISA = re.compile(r"^(sse4_2|avx\w*|fma|f16c|amx\w*|asimd\w*|sve\w*|bf16|i8mm)$")
_SHARED = ("memory_bytes_per_s",)  # of the machine, not of a core


@dataclass(frozen=True)
class CpuDevice:
    """A non-empty, sorted set of cores."""

    cores: tuple[int, ...]

    @property
    def id(self) -> str:
        """``cpu:0``, ``cpu:0-1`` or ``cpu:0,2``."""
        return f"cpu:{_listed(self.cores)}"

    @property
    def judge_cores(self) -> tuple[int, ...]:
        """Where the judge fills and checks."""
        return self.cores[:1]

    @property
    def kernel_cores(self) -> tuple[int, ...]:
        """Where kernels run, both sides on the same ones."""
        return self.cores[1:] or self.cores

    def info(self) -> DeviceInfo:
        """Model name, cores, caches and frequency governor as far as the machine tells them."""
        details = {"cores": _listed(self.cores), "kernel_cores": _listed(self.kernel_cores), **_caches(self.cores[0])}
        governor = _line(_CPU / f"cpu{self.cores[0]}/cpufreq/scaling_governor")
        if governor:
            details["governor"] = governor
        return DeviceInfo(kind="cpu", id=self.id, name=_model_name(), details=details, peaks=self._peaks())

    @property
    def machine(self) -> str:
        """What the roofs of one core are kept under: this machine and its kind of CPU."""
        said = f"{_model_name()} {' '.join(instruction_sets())} {_line(Path('/etc/machine-id'))}"
        return f"cpu-{hashlib.sha256(said.encode()).hexdigest()[:16]}"

    def _peaks(self) -> dict[str, float]:
        """The roofs of all cores that a kernel may use: those of one core, times their number."""
        cores = len(self.kernel_cores)
        return {name: rate * (1 if name in _SHARED else cores) for name, rate in known_peaks(self.machine).items()}

    def confine(self) -> None:
        """Keep the calling process and what it starts on this set of cores."""
        os.sched_setaffinity(0, self.cores)

    def pin(self) -> None:
        """Bind the calling process to the judge's part of the set; runners bind themselves to the kernel's part."""
        os.sched_setaffinity(0, self.judge_cores)


def cpu_device(name: str) -> CpuDevice:
    """The device called ``cpu:0-1``; its cores must be usable by this process."""
    if re.fullmatch(r"cpu:\d+(-\d+)?(,\d+(-\d+)?)*", name) is None:
        raise UserError(f"'{name}' is not a CPU device.", "Write it as cpu:0, cpu:0-3 or cpu:0,2.")
    cores: set[int] = set()
    for word in name.removeprefix("cpu:").split(","):
        first, _, last = word.partition("-")
        cores.update(range(int(first), int(last or first) + 1))
    missing = cores - usable_cores()
    if missing or not cores:
        raise UserError(f"Cores {_listed(missing)} are not usable here.", f"Use some of {_listed(usable_cores())}.")
    return CpuDevice(tuple(sorted(cores)))


def cpu_devices(count: int) -> tuple[CpuDevice, ...]:
    """``count`` disjoint core sets of equal size, neighbours together."""
    cores = sorted(usable_cores())
    if not 1 <= count <= len(cores):
        raise UserError(f"{count} CPU devices do not fit on {len(cores)} cores.", f"Ask for 1 to {len(cores)}.")
    share = len(cores) // count
    return tuple(CpuDevice(tuple(cores[i * share : (i + 1) * share])) for i in range(count))


def usable_cores() -> set[int]:
    """Cores that this process may use."""
    return set(os.sched_getaffinity(0))


def instruction_sets() -> tuple[str, ...]:
    """Vector and matrix instruction sets that the kernel of this machine reports."""
    lines = (line.partition(":") for line in _line(Path("/proc/cpuinfo")).splitlines())
    words = next((value.split() for key, _, value in lines if key.strip() in ("flags", "Features")), [])
    return tuple(sorted(word for word in words if _ISA.match(word)))


def _listed(cores: Iterable[int]) -> str:
    """Sorted cores with ranges: ``0-3,6``."""
    spans: list[list[int]] = []
    for core in sorted(cores):
        if spans and core == spans[-1][1] + 1:
            spans[-1][1] = core
        else:
            spans.append([core, core])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _line(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _model_name() -> str:
    for line in _line(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "CPU part"):
            return value.strip()
    return os.uname().machine


def _caches(core: int) -> dict[str, str]:
    """``L1d``, ``L2``, ... -> size as the kernel writes it, such as ``512K``."""
    found: dict[str, str] = {}
    for folder in sorted(_CPU.glob(f"cpu{core}/cache/index[0-9]*")):
        kind = {"Data": "d", "Instruction": "i"}.get(_line(folder / "type"), "")
        found[f"L{_line(folder / 'level')}{kind}"] = _line(folder / "size")
    return found

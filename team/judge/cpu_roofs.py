"""The roofs of this CPU, measured by a small program once per machine: multiply-adds by type and bytes through a cache.

They only serve to refuse the impossible, so an honest kernel must never meet them. What data a kernel finds in a cache
nobody knows: the rate of the first-level cache stands for its bytes, never that of the memory. The best of several
hundred short windows counts, doubled, because a shared machine may have been slow in all of them. And where the CPU
has units for narrower types (AMX, AVX-512 with bfloat16 or float16), no rate bounds a float32 kernel: it may use them
within its tolerance.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from team.devices.cpu import CpuDevice, instruction_sets
from team.devices.peaks import keep_peaks, known_peaks

HEADROOM = 2.0
_SOURCE = Path(__file__).with_name("runner") / "roofs.cpp"
_FLAGS = ("-O3", "-march=native", "-std=c++17")
_TIMEOUT_S = 60.0
_NARROW = ("amx", "avx512_bf16", "avx512_fp16", "avx512bf16", "avx512fp16", "asimdhp", "bf16", "sve")
_AS_MEASURED = ("memory_bytes_per_s",)


def ensure_roofs(device: CpuDevice) -> None:
    """Measure the roofs of one core unless they are known. A machine without g++ has none."""
    if not known_peaks(device.machine):
        keep_peaks(device.machine, bounds(_measured(device.kernel_cores[0]), instruction_sets()))


def bounds(measured: dict[str, float], isa: tuple[str, ...]) -> dict[str, float]:
    """What no kernel exceeds, from what was measured on one core."""
    found = {name: rate if name in _AS_MEASURED else HEADROOM * rate for name, rate in measured.items()}
    if any(word.startswith(_NARROW) for word in isa):
        found.pop("float32_flops_per_s", None)
    return found


def _measured(core: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="kernelteam-roofs-") as scratch:
        program = Path(scratch) / "roofs"
        try:
            subprocess.run(
                ["g++", *_FLAGS, str(_SOURCE), "-o", str(program)], check=True, capture_output=True, timeout=_TIMEOUT_S
            )
            ran = subprocess.run(
                [str(program)],
                check=True,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                preexec_fn=lambda: os.sched_setaffinity(0, (core,)),
            )
        except (OSError, subprocess.SubprocessError):
            return {}
    pairs = (line.split() for line in ran.stdout.splitlines())
    return {name: float(rate) for name, rate in pairs}

"""What ``kernelteam doctor`` finds about GPUs: through NVML and the CUDA toolkit's programs, without loading torch."""

import os
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from team.probes.finding import CHECKS, CUDA, PROFILES, SANDBOX, Finding, first_line, program

_TOOLKIT = "Install the CUDA toolkit and put its bin folder on the PATH."
_NO_GPU = "Nothing to do for CPU tasks; for CUDA tasks use a machine with an NVIDIA GPU and its driver."
_GIB = 1 << 30
_LAYERS = ("rlimits", "uid", "no_new_privs", "landlock", "seccomp")


def gpus() -> Iterator[Finding]:
    """Driver, each GPU, the toolkit's programs, and whether they fit each other."""
    devices = list(_devices())
    yield from devices
    yield program("nvcc", _TOOLKIT, CUDA, pick=-2)
    yield program("ncu", f"{_TOOLKIT} It comes with Nsight Compute.", PROFILES, pick=-1)
    yield program("compute-sanitizer", _TOOLKIT, CHECKS, pick=-1)
    if any(finding.name.startswith("gpu ") for finding in devices):
        yield from _with_gpu()


def _devices() -> Iterator[Finding]:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        yield Finding("gpu", False, f"NVML finds no NVIDIA driver ({error}).", _NO_GPU, CUDA)
        return
    try:
        driver, cuda = pynvml.nvmlSystemGetDriverVersion(), pynvml.nvmlSystemGetCudaDriverVersion_v2()
        yield Finding("driver", True, f"{driver}, for CUDA up to {cuda // 1000}.{cuda % 1000 // 10}", "", CUDA)
        count = pynvml.nvmlDeviceGetCount()
        for index in range(count):
            yield _device(index)
        if count == 0:
            yield Finding("gpu", False, "The driver is there, but no GPU is visible.", _NO_GPU, CUDA)
    except pynvml.NVMLError as error:
        yield Finding("gpu", False, f"NVML cannot describe the GPUs ({error}).", "Look at: nvidia-smi", CUDA)
    finally:
        pynvml.nvmlShutdown()


def _device(index: int) -> Finding:
    """One GPU and whether it is idle: less than 5 % busy and more than 90 % of its memory free."""
    import pynvml

    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    what = f"{pynvml.nvmlDeviceGetName(handle)}, sm_{major}{minor}, {int(memory.total) / _GIB:.0f} GiB"
    try:
        busy = int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    except pynvml.NVMLError as error:
        if getattr(error, "value", None) != pynvml.NVML_ERROR_NOT_SUPPORTED:  # MIG
            raise
        busy = 0
    idle = busy < 5 and int(memory.free) > 0.9 * int(memory.total)
    what += "" if idle else f"; not idle: {busy} % busy, {int(memory.used) / _GIB:.1f} GiB in use"
    return Finding(f"gpu {index}", idle, what, "" if idle else "End what runs there; see: nvidia-smi", CUDA)


def _with_gpu() -> Iterator[Finding]:
    yield _torch()
    admin_only = "RmProfilingAdminOnly: 1" in _driver_parameters()
    if admin_only and os.geteuid() != 0:
        remedy = "Load the driver with NVreg_RestrictProfilingToAdminUsers=0, or run as root."
        yield Finding("gpu counters", False, "The driver keeps performance counters for root.", remedy, PROFILES)
    else:
        yield Finding("gpu counters", True, "readable", "", PROFILES)
    yield runner_layers(first_line(sys.executable, "-m", "team.judge.cuda.layers", timeout_s=90.0))


def runner_layers(said: str | None) -> Finding:
    """What a runner on the GPU said of its sandbox; None when none could be started."""
    name, remedy = "gpu sandbox", "See what stops it: python -m team.judge.cuda.layers"
    if not said:
        return Finding(name, False, "No runner could be started on the GPU.", remedy, CUDA)
    missing = [layer for layer in _LAYERS if layer not in said.split()]
    if missing:
        remedy = "See the findings on these layers; the uid also stays where CUDA IPC is refused to another one."
        return Finding(name, False, f"A runner lacks {' and '.join(missing)}; it has {said}.", remedy, SANDBOX)
    return Finding(name, True, said, "", SANDBOX)


def _torch() -> Finding:
    try:
        found = version("torch")
    except PackageNotFoundError:
        found = "none"
    if found == "none" or found.endswith("+cpu"):
        remedy = "Install the CUDA build: pip install -c constraints.txt torch"
        return Finding("torch for CUDA", False, f"torch is {found}, which cannot use the GPU.", remedy, CUDA)
    return Finding("torch for CUDA", True, found, "", CUDA)


def _driver_parameters() -> str:
    path = Path("/proc/driver/nvidia/params")
    try:
        return path.read_text()
    except OSError:
        return ""

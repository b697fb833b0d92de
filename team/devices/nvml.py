"""NVML, the driver's own account of its GPUs: opened for a moment, read, closed. Nothing is ever set."""

# pyright: reportPrivateUsage=false

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pynvml

from team.errors import UserError

NO_GPU = 'Use a task with device = "cpu", or a machine with an NVIDIA GPU and its driver.'


@contextmanager
def session() -> Iterator[None]:
    """NVML initialised; a ``UserError`` when there is no driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise UserError(f"There is no usable NVIDIA GPU on this machine ({error}).", NO_GPU) from None
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def visible_uuids() -> tuple[str, ...]:
    """UUIDs of the GPUs that this process may use, in the order of CUDA_VISIBLE_DEVICES when that is set.

    As in CUDA, entries are indices or unambiguous beginnings of UUIDs, and the first invalid one ends the list.
    """
    with session():
        present = [_text(pynvml.nvmlDeviceGetUUID(handle)) for handle in _handles()]
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    return tuple(present) if listed is None else selected(present, listed)


def selected(present: list[str], listed: str) -> tuple[str, ...]:
    """The UUIDs among ``present`` that CUDA_VISIBLE_DEVICES names."""
    chosen: list[str] = []
    for word in (part.strip() for part in listed.split(",")):
        if word.startswith("MIG-"):
            raise UserError("CUDA_VISIBLE_DEVICES names a MIG slice.", "Name whole GPUs; a slice cannot be timed.")
        if word.isdigit():
            found = present[int(word) : int(word) + 1]
        else:
            found = [uuid for uuid in present if word.startswith("GPU-") and uuid.startswith(word)]
        if len(found) != 1 or found[0] in chosen:
            break
        chosen += found
    return tuple(chosen)


def handle_of(uuid: str) -> Any:
    """NVML's handle of one GPU, inside a session."""
    try:
        return pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except pynvml.NVMLError:
        raise UserError(f"There is no GPU {uuid} on this machine.", "See them with: nvidia-smi -L") from None


def busy_percent(handle: Any) -> int:
    """Share of the last moment in which a kernel ran; 0 where the card does not say."""
    try:
        return int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    except pynvml.NVMLError:
        return 0


def strangers(handle: Any, ours: set[int]) -> tuple[int, ...]:
    """Process ids that use the GPU and are not among ``ours``, as far as this process may see them."""
    try:
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except pynvml.NVMLError:
        return ()
    return tuple(sorted(process.pid for process in running if process.pid not in ours))


def described(uuid: str) -> dict[str, str]:
    """What NVML says of one GPU that does not change while it works."""
    with session():
        handle = handle_of(uuid)
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
        cuda = pynvml.nvmlSystemGetCudaDriverVersion_v2()
        told = {
            "name": _text(pynvml.nvmlDeviceGetName(handle)),
            "compute capability": f"{major}.{minor}",
            "memory bytes": str(int(memory.total)),
            "driver": _text(pynvml.nvmlSystemGetDriverVersion()),
            "driver CUDA": f"{cuda // 1000}.{cuda % 1000 // 10}",
            "minor": str(pynvml.nvmlDeviceGetMinorNumber(handle)),
        }
        for name, clock in (("SM", pynvml.NVML_CLOCK_SM), ("memory", pynvml.NVML_CLOCK_MEM)):
            told[f"{name} clock max MHz"] = str(_or_none(pynvml.nvmlDeviceGetMaxClockInfo, handle, clock))
        ecc = _or_none(pynvml.nvmlDeviceGetEccMode, handle)
        told["ECC"] = "unknown" if ecc is None else ("on" if ecc[0] else "off")
        return told


def _or_none(ask: Any, *arguments: Any) -> Any:
    """NVML's answer, or None where the card does not know the question."""
    try:
        return ask(*arguments)
    except pynvml.NVMLError:
        return None


def _handles() -> list[Any]:
    return [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value

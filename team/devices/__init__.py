"""Devices: what there is, and opening one by its name."""

from collections.abc import Sequence

from team.devices.cpu import CpuDevice, cpu_device, cpu_devices, usable_cores
from team.devices.cuda import CudaDevice, count_cuda, cuda_device, cuda_devices
from team.devices.device import Device
from team.errors import UserError


def discover(kind: str, count: int, allow_mixed: bool = False) -> Sequence[Device]:
    """``count`` devices of a kind (cpu or cuda) on this machine, disjoint; a sentence when there are fewer."""
    return cpu_devices(count) if kind == "cpu" else cuda_devices(count, allow_mixed)


def how_many(kind: str) -> int:
    """How many agents of a kind this machine can hold; a ``UserError`` where there is no driver for it."""
    return len(usable_cores()) if kind == "cpu" else count_cuda()


def has_gpu() -> bool:
    """Whether there is a GPU that this process may use."""
    try:
        return count_cuda() > 0
    except UserError:
        return False


def open_device(name: str) -> CpuDevice | CudaDevice:
    """The device called ``name``, for the process that is to work on it."""
    return cuda_device(name) if name.startswith("GPU-") else cpu_device(name)

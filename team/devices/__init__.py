"""Devices: what there is, and opening one by its name."""

from collections.abc import Sequence

from team.devices.cpu import cpu_device, cpu_devices, usable_cores
from team.devices.device import Device
from team.errors import UserError


def discover(kind: str, count: int) -> Sequence[Device]:
    """``count`` devices of a kind (cpu or cuda) on this machine, disjoint; a sentence when there are fewer."""
    if kind == "cpu":
        return cpu_devices(count)
    raise UserError(f"Devices of kind '{kind}' are not supported yet.", 'Use a task with device = "cpu".')


def how_many(kind: str) -> int:
    """How many agents of a kind this machine can hold."""
    return len(usable_cores()) if kind == "cpu" else 0


def open_device(name: str) -> Device:
    """The device called ``name``, for the process that is to work on it."""
    return cpu_device(name)

"""A GPU as a device, known by its UUID. Nothing is looked up by name: the driver is asked, peaks are measured."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import pynvml

from protocol.messages import DeviceInfo
from team.devices import driver, nvml
from team.devices.peaks import known_peaks
from team.errors import UserError

IDLE_PERCENT = 5
FREE_SHARE = 0.9
SETTLE_S = 4.0


@dataclass(frozen=True)
class CudaDevice:
    """One whole GPU; ``id`` is its UUID."""

    id: str

    def info(self) -> DeviceInfo:
        """Name, limits, driver and clocks as the driver tells them, and the peaks measured so far."""
        details = _details(self.id)
        rest = {key: value for key, value in details.items() if key != "name"}
        return DeviceInfo(kind="cuda", id=self.id, name=details["name"], details=rest, peaks=known_peaks(self.id))

    def confine(self) -> None:
        """Let the calling process and what it starts see this GPU alone."""
        self.pin()

    def pin(self) -> None:
        """Make this the only GPU that the calling process and its children see. Before CUDA is first used."""
        os.environ["CUDA_VISIBLE_DEVICES"] = self.id
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"

    @property
    def kernel_cores(self) -> tuple[int, ...]:
        """CPU cores of a runner's host thread: any."""
        return self.cores

    @property
    def cores(self) -> tuple[int, ...]:
        """CPU cores that may compile for it and feed it."""
        return tuple(sorted(os.sched_getaffinity(0)))

    @property
    def target(self) -> str:
        """The compiler's target with every feature of this GPU, such as ``90a`` (these sets start at 9.0)."""
        major, minor = _details(self.id)["compute capability"].split(".")
        return f"{major}{minor}{'a' if int(major) >= 9 else ''}"

    @property
    def l2_bytes(self) -> int:
        """Size of the last-level cache."""
        return int(_details(self.id).get("L2 bytes", 0))

    @property
    def memory_bytes(self) -> int:
        """Size of the device memory."""
        return int(_details(self.id)["memory bytes"])

    @property
    def nodes(self) -> tuple[str, ...]:
        """Device files that a process needs for this GPU and no other."""
        return f"/dev/nvidia{_details(self.id)['minor']}", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"


@cache
def _details(uuid: str) -> dict[str, str]:
    limits = {name: str(value) for name, value in driver.attributes(uuid).items()}
    return {**nvml.described(uuid), **limits}


def cuda_device(uuid: str) -> CudaDevice:
    """The GPU with this UUID; it must be visible to this process."""
    seen = nvml.visible_uuids()
    if uuid not in seen:
        raise UserError(f"GPU {uuid} is not visible here.", f"Visible are: {', '.join(seen) or 'none'}.")
    return CudaDevice(uuid)


def cuda_devices(count: int, allow_mixed: bool = False) -> tuple[CudaDevice, ...]:
    """``count`` idle GPUs, of one kind unless ``allow_mixed``; a ``UserError`` names the first thing that is wrong."""
    seen = nvml.visible_uuids()
    if not 1 <= count <= len(seen):
        raise UserError(f"{count} GPUs are wanted, {len(seen)} are visible here.", f"Ask for 1 to {len(seen)}.")
    chosen = seen[:count]
    _refuse_busy(chosen)
    if not allow_mixed:
        _refuse_mixed(chosen)
    return tuple(CudaDevice(uuid) for uuid in chosen)


def count_cuda() -> int:
    """How many GPUs this process may use; a ``UserError`` when there is no driver."""
    return len(nvml.visible_uuids())


def _refuse_busy(uuids: Sequence[str]) -> None:
    """Less than 5 % busy and more than 90 % of the memory free, or the measurement would be somebody else's.

    A GPU that was left a moment ago still counts as busy: it gets a few seconds.
    """
    until = time.monotonic() + SETTLE_S
    for uuid in uuids:
        while said := _busy(uuid):
            if time.monotonic() > until:
                raise UserError(f"GPU {uuid} is not idle: {said}.", "End what runs there: nvidia-smi")
            time.sleep(0.25)


def _busy(uuid: str) -> str:
    """One clause about what occupies a GPU; empty when it is idle."""
    with nvml.session():
        handle = nvml.handle_of(uuid)
        busy, memory = nvml.busy_percent(handle), pynvml.nvmlDeviceGetMemoryInfo(handle)
    if is_idle(busy, int(memory.free), int(memory.total)):
        return ""
    return f"{busy} % busy, {int(memory.used) / 2**30:.1f} GiB in use"


def is_idle(busy_percent: int, free_bytes: int, total_bytes: int) -> bool:
    """Whether nobody else works on a GPU, by how busy it is and how much of its memory is free."""
    return busy_percent < IDLE_PERCENT and free_bytes > FREE_SHARE * total_bytes


def _refuse_mixed(uuids: Sequence[str]) -> None:
    kinds = {(_details(uuid)["name"], _details(uuid)["memory bytes"]) for uuid in uuids}
    if len(kinds) > 1:
        raise UserError(
            f"The GPUs are not of one kind: {', '.join(sorted(name for name, _ in kinds))}.",
            "Choose like ones with CUDA_VISIBLE_DEVICES, or set allow_mixed = true under [policy]: then times of "
            "different GPUs are never compared.",
        )

"""A GPU that is elsewhere: enough of one to compile for."""

import re
from dataclasses import dataclass

from protocol.messages import DeviceInfo
from team.devices.cuda import CudaDevice
from team.errors import UserError

_SHARED_KIB = {
    "70": 96,
    "75": 64,
    "80": 163,
    "86": 99,
    "87": 163,
    "89": 99,
    "90": 227,
    "100": 227,
    "103": 227,
    "120": 99,
}
"""Most shared memory of one block (KiB) by compute capability: CUDA programming guide, table of technical
specifications. Others are taken to have the 48 KiB that every one has."""
_TARGET = re.compile(r"[1-9]\d{1,2}[af]?")


@dataclass(frozen=True)
class AbsentGpu(CudaDevice):
    """No device, but a compiler's target such as ``90a``."""

    architecture: str

    def info(self) -> DeviceInfo:
        """What every GPU of this architecture has, and one SM: whoever compiles for it launches nothing."""
        shared = _SHARED_KIB.get(self.architecture.rstrip("af"), 48) << 10
        details = {"SMs": 1, "warp": 32, "registers per SM": 1 << 16, "shared memory per block bytes": shared}
        name = f"a GPU of sm_{self.architecture} that is elsewhere"
        return DeviceInfo(
            kind="cuda", id=self.id, name=name, details={key: str(value) for key, value in details.items()}
        )

    @property
    def target(self) -> str:
        """See ``CudaDevice``."""
        return self.architecture


def absent_gpu(architecture: str) -> AbsentGpu:
    """A GPU of an architecture, as compilers number them."""
    plain = architecture.removeprefix("sm_")
    if not _TARGET.fullmatch(plain):
        raise UserError(f"'{architecture}' is no architecture of a GPU.", "Give its number: an H200 is 90a.")
    return AbsentGpu("absent", plain)

"""A GPU that is elsewhere: enough of one to compile for."""

import re
from dataclasses import dataclass

from protocol.messages import DeviceInfo
from team.devices.cuda import CudaDevice
from team.errors import UserError

_TARGET = re.compile(r"[1-9]\d{1,2}[af]?")


@dataclass(frozen=True)
class AbsentGpu(CudaDevice):
    """No device, but a compiler's target such as ``90a``."""

    architecture: str

    def info(self) -> DeviceInfo:
        """Nothing is known of it."""
        return DeviceInfo(kind="cuda", id=self.id, name=f"a GPU of sm_{self.architecture} that is elsewhere")

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

"""The few calls of the CUDA driver that the judge makes itself, over ctypes: no toolkit and no torch are needed here.

Nothing is loaded at import. Every call that fails raises ``CudaFailed`` with the driver's own name for the error.
"""

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

from team.errors import UserError

_ATTRIBUTES = {
    "SMs": 16,
    "warp": 10,
    "L2 bytes": 38,
    "shared memory per SM bytes": 81,
    "shared memory per block bytes": 97,
    "registers per SM": 82,
    "threads per SM": 39,
    "memory bus bits": 37,
    "persisting L2 bytes": 108,
}
_PERSISTING_L2 = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE


class CudaFailed(Exception):
    """A driver call failed: ``call`` and the driver's name of the error."""

    def __init__(self, call: str, name: str) -> None:
        super().__init__(f"{call}: {name}")
        self.call = call
        self.name = name


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_char * 64),)


@dataclass(frozen=True)
class Allocation:
    """Device memory of a plain ``cuMemAlloc``: address, bytes, and the handle with which another process opens it."""

    address: int
    size: int
    handle: bytes


@cache
def _library() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise UserError(
            "There is no CUDA driver on this machine (libcuda.so.1 is missing).", "Install the NVIDIA driver."
        ) from None


def _call(name: str, *arguments: Any) -> None:
    library = _library()
    status = getattr(library, name)(*arguments)
    if status != 0:
        said = ctypes.c_char_p()
        library.cuGetErrorName(status, ctypes.byref(said))
        raise CudaFailed(name, (said.value or b"").decode() or f"error {status}")


def attributes(uuid: str) -> dict[str, int]:
    """Size limits of the GPU with this UUID as the driver tells them; empty when this process cannot see it."""
    _call("cuInit", 0)
    count = ctypes.c_int()
    _call("cuDeviceGetCount", ctypes.byref(count))
    for index in range(count.value):
        device = ctypes.c_int()
        _call("cuDeviceGet", ctypes.byref(device), index)
        if _uuid_of(device) == uuid:
            return {name: _attribute(device, number) for name, number in _ATTRIBUTES.items()}
    return {}


def allocate(size: int) -> Allocation:
    """``size`` bytes in the current context, and their handle for other processes."""
    address, handle = ctypes.c_uint64(), _Handle()
    _call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    _call("cuIpcGetMemHandle", ctypes.byref(handle), address)
    return Allocation(address.value, size, ctypes.string_at(ctypes.byref(handle), 64))


def free(allocation: Allocation) -> None:
    """Give an allocation back."""
    _call("cuMemFree_v2", ctypes.c_uint64(allocation.address))


def forget_persisting_lines() -> None:
    """Take the L2 away from whoever asked to keep lines in it: no carve-out, and every kept line is normal again."""
    _call("cuCtxSetLimit", _PERSISTING_L2, ctypes.c_size_t(0))
    _call("cuCtxResetPersistingL2Cache")


def _uuid_of(device: ctypes.c_int) -> str:
    raw = (ctypes.c_ubyte * 16)()
    _call("cuDeviceGetUuid_v2", ctypes.byref(raw), device)
    text = bytes(raw).hex()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _attribute(device: ctypes.c_int, number: int) -> int:
    value = ctypes.c_int()
    _call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
    return value.value

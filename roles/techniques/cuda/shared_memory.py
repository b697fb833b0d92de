"""Shared memory of a design: as arrays of fixed size, or, above 48 KB, as a part of what the launch asks for.

A block may have up to 227 KB on sm_90, but beyond 48 KB only after the host has said so for the kernel, and only as
dynamic shared memory.
"""

from collections.abc import Mapping, Sequence

from protocol.messages import Parameter
from roles.techniques.transform import Choices

STATIC, DYNAMIC = 48 * 1024, 227 * 1024
SHARED: Choices = {"shared": ("static", "dynamic")}
RESERVED = frozenset(["shared_tiles", "shared_bytes"])


def dynamic(setting: Mapping[str, Parameter]) -> bool:
    """True when a design's tiles lie in dynamic shared memory."""
    return setting["shared"] == "dynamic"


def fits(setting: Mapping[str, Parameter], size: int) -> bool:
    """True when tiles of ``size`` bytes are allowed: few as they are, many where the launch asks for them."""
    most = DYNAMIC // int(setting["blocks"])
    return STATIC < size <= most if dynamic(setting) else size <= STATIC


def suited(size: int) -> str:
    """Where tiles of ``size`` bytes lie when it may be chosen."""
    return "dynamic" if size > STATIC else "static"


def declared(setting: Mapping[str, Parameter], arrays: Sequence[tuple[str, str]]) -> list[str]:
    """Declarations of float arrays, each given as name and extents, one after the other in shared memory."""
    if not dynamic(setting):
        return [f"alignas(16) __shared__ float {name}{extents};" for name, extents in arrays]
    lines, before = ["extern __shared__ float4 shared_tiles[];"], "shared_tiles"
    for name, extents in arrays:
        lines.append(f"auto& {name} = *reinterpret_cast<float (*){extents}>({before});")
        before = f"&{name} + 1"
    return lines


def launched(
    setting: Mapping[str, Parameter], kernel: str, grid: str, threads: str, arguments: str, size: str
) -> list[str]:
    """Statements that launch a kernel whose tiles take ``size`` bytes."""
    if not dynamic(setting):
        return [f"{kernel}<<<{grid}, {threads}>>>({arguments});"]
    return [
        f"constexpr int shared_bytes = {size};",
        f"cudaFuncSetAttribute({kernel}, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);",
        f"{kernel}<<<{grid}, {threads}, shared_bytes>>>({arguments});",
    ]

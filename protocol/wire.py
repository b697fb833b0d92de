"""Length-prefixed msgpack: the only way that judge, runner and agent talk. Nothing is ever unpickled.

A frame is a 4-byte little-endian length and that many bytes of msgpack. Frames have a size cap, so that an untrusted
peer cannot exhaust memory; whatever does not decode raises ``WireError``.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import struct
from typing import Any

import msgpack

MAX_FRAME = 64 * 1024 * 1024
_LENGTH = struct.Struct("<I")


class WireError(ValueError):
    """The peer sent something that is not a frame."""


def pack(body: Any) -> bytes:
    """``body`` (maps, lists, str, bytes, 64-bit int, float, bool, None) as msgpack; ``WireError`` for anything else."""
    try:
        payload = msgpack.packb(body, use_bin_type=True)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise WireError(f"cannot be said in msgpack: {error}") from error
    if not isinstance(payload, bytes):
        raise WireError("msgpack gave no bytes")
    return payload


def encode(body: Any, limit: int = MAX_FRAME) -> bytes:
    """One frame holding ``body``."""
    payload = pack(body)
    if len(payload) > limit:
        raise WireError(f"message of {len(payload)} bytes is over the limit of {limit}")
    return _LENGTH.pack(len(payload)) + payload


def length_of(header: bytes, limit: int = MAX_FRAME) -> int:
    """Payload length announced by a 4-byte header."""
    if len(header) != _LENGTH.size:
        raise WireError("truncated header")
    size: int = _LENGTH.unpack(header)[0]
    if size > limit:
        raise WireError(f"peer announced {size} bytes, over the limit of {limit}")
    return size


def decode(payload: bytes) -> Any:
    """The value of one frame's payload. No announced length is believed beyond the payload's own."""
    try:
        return msgpack.unpackb(payload, raw=False, strict_map_key=False, ext_hook=_no_extension)
    # TypeError: a list or a map as a key. MemoryError: deep nesting of announced lengths.
    except (ValueError, TypeError, OverflowError, MemoryError, RecursionError, msgpack.UnpackException) as error:
        raise WireError(f"not msgpack: {error}") from error


def _no_extension(code: int, data: bytes) -> None:
    raise ValueError(f"extension type {code} is not spoken here")

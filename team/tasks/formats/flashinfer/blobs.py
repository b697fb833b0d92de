"""Recorded tensors: the safetensors format, read with the standard library and checked before a byte is believed.

The format, by its public description: 8 bytes little-endian with the length of a JSON header, the header (name ->
dtype, shape, offsets from the header's end), the data.
"""

import json
from pathlib import Path
from typing import Any

import torch

from team.errors import UserError

_DTYPES = {
    **{"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool", "U8": "uint8"},
    **{"I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "F8_E4M3": "float8_e4m3fn"},
    "F8_E5M2": "float8_e5m2",
}
_MAX_HEADER = 100 << 20  # bytes
_POINTER = b"version https://git-lfs"


def read_tensor(path: Path, key: str) -> torch.Tensor:
    """One tensor of a file; a ``UserError`` says why there is none."""
    try:
        with path.open("rb") as handle:
            start = handle.read(len(_POINTER))
            if start == _POINTER:
                raise UserError(f"{path} is a Git LFS pointer, not the tensors.", "Fetch it: git lfs pull")
            size = int.from_bytes(start[:8], "little")
            if len(start) < 8 or size > min(_MAX_HEADER, path.stat().st_size):
                raise ValueError("it has no header")
            handle.seek(8)
            header = json.loads(handle.read(size))
            dtype, shape, begin, end = _entry(header, key)
            handle.seek(8 + size + begin)
            data = handle.read(end - begin)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"The tensor '{key}' of {path} cannot be read: {error}.", "Fetch the blob again.") from None
    if len(data) != torch.Size(shape).numel() * dtype.itemsize:
        raise UserError(f"The tensor '{key}' of {path} is not as long as its shape says.", "Fetch the blob again.")
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(dtype).view(shape)


def _entry(header: Any, key: str) -> tuple[torch.dtype, tuple[int, ...], int, int]:
    if key not in header:
        raise ValueError(f"it holds {', '.join(sorted(name for name in header if name != '__metadata__'))}")
    entry = header[key]
    begin, end = (int(offset) for offset in entry["data_offsets"])
    if not 0 <= begin <= end:
        raise ValueError("its offsets are not in order")
    return getattr(torch, _DTYPES[entry["dtype"]]), tuple(int(extent) for extent in entry["shape"]), begin, end

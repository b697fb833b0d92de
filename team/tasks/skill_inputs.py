"""What a user of the optimizer skills gives, and what was understood of it. Plain data: no torch, so whoever conducts a
run can hold it without loading that.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

from team.tasks.signature import Parameter, Signature

ATOL, RTOL = 1e-4, 1e-3
_BITS = re.compile(r"\d+")


@dataclass(frozen=True)
class SkillInputs:
    """What the user gave. ``dims`` and ``scalars`` are of the full shape; ``shapes`` may name pointers."""

    kernel: Path
    reference: Path
    dims: Mapping[str, int]
    scalars: Mapping[str, float] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ptr_size: int = 0
    atol: float = ATOL
    rtol: float = RTOL
    numerics: str = "reference"


@dataclass(frozen=True)
class Read:
    """The inputs understood: everything that a task needs but its workloads. ``notes`` say what was decided."""

    inputs: SkillInputs
    contract: str
    device: str
    signature: Signature | None
    extents: Mapping[str, tuple[str, ...]]
    roles: Mapping[str, str]
    tolerance: Mapping[str, tuple[float, float]]
    modelled: bool
    notes: tuple[str, ...]

    def bytes_of(self, dims: Mapping[str, int]) -> int | None:
        """Bytes of all buffers of one launch with these dims; None for Triton, whose ``setup`` alone knows."""
        if self.signature is None:
            return None
        return sum(_elements(self.extents[p.name], dims) * _width(p) for p in self.signature.pointers)

    @property
    def varying(self) -> tuple[str, ...]:
        """Dims that some buffer is made of; of a Triton kernel, all."""
        if self.signature is None:
            return tuple(self.inputs.dims)
        used = {word.strip() for shape in self.extents.values() for extent in shape for word in extent.split("*")}
        return tuple(name for name in self.inputs.dims if name in used)


def _elements(extents: Sequence[str], dims: Mapping[str, int]) -> int:
    words = [word.strip() for extent in extents for word in extent.split("*")]
    return prod(int(word) if word.isdigit() else dims[word] for word in words)


def _width(pointer: Parameter) -> int:
    """Bytes of one element: what its dtype's name says, as in ``float8_e4m3fn``."""
    bits = _BITS.search(pointer.dtype)
    return int(bits[0]) // 8 if bits else 1

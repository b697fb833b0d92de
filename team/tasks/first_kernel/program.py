"""A function of tensors as a list of plain stages, each of which computes every element of one buffer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

import torch

from team.tasks.first_kernel.syntax import Expression, Syntax, scaled

Index = Sequence[Expression]
At = Callable[[Syntax, Index], Expression]
"""Spells the element at an index."""


@dataclass
class Buffer:
    """Memory of one tensor, contiguous."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def elements(self) -> int:
        """How many there are."""
        return prod(self.shape)


@dataclass(frozen=True)
class Value:
    """A tensor that may never be stored. ``lazy``: spelling an element computes something.

    ``buffer``: where it lies whole, in this order of elements. ``said``: what a lazy one computes, by its operators.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    at: At
    lazy: bool = False
    buffer: Buffer | None = None
    said: str = ""


@dataclass
class Stage:
    """``target[index] = finish(combine over loops of body)``; without ``loops``, ``target[index] = body``."""

    target: Buffer
    body: Callable[[Syntax, Index, Index], Expression]
    note: str
    loops: tuple[int, ...] = ()
    combine: str = ""
    finish: Callable[[Syntax, Expression], Expression] | None = None


@dataclass
class Program:
    """Arguments in their order, scratch memory, and the stages that fill the outputs."""

    inputs: list[Buffer] = field(default_factory=list[Buffer])
    outputs: list[Buffer] = field(default_factory=list[Buffer])
    scratch: list[Buffer] = field(default_factory=list[Buffer])
    stages: list[Stage] = field(default_factory=list[Stage])


def flat_index(shape: Sequence[int], index: Index) -> Expression:
    """Row-major position of ``index`` in ``shape``."""
    terms: list[str] = []
    stride = 1
    for size, one in zip(reversed(shape), reversed(index), strict=True):
        terms.insert(0, scaled(one if size != 1 else "0", stride))
        stride *= size
    return " + ".join(term for term in terms if term) or "0"


def stored(buffer: Buffer) -> Value:
    """A tensor that lies in memory."""

    def at(syntax: Syntax, index: Index) -> Expression:
        return syntax.load(buffer.name, flat_index(buffer.shape, index), buffer.dtype)

    return Value(buffer.shape, buffer.dtype, at, buffer=buffer)


def split_index(syntax: Syntax, flat: Expression, shape: Sequence[int]) -> list[Expression]:
    """The index in ``shape`` of a row-major position."""
    index: list[Expression] = []
    stride = 1
    outermost = next((place for place, size in enumerate(shape) if size != 1), 0)
    for place in range(len(shape) - 1, -1, -1):
        size = shape[place]
        if size == 1:
            index.insert(0, "0")
            continue
        moved = syntax.divided(flat, stride)
        index.insert(0, moved if place == outermost else syntax.remainder(moved, size))
        stride *= size
    return index

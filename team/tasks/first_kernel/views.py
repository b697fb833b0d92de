"""Operators that move no data: the same elements under another index."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from team.tasks.first_kernel.program import Index, Value, flat_index, split_index
from team.tasks.first_kernel.syntax import Expression, Syntax, enclosed, mark

Reindex = Callable[[Syntax, Index], list[Expression]]


def viewed(value: Value, shape: Sequence[int], reindex: Reindex) -> Value:
    """``value`` under another index."""

    def at(syntax: Syntax, index: Index) -> Expression:
        return value.at(syntax, reindex(syntax, index))

    return Value(tuple(shape), value.dtype, at, value.lazy, said=value.said)


def reshaped(value: Value, shape: Sequence[int]) -> Value:
    """The same elements in row-major order; dims that stay as they are are not taken apart."""
    groups = _groups(value.shape, shape)

    def reindex(syntax: Syntax, index: Index) -> list[Expression]:
        found: list[Expression] = []
        for (first, last), (begin, end) in groups:
            ours, theirs = value.shape[first:last], list(shape)[begin:end]
            inner = list(index)[begin:end]
            whole = [(size, one) for size, one in zip(theirs, inner, strict=True) if size != 1]
            if len(whole) == 1 and [size for size in ours if size != 1] == [whole[0][0]]:
                found += [whole[0][1] if size != 1 else "0" for size in ours]
            else:
                found += split_index(syntax, flat_index(theirs, inner), ours)
        return found

    return replace(viewed(value, shape, reindex), buffer=value.buffer)


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Runs of dims on both sides that hold as many elements as each other."""
    groups: list[tuple[tuple[int, int], tuple[int, int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        first, begin = i, j
        i, j = min(i + 1, len(old)), min(j + 1, len(new))
        while prod(old[first:i]) != prod(new[begin:j]):
            if (prod(old[first:i]) < prod(new[begin:j]) and i < len(old)) or j == len(new):
                i += 1
            else:
                j += 1
        groups.append(((first, i), (begin, j)))
    return groups


def permuted(value: Value, order: Sequence[int]) -> Value:
    """Dims in another order."""
    order = [one % len(value.shape) for one in order]

    def reindex(_: Syntax, index: Index) -> list[Expression]:
        return [index[order.index(place)] for place in range(len(order))]

    return viewed(value, [value.shape[one] for one in order], reindex)


def expanded(value: Value, shape: Sequence[int]) -> Value:
    """Dims of size 1 repeated, and new ones in front."""
    ahead = len(shape) - len(value.shape)
    target = [value.shape[place - ahead] if size == -1 else size for place, size in enumerate(shape)]

    def reindex(_: Syntax, index: Index) -> list[Expression]:
        return ["0" if size == 1 else one for size, one in zip(value.shape, list(index)[ahead:], strict=True)]

    return viewed(value, target, reindex)


def sliced(value: Value, dim: int, start: int, end: int, step: int) -> Value:
    """Every ``step``-th element of one dim from ``start`` to ``end``."""
    dim, size = dim % len(value.shape), value.shape[dim % len(value.shape)]
    start, end, step = slice(start, end, step).indices(size)
    shape = list(value.shape)
    shape[dim] = len(range(start, end, step))

    def reindex(_: Syntax, index: Index) -> list[Expression]:
        moved = enclosed(index[dim]) if step == 1 else f"{enclosed(index[dim])} * {mark(step)}"
        return [*list(index)[:dim], f"{moved} + {mark(start)}" if start else moved, *list(index)[dim + 1 :]]

    return viewed(value, shape, reindex)


def selected(value: Value, dim: int, position: int) -> Value:
    """One element of a dim, which disappears."""
    dim = dim % len(value.shape)
    position %= value.shape[dim]
    shape = value.shape[:dim] + value.shape[dim + 1 :]

    def reindex(_: Syntax, index: Index) -> list[Expression]:
        return [*list(index)[:dim], mark(position) if position else "0", *list(index)[dim:]]

    return viewed(value, shape, reindex)


def flipped(value: Value, dims: Sequence[int]) -> Value:
    """Dims in reverse."""
    turned = {one % len(value.shape) for one in dims}

    def reindex(_: Syntax, index: Index) -> list[Expression]:
        return [
            f"({mark(size - 1)} - {enclosed(one)})" if place in turned else one
            for place, (size, one) in enumerate(zip(value.shape, index, strict=True))
        ]

    return viewed(value, value.shape, reindex)

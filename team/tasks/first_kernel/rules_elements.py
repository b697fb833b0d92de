"""Rules of operators on elements, of constants, of views, and of those that put tensors together or look them up."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from team.tasks.first_kernel import views
from team.tasks.first_kernel.lower import Lowering, dtype_of, operator_of, rule, shape_of
from team.tasks.first_kernel.pointwise import BINARY, COMPARES, UNARY, power
from team.tasks.first_kernel.program import Index, Value
from team.tasks.first_kernel.syntax import Expression, Syntax, enclosed, mark

Operand = Value | float | int | bool


def spelled(operand: Operand, p: Syntax, index: Index, dtype: torch.dtype) -> Expression:
    """One operand of an elementwise operator at the result's index, in the type of ``dtype``."""
    if not isinstance(operand, Value):
        return p.literal(operand, dtype)
    at = ["0" if size == 1 else one for size, one in zip(reversed(operand.shape), reversed(index), strict=False)]
    read = operand.at(p, list(reversed(at)))
    floats = operand.dtype.is_floating_point, dtype.is_floating_point
    return read if floats[0] or not floats[1] else p.cast(read, dtype)


def _elementwise(node: Node, spell: Any, operands: Sequence[Operand], dtype: torch.dtype) -> Value:
    def at(p: Syntax, index: Index) -> Expression:
        return spell(p, dtype, *(spelled(one, p, index, dtype) for one in operands))

    return Value(shape_of(node), dtype_of(node), at, lazy=True, said=_said(node, operands))


def _said(node: Node, operands: Sequence[Operand]) -> str:
    """The operators of a chain, the first one first."""
    name = operator_of(node)
    before = [one.said for one in operands if isinstance(one, Value) and one.said]
    return ", ".join([*before, name])


def _computed(*operands: Operand) -> torch.dtype:
    """The dtype in which operands meet."""
    tensors = [one.dtype for one in operands if isinstance(one, Value)]
    floats = [one for one in tensors if one.is_floating_point]
    if floats:
        return max(floats, key=lambda one: one.itemsize)
    real = any(isinstance(one, float) for one in operands)
    return torch.float32 if real else max(tensors, key=lambda one: one.itemsize)


@rule(*UNARY)
def _unary(work: Lowering, node: Node, x: Value) -> Value:
    name = operator_of(node)
    dtype = dtype_of(node) if dtype_of(node) is not torch.bool else x.dtype
    return _elementwise(node, UNARY[name], [x], dtype)


@rule(*BINARY)
def _binary(work: Lowering, node: Node, left: Operand, right: Operand, **keywords: Any) -> Value:
    name = operator_of(node)
    if name == "mul" and right == 1 and isinstance(left, Value) and left.shape == shape_of(node):
        return left if left.dtype == dtype_of(node) else _converted(work, node, left)
    alpha, rounding = keywords.get("alpha", 1), keywords.get("rounding_mode")
    dtype = _computed(left, right) if name in COMPARES else dtype_of(node)

    def spell(p: Syntax, dtype: torch.dtype, a: Expression, b: Expression) -> Expression:
        if alpha != 1:
            b = p.infix("*", p.literal(alpha, dtype), b)
        result = BINARY[name](p, dtype, a, b)
        return p.call("floor", result) if rounding == "floor" and dtype.is_floating_point else result

    return _elementwise(node, spell, [left, right], dtype)


@rule("pow")
def _pow(work: Lowering, node: Node, x: Value, exponent: Operand) -> Value:
    def spell(p: Syntax, dtype: torch.dtype, base: Expression, *by: Expression) -> Expression:
        if by:
            return p.call("exp2", p.infix("*", by[0], p.call("log2", base)))
        return power(p, dtype, base, float(exponent))  # type: ignore[arg-type]

    return _elementwise(node, spell, [x, exponent] if isinstance(exponent, Value) else [x], dtype_of(node))


@rule("clamp", "clamp_min", "clamp_max")
def _clamp(work: Lowering, node: Node, x: Value, least: Any = None, most: Any = None, **named: Any) -> Value:
    if "clamp_max" in str(node.target):
        least, most = None, least
    least, most = named.get("min", least), named.get("max", most)

    def spell(p: Syntax, dtype: torch.dtype, value: Expression) -> Expression:
        if least is not None:
            value = p.call("maximum", value, p.literal(least, dtype))
        return value if most is None else p.call("minimum", value, p.literal(most, dtype))

    return _elementwise(node, spell, [x], dtype_of(node))


@rule("where")
def _where(work: Lowering, node: Node, condition: Value, yes: Operand, no: Operand) -> Value:
    dtype = dtype_of(node)

    def at(p: Syntax, index: Index) -> Expression:
        chosen = spelled(condition, p, index, torch.bool)
        return p.chosen(chosen, spelled(yes, p, index, dtype), spelled(no, p, index, dtype))

    return Value(shape_of(node), dtype, at, lazy=True)


@rule("_to_copy", "clone", "alias", "detach", "convert_element_type", "lift_fresh_copy", "contiguous")
def _converted(work: Lowering, node: Node, x: Value, *_: Any, **__: Any) -> Value:
    dtype = dtype_of(node)
    if dtype == x.dtype:
        return x
    said = ", ".join([*([x.said] if x.said else []), "cast"])
    return Value(x.shape, dtype, lambda p, index: p.cast(x.at(p, index), dtype), lazy=True, said=said)


@rule("copy")
def _copy(work: Lowering, node: Node, target: Value, source: Value, *_: Any) -> Value:
    """What ``target`` holds once ``source`` was written over all of it."""
    whole = views.expanded(source, target.shape) if source.shape != target.shape else source
    return whole if whole.dtype == target.dtype else _converted(work, node, whole)


# ---------------------------------------------------------------- constants


@rule("full", "full_like", "scalar_tensor", "zeros", "zeros_like", "ones", "ones_like", "new_zeros", "new_ones")
def _constant(work: Lowering, node: Node, *arguments: Any, **_: Any) -> Value:
    name = operator_of(node)
    number = 0.0 if "zeros" in name else 1.0 if "ones" in name else arguments[-1]
    dtype = dtype_of(node)
    return Value(shape_of(node), dtype, lambda p, _: p.literal(number, dtype))


@rule("arange")
def _arange(work: Lowering, node: Node, start: int, end: int | None = None, step: int = 1, **_: Any) -> Value:
    first = 0 if end is None else start
    dtype = dtype_of(node)

    def at(p: Syntax, index: Index) -> Expression:
        moved = index[0] if step == 1 else f"{enclosed(index[0])} * {step}"
        return p.cast(f"{moved} + {first}" if first else moved, dtype)

    return Value(shape_of(node), dtype, at)


# ---------------------------------------------------------------- views


@rule("view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "flatten", "_reshape_alias")
def _view(work: Lowering, node: Node, x: Value, *_: Any) -> Value:
    return views.reshaped(x, shape_of(node))


@rule("permute", "t", "transpose")
def _permute(work: Lowering, node: Node, x: Value, *order: Any) -> Value:
    dims = list(range(len(x.shape)))
    if len(order) == 1:
        dims = list(order[0])
    elif order:
        a, b = (one % len(dims) for one in order)
        dims[a], dims[b] = dims[b], dims[a]
    else:
        dims = dims[::-1]
    return views.permuted(x, dims)


@rule("expand")
def _expand(work: Lowering, node: Node, x: Value, *_: Any, **__: Any) -> Value:
    return views.expanded(x, shape_of(node))


@rule("slice")
def _slice(
    work: Lowering, node: Node, x: Value, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Value:
    size = x.shape[dim]
    return views.sliced(x, dim, start or 0, size if end is None else min(end, size), step)


@rule("select")
def _select(work: Lowering, node: Node, x: Value, dim: int, position: int) -> Value:
    return views.selected(x, dim, position)


@rule("flip")
def _flip(work: Lowering, node: Node, x: Value, dims: Sequence[int]) -> Value:
    return views.flipped(x, dims)


@rule("split", "split_with_sizes", "chunk", "unbind")
def _split(work: Lowering, node: Node, x: Value, sizes: Any = None, dim: int = 0) -> list[Value]:
    if "unbind" in str(node.target):
        dim = sizes or 0
        return [views.selected(x, dim, place) for place in range(x.shape[dim])]
    lengths = [tuple(one.shape)[dim] for one in node.meta["val"]]
    starts = [sum(lengths[:place]) for place in range(len(lengths))]
    return [views.sliced(x, dim, start, start + size, 1) for start, size in zip(starts, lengths, strict=True)]


# ---------------------------------------------------------------- put together, looked up


@rule("cat")
def _cat(work: Lowering, node: Node, parts: Sequence[Value], dim: int = 0) -> Value:
    whole = shape_of(node)
    dim %= len(whole)
    parts = [one for one in parts if one.shape != (0,)]

    def at(p: Syntax, index: Index, _: Index) -> Expression:
        def read(place: int, start: int) -> Expression:
            part = parts[place]
            here = f"{enclosed(index[dim])} - {mark(start)}" if start else index[dim]
            moved = [*list(index)[:dim], "0" if part.shape[dim] == 1 else here, *list(index)[dim + 1 :]]
            if place == len(parts) - 1:
                return (
                    p.guarded(f"{index[dim]} >= {mark(start)}", lambda: part.at(p, moved), "0")
                    if start
                    else part.at(p, moved)
                )
            end = start + part.shape[dim]
            inside = f"{index[dim]} < {mark(end)}"
            if start:
                inside = f"({inside}) & ({index[dim]} >= {mark(start)})"
            return p.guarded(inside, lambda: part.at(p, moved), read(place + 1, end))

        return read(0, 0)

    return work.stage("cat", whole, dtype_of(node), at)


@rule("embedding")
def _embedding(work: Lowering, node: Node, table: Value, ids: Value, *_: Any) -> Value:
    table = work.real(table)
    depth = len(ids.shape)

    def at(p: Syntax, index: Index) -> Expression:
        return table.at(p, [ids.at(p, list(index)[:depth]), *list(index)[depth:]])

    return Value(shape_of(node), dtype_of(node), at, lazy=True)


@rule("gather")
def _gather(work: Lowering, node: Node, x: Value, dim: int, ids: Value, **_: Any) -> Value:
    x, dim = work.real(x), dim % len(x.shape)

    def at(p: Syntax, index: Index) -> Expression:
        inner = ["0" if size == 1 else one for size, one in zip(x.shape, index, strict=True)]
        inner[dim] = ids.at(p, index)
        return x.at(p, inner)

    return Value(shape_of(node), dtype_of(node), at, lazy=True)


@rule("index")
def _index(work: Lowering, node: Node, x: Value, indices: Sequence[Value | None]) -> Value:
    given = [place for place, one in enumerate(indices) if one is not None]
    ids = [one for one in indices if one is not None]
    first, depth = given[0], max(len(one.shape) for one in ids)
    if given != list(range(first, first + len(given))):
        first = 0
    x = work.real(x)

    def at(p: Syntax, index: Index) -> Expression:
        looked = list(index)[first : first + depth]
        others = iter([*list(index)[:first], *list(index)[first + depth :]])
        found = iter(spelled(one, p, looked, one.dtype) for one in ids)
        return x.at(p, [next(found) if place in given else next(others) for place in range(len(x.shape))])

    return Value(shape_of(node), dtype_of(node), at, lazy=True)


@rule("constant_pad_nd")
def _pad(work: Lowering, node: Node, x: Value, pads: Sequence[int], number: float = 0.0) -> Value:
    before = [0] * len(x.shape)
    for place in range(len(pads) // 2):
        before[len(x.shape) - 1 - place] = pads[2 * place]
    touched = {len(x.shape) - 1 - place for place in range(len(pads) // 2)}

    def at(p: Syntax, index: Index, _: Index) -> Expression:
        moved = [f"({one} - {mark(ahead)})" if ahead else one for one, ahead in zip(index, before, strict=True)]
        inside = [f"({moved[one]} >= 0) & ({moved[one]} < {mark(x.shape[one])})" for one in sorted(touched)]
        return p.guarded(" & ".join(inside), lambda: x.at(p, moved), p.literal(number, x.dtype))

    return work.stage("pad", shape_of(node), dtype_of(node), at)

"""Rules of operators that fold whole dims: sums, extrema, variances, running sums."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch.fx import Node

from team.tasks.first_kernel.lower import Lowering, dtype_of, operator_of, rule, shape_of
from team.tasks.first_kernel.program import Index, Value
from team.tasks.first_kernel.syntax import Expression, Syntax, mark

Finish = Callable[[Syntax, Expression], Expression]


def folded(
    work: Lowering,
    wish: str,
    x: Value,
    dims: Sequence[int] | None,
    kept: bool,
    dtype: torch.dtype,
    combine: str = "sum",
    finish: Finish | None = None,
    each: Callable[[Syntax, Index, Expression], Expression] | None = None,
) -> Value:
    """Fold ``dims`` of ``x`` (all, where none are named); ``each`` changes an element before it is folded."""
    rank = len(x.shape)
    gone = sorted(one % rank for one in dims) if dims else list(range(rank))
    shape = [1 if place in gone else size for place, size in enumerate(x.shape) if kept or place not in gone]
    loops = tuple(x.shape[one] for one in gone)

    def body(p: Syntax, index: Index, inner: Index) -> Expression:
        outer, turns = iter(index), iter(inner)
        whole: list[Expression] = []
        for place in range(rank):
            if place in gone:
                whole.append(next(turns))
                if kept:
                    next(outer)
            else:
                whole.append(next(outer))
        read = x.at(p, whole)
        return each(p, whole, read) if each else read

    return work.stage(wish, shape, dtype, body, loops=loops, combine=combine, finish=finish)


def _divisor(x: Value, dims: Sequence[int] | None) -> int:
    return prod(x.shape[one] for one in dims) if dims else prod(x.shape)


def _over(count: Expression) -> Finish:
    """Divide by a count, which is an integer."""
    return lambda p, total: p.infix("/", total, count)


@rule("sum")
def _sum(work: Lowering, node: Node, x: Value, dims: Any = None, kept: bool = False, **_: Any) -> Value:
    each = None if x.dtype.is_floating_point == dtype_of(node).is_floating_point else _as(dtype_of(node))
    return folded(work, "sum", x, dims, kept, dtype_of(node), each=each)


def _as(dtype: torch.dtype) -> Callable[[Syntax, Index, Expression], Expression]:
    return lambda p, _, read: p.cast(read, dtype)


@rule("mean")
def _mean(work: Lowering, node: Node, x: Value, dims: Any = None, kept: bool = False, **_: Any) -> Value:
    count = mark(_divisor(x, dims))
    return folded(work, "mean", x, dims, kept, dtype_of(node), finish=_over(count))


@rule("amax", "amin", "prod", "any", "all")
def _extreme(work: Lowering, node: Node, x: Value, dims: Any = None, kept: bool = False, **_: Any) -> Value:
    name = operator_of(node)
    named = [dims] if isinstance(dims, int) else dims
    combine = {"amax": "max", "amin": "min", "all": "min", "any": "max"}.get(name, name)
    return folded(work, name, x, named, kept, dtype_of(node), combine)


@rule("max", "min")
def _max(work: Lowering, node: Node, x: Value, dim: int | None = None, kept: bool = False) -> Any:
    name = operator_of(node)
    if dim is None:
        return folded(work, name, x, None, kept, x.dtype, name)
    best = folded(work, name, x, [dim], kept, x.dtype, name)
    return [best, _place_of(work, node, x, dim, kept, name, 1) if _is_used(node, 1) else None]


@rule("argmax", "argmin")
def _argmax(work: Lowering, node: Node, x: Value, dim: int, kept: bool = False) -> Value:
    return _place_of(work, node, x, dim, kept, "max" if "argmax" in str(node.target) else "min", None)


def _place_of(work: Lowering, node: Node, x: Value, dim: int, kept: bool, which: str, result: int | None) -> Value:
    """The first place along ``dim`` that holds the extremum: the smallest index among those that equal it."""
    x = work.real(x)
    dim %= len(x.shape)
    best = folded(work, f"best{which}", x, [dim], True, x.dtype, which)
    size = x.shape[dim]

    def each(p: Syntax, whole: Index, read: Expression) -> Expression:
        top = best.at(p, [*list(whole)[:dim], "0", *list(whole)[dim + 1 :]])
        return p.chosen(f"{read} == {top}", whole[dim], mark(size))

    return folded(work, f"arg{which}", x, [dim], kept, dtype_of(node, result), "min", each=each)


def _is_used(node: Node, place: int) -> bool:
    return any(user.args[1] == place for user in node.users)


@rule("var", "var_mean")
def _var(work: Lowering, node: Node, x: Value, dims: Any = None, **named: Any) -> Any:
    correction = named.get("correction", 1)
    correction, kept = 1 if correction is None else int(correction), named.get("keepdim", False)
    dims = dims or list(range(len(x.shape)))
    x = work.real(x)
    count = _divisor(x, dims)
    mean = folded(work, "mean", x, dims, True, x.dtype, finish=_over(mark(count)))
    gone = {one % len(x.shape) for one in dims}

    def each(p: Syntax, whole: Index, read: Expression) -> Expression:
        middle = mean.at(p, ["0" if place in gone else one for place, one in enumerate(whole)])
        away = p.infix("-", read, middle)
        return p.infix("*", away, away)

    divisor = f"({mark(count)} - {correction})" if correction else mark(count)
    var = folded(work, "var", x, dims, kept, x.dtype, finish=_over(divisor), each=each)
    if "var_mean" not in str(node.target):
        return var
    from team.tasks.first_kernel.views import reshaped

    return [var, reshaped(mean, shape_of(node, 1))]


@rule("cumsum", "cumprod")
def _cumsum(work: Lowering, node: Node, x: Value, dim: int, **_: Any) -> Value:
    name = operator_of(node)
    x, dtype = work.real(x), dtype_of(node)
    dim %= len(x.shape)
    neutral = 0 if name == "cumsum" else 1

    def body(p: Syntax, index: Index, inner: Index) -> Expression:
        whole = [*list(index)[:dim], inner[0], *list(index)[dim + 1 :]]
        return p.guarded(f"{inner[0]} <= {index[dim]}", lambda: x.at(p, whole), p.literal(neutral, dtype))

    combine = "sum" if name == "cumsum" else "prod"
    return work.stage(name, x.shape, dtype, body, loops=(x.shape[dim],), combine=combine)

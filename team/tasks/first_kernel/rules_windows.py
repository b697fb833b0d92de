"""Rules of operators that look at a window around every element: convolutions and pools, of any number of dims."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from torch.fx import Node

from team.errors import UserError
from team.tasks.first_kernel.lower import Lowering, dtype_of, rule, shape_of
from team.tasks.first_kernel.program import Index, Value
from team.tasks.first_kernel.syntax import Expression, Syntax, enclosed, mark, scaled


def _each(value: int | Sequence[int], dims: int) -> list[int]:
    found = [value] if isinstance(value, int) else list(value)
    return found * dims if len(found) == 1 else found


def _moved(index: Expression, stride: int, inner: Expression, dilation: int, padding: int) -> Expression:
    """Where a window's element lies."""
    terms = [one for one in (scaled(index, stride), scaled(inner, dilation)) if one]
    return " + ".join(terms or ["0"]) + (f" - {mark(padding)}" if padding else "")


def _inside(
    p: Syntax,
    places: Sequence[Expression],
    sizes: Sequence[int],
    checked: Sequence[bool],
    read: Callable[[], str],
    other: str,
) -> Expression:
    """``read``, or ``other`` where a place lies beyond the tensor."""
    tests = [
        f"({one} >= 0) & ({one} < {mark(size)})"
        for one, size, needed in zip(places, sizes, checked, strict=True)
        if needed
    ]
    return p.guarded(" & ".join(tests), read, other) if tests else read()


@rule("convolution")
def _convolution(
    work: Lowering,
    node: Node,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Value:
    """Sum over input channels and window; the bias is added at the end."""
    x, weight = work.real(x), work.real(weight)
    dims = len(x.shape) - 2
    stride, padding, dilation = (_each(one, dims) for one in (stride, padding, dilation))
    kernel = weight.shape[2:]
    shape = shape_of(node)
    along = list(zip(stride, dilation, padding, x.shape[2:], strict=True))
    read = _products(x, weight, along, groups, shape, transposed)
    channels = x.shape[1] // groups
    total = work.stage("conv", shape, dtype_of(node), read, loops=(channels, *kernel), combine="sum", finish=None)
    if bias is None:
        return total

    def at(p: Syntax, index: Index) -> Expression:
        return p.infix("+", total.at(p, index), bias.at(p, [index[1]]))

    return Value(shape, dtype_of(node), at, lazy=True)


def _products(
    x: Value,
    weight: Value,
    along: Sequence[tuple[int, int, int, int]],
    groups: int,
    shape: tuple[int, ...],
    transposed: bool,
) -> Callable[[Syntax, Index, Index], Expression]:
    """One input times its weight. ``along``: stride, dilation, padding and the input's size of each dim."""
    per_group, channels = shape[1] // groups, x.shape[1] // groups
    place = _transposed if transposed else _straight

    def body(p: Syntax, index: Index, inner: Index) -> Expression:
        (batch, out, *spots), (channel, *window) = index, inner
        found = [place(p, spot, w, *one) for spot, w, one in zip(spots, window, along, strict=True)]
        places, tests = [one for one, _ in found], [test for _, tests in found for test in tests]
        source = _channel(p, out, channel, per_group, channels, groups)
        pair = [source, out if groups == 1 else p.remainder(out, per_group)] if transposed else [out, channel]

        def read() -> Expression:
            return p.infix("*", x.at(p, [batch, source, *places]), weight.at(p, [*pair, *window]))

        return p.guarded(" & ".join(tests), read, p.literal(0.0, x.dtype)) if tests else read()

    return body


def _straight(
    p: Syntax, spot: Expression, window: Expression, stride: int, dilation: int, padding: int, size: int
) -> tuple[Expression, list[Expression]]:
    """Where a window's element lies along one dim, and what must hold for it to be inside."""
    place = _moved(spot, stride, window, dilation, padding)
    return place, [f"({place} >= 0)", f"({place} < {mark(size)})"] if padding > 0 else []


def _transposed(
    p: Syntax, spot: Expression, window: Expression, stride: int, dilation: int, padding: int, size: int
) -> tuple[Expression, list[Expression]]:
    """Which input reaches the output through a window's element, along one dim, and what must hold for one to do so."""
    reach = scaled(window, dilation) or "0"
    away = f"({enclosed(spot)} + {mark(padding)} - ({reach}))" if padding else f"({spot} - ({reach}))"
    place = p.divided(away, stride)
    whole = [f"({p.remainder(away, stride)} == 0)"] if stride > 1 else []
    return place, [f"({away} >= 0)", *whole, f"({place} < {mark(size)})"]


def _channel(p: Syntax, out: Expression, channel: Expression, per_group: int, channels: int, groups: int) -> Expression:
    """The input channel that ``channel`` of an output's group is."""
    if groups == 1:
        return channel
    group = p.divided(out, per_group)
    return group if channels == 1 else f"{enclosed(group)} * {mark(channels)} + {channel}"


@rule("max_pool2d_with_indices", "max_pool3d_with_indices")
def _max_pool(
    work: Lowering, node: Node, x: Value, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, *_: Any
) -> Any:
    if any(user.args[1] == 1 for user in node.users):
        raise UserError(
            "The places that a max pool found are used.",
            "Write a kernel, and make a task of that: kernelteam init KERNEL_FILE",
        )
    dims = 3 if "3d" in str(node.target) else 2
    return [_pool(work, node, x, dims, kernel, stride, padding, dilation, "max", 0), None]


@rule("avg_pool2d", "avg_pool3d", "avg_pool1d")
def _avg_pool(
    work: Lowering,
    node: Node,
    x: Value,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_pad: bool = True,
    divisor: int | None = None,
) -> Value:
    dims = int(str(node.target).split("avg_pool")[1][0])
    pads = any(_each(padding, dims))
    if ceil_mode or (pads and not count_pad):
        raise UserError(
            "An average pool leaves out its padding.",
            "Write a kernel, and make a task of that: kernelteam init KERNEL_FILE",
        )
    count = divisor or prod(_each(kernel, dims))
    return _pool(work, node, x, dims, kernel, stride, padding, 1, "sum", None, count)


def _pool(
    work: Lowering,
    node: Node,
    x: Value,
    dims: int,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    combine: str,
    result: int | None,
    count: int = 0,
) -> Value:
    x = work.real(x)
    kernel = _each(kernel, dims)
    stride = _each(stride, dims) if stride else kernel
    padding, dilation = _each(padding, dims), _each(dilation, dims)
    shape, dtype = shape_of(node, result), dtype_of(node, result)

    def body(p: Syntax, index: Index, inner: Index) -> Expression:
        before, spots = list(index)[:-dims], list(index)[-dims:]
        places = [
            _moved(spot, s, w, d, pad)
            for spot, s, w, d, pad in zip(spots, stride, inner, dilation, padding, strict=True)
        ]
        rest = float("-inf") if combine == "max" else 0.0
        needed = [
            pad > 0 or (size_out - 1) * s + (k - 1) * d - pad >= size
            for pad, size_out, s, k, d, size in zip(
                padding, shape[-dims:], stride, kernel, dilation, x.shape[-dims:], strict=True
            )
        ]
        return _inside(
            p, places, x.shape[-dims:], needed, lambda: x.at(p, [*before, *places]), p.literal(rest, x.dtype)
        )

    finish = (lambda p, total: p.infix("/", total, mark(count))) if count else None
    wish = f"{combine}_pool" if combine == "max" else "mean_pool"
    return work.stage(wish, shape, dtype, body, loops=tuple(kernel), combine=combine, finish=finish)


@rule("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d")
def _adaptive(work: Lowering, node: Node, x: Value, *_: Any) -> Value:
    shape = shape_of(node)
    dims = 3 if "3d" in str(node.target) else 1 if "1d" in str(node.target) else 2
    sizes, wanted = x.shape[-dims:], shape[-dims:]
    if any(size % want for size, want in zip(sizes, wanted, strict=True)):
        raise UserError(
            "An adaptive pool has unequal windows.",
            "Write a kernel, and make a task of that: kernelteam init KERNEL_FILE",
        )
    kernel = [size // want for size, want in zip(sizes, wanted, strict=True)]
    return _pool(work, node, x, dims, kernel, kernel, 0, 1, "sum", None, prod(kernel))

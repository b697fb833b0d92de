"""Operators whose every element depends on one element of each operand: one row each, spelled by a ``Syntax``."""

from collections.abc import Callable

import torch

from team.tasks.first_kernel.syntax import Expression, Syntax

Spell = Callable[..., Expression]


def _called(function: str) -> Spell:
    return lambda p, _dtype, *values: p.call(function, *values)


def _infix(operator: str) -> Spell:
    return lambda p, _dtype, left, right: p.infix(operator, left, right)


def _relu(p: Syntax, dtype: torch.dtype, x: Expression) -> Expression:
    return p.call("maximum", x, p.literal(0.0, dtype))


def _silu(p: Syntax, _dtype: torch.dtype, x: Expression) -> Expression:
    return p.infix("*", x, p.call("sigmoid", x))


def _sign(p: Syntax, dtype: torch.dtype, x: Expression) -> Expression:
    zero, one, minus = (p.literal(value, dtype) for value in (0, 1, -1))
    return p.chosen(f"{x} > {zero}", one, p.chosen(f"{x} < {zero}", minus, zero))


def power(p: Syntax, dtype: torch.dtype, x: Expression, exponent: float) -> Expression:
    """``x`` to a power that is a number of the graph."""
    if exponent == 0.5:
        return p.call("sqrt", x)
    if exponent == -0.5:
        return p.call("rsqrt", x)
    if float(exponent).is_integer() and 1 <= abs(exponent) <= 4:
        product = " * ".join([x] * int(abs(exponent)))
        return f"({product})" if exponent > 0 else p.infix("/", p.literal(1.0, dtype), f"({product})")
    scaled = p.infix("*", p.literal(exponent, dtype), p.call("log2", x))
    return p.call("exp2", scaled)


_PLAIN = (
    *("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid", "abs", "floor", "ceil"),
    *("expm1", "log1p", "round"),
)
UNARY: dict[str, Spell] = {name: _called(name) for name in _PLAIN} | {
    "relu": _relu,
    "silu": _silu,
    "sign": _sign,
    "neg": lambda p, _dtype, x: f"(-{x})",
    "reciprocal": lambda p, dtype, x: p.infix("/", p.literal(1.0, dtype), x),
    "logical_not": lambda p, _dtype, x: f"({x} == 0)",
    "square": lambda p, _dtype, x: p.infix("*", x, x),
    "isnan": lambda p, _dtype, x: f"({x} != {x})",
}
BINARY: dict[str, Spell] = {
    "mul": _infix("*"),
    "div": _infix("/"),
    "maximum": _called("maximum"),
    "minimum": _called("minimum"),
    "eq": _infix("=="),
    "ne": _infix("!="),
    "lt": _infix("<"),
    "le": _infix("<="),
    "gt": _infix(">"),
    "ge": _infix(">="),
    "logical_and": _infix("&"),
    "logical_or": _infix("|"),
    "bitwise_and": _infix("&"),
    "bitwise_or": _infix("|"),
    "add": _infix("+"),
    "sub": _infix("-"),
}
COMPARES = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})

"""How an expression over tensors is spelled: in C++ and CUDA, and in Triton.

Sizes are written as marks (``mark``), so that several traces of one function at different sizes give texts that differ
in their marks alone; ``dims`` replaces each mark by a number or by a product of named dims.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

Expression = str
_WORD = re.compile(r"[\w.⟦⟧]+\Z")
_MOVING = re.compile(r"\b(i\d+|at)\b")


def mark(size: int) -> Expression:
    """A size, to be named later."""
    return f"⟦{size}⟧"


def enclosed(text: Expression) -> Expression:
    """The expression in parentheses where it needs them."""
    return text if _WORD.match(text) else f"({text})"


def scaled(index: Expression, size: int) -> Expression:
    """``index * size``; empty for zero."""
    if index == "0":
        return ""
    return index if size == 1 else f"{enclosed(index)} * {mark(size)}"


class Syntax(ABC):
    """One language. ``real`` is how a float dtype is computed with: float, or double for float64."""

    @abstractmethod
    def load(self, name: str, flat: Expression, dtype: torch.dtype) -> Expression:
        """The element ``flat`` of a buffer, in the type that is computed with."""

    @abstractmethod
    def literal(self, value: float, dtype: torch.dtype) -> Expression:
        """A number of the graph."""

    @abstractmethod
    def chosen(self, condition: Expression, yes: Expression, no: Expression) -> Expression:
        """Both may be evaluated."""

    @abstractmethod
    def guarded(self, condition: Expression, yes: Callable[[], Expression], no: Expression) -> Expression:
        """``yes`` is read only where the condition holds."""

    @abstractmethod
    def divided(self, index: Expression, size: int) -> Expression:
        """Integer division of a non-negative index."""

    @abstractmethod
    def call(self, function: str, *arguments: Expression) -> Expression:
        """A function of numbers by its common name, such as ``exp`` or ``maximum``."""

    @abstractmethod
    def cast(self, value: Expression, dtype: torch.dtype) -> Expression:
        """To the type that ``dtype`` is computed with."""

    def remainder(self, index: Expression, size: int) -> Expression:
        """Of a non-negative index."""
        return f"{enclosed(index)} % {mark(size)}"

    def infix(self, operator: str, left: Expression, right: Expression) -> Expression:
        """An operator that is spelled alike everywhere."""
        return f"({left} {operator} {right})"


_C_SPELLED = {"abs": "fabs", "maximum": "fmax", "minimum": "fmin", "round": "rint"}
_C_TYPES = {
    torch.float64: "double",
    torch.bool: "bool",
    torch.int64: "long long",
    torch.int32: "int",
    torch.int16: "short",
    torch.int8: "signed char",
    torch.uint8: "unsigned char",
}


def c_real(dtype: torch.dtype) -> str:
    """The C type in which values of ``dtype`` are computed with."""
    return _C_TYPES.get(dtype, "float")


class CSyntax(Syntax):
    """C++ and CUDA."""

    def load(self, name: str, flat: Expression, dtype: torch.dtype) -> Expression:
        """See ``Syntax``."""
        element = f"{name}[{flat}]"
        return f"float({element})" if dtype in (torch.float16, torch.bfloat16) else element

    def literal(self, value: float, dtype: torch.dtype) -> Expression:
        """See ``Syntax``."""
        if not dtype.is_floating_point:
            return str(int(value))
        if math.isinf(value):
            return "INFINITY" if value > 0 else "-INFINITY"
        text = repr(float(value))
        return text if dtype is torch.float64 else f"{text}f"

    def chosen(self, condition: Expression, yes: Expression, no: Expression) -> Expression:
        """See ``Syntax``."""
        return f"({condition} ? {yes} : {no})"

    def guarded(self, condition: Expression, yes: Callable[[], Expression], no: Expression) -> Expression:
        """See ``Syntax``."""
        return self.chosen(condition, yes(), no)

    def divided(self, index: Expression, size: int) -> Expression:
        """See ``Syntax``."""
        return index if size == 1 else f"{enclosed(index)} / {mark(size)}"

    def call(self, function: str, *arguments: Expression) -> Expression:
        """See ``Syntax``; in single precision, save where an argument is a double."""
        if function == "sigmoid":
            return f"(1.0f / (1.0f + expf(-({arguments[0]}))))"
        if function == "rsqrt":
            return f"(1.0f / sqrtf({arguments[0]}))"
        return f"{_C_SPELLED.get(function, function)}f({', '.join(arguments)})"

    def cast(self, value: Expression, dtype: torch.dtype) -> Expression:
        """See ``Syntax``."""
        return f"({c_real(dtype)})({value})"


_TRITON_SPELLED = {
    "abs": "tl.abs({0})",
    "tanh": "(2.0 * tl.sigmoid(2.0 * ({0})) - 1.0)",
    "expm1": "(tl.exp({0}) - 1.0)",
    "log1p": "tl.log(1.0 + ({0}))",
    "round": "tl.floor(({0}) + 0.5)",
}
_TRITON_TYPES = {torch.float64: "tl.float64", torch.bool: "tl.int1", torch.float16: "tl.float16"}


def triton_type(dtype: torch.dtype) -> str:
    """Triton's name of a stored dtype."""
    return _TRITON_TYPES.get(dtype) or f"tl.{str(dtype).removeprefix('torch.')}"


def triton_real(dtype: torch.dtype) -> str:
    """Triton's type in which values of ``dtype`` are computed with."""
    narrow = dtype.is_floating_point and dtype is not torch.float64
    return "tl.float32" if narrow else triton_type(dtype)


class TritonSyntax(Syntax):
    """The body of a kernel whose program computes a block of elements; ``live`` is true for those that exist."""

    def __init__(self) -> None:
        self._conditions: list[Expression] = []

    def load(self, name: str, flat: Expression, dtype: torch.dtype) -> Expression:
        """See ``Syntax``. What is alike for the whole block is loaded once."""
        conditions = list(self._conditions)
        if _MOVING.search(flat) or any(_MOVING.search(one) for one in conditions):
            flat = flat if _MOVING.search(flat) else f"{flat} + 0 * at"
            conditions.insert(0, "live")
        masked = f", mask={' & '.join(conditions)}, other=0" if conditions else ""
        element = f"tl.load({name} + {flat}{masked})"
        if dtype is torch.bool:
            return f"({element} != 0)"
        return f"{element}.to(tl.float32)" if dtype in (torch.float16, torch.bfloat16) else element

    def literal(self, value: float, dtype: torch.dtype) -> Expression:
        """See ``Syntax``."""
        if not dtype.is_floating_point:
            return str(int(value))
        return f'float("{value}")' if math.isinf(value) else repr(float(value))

    def chosen(self, condition: Expression, yes: Expression, no: Expression) -> Expression:
        """See ``Syntax``."""
        return f"tl.where({condition}, {yes}, {no})"

    def guarded(self, condition: Expression, yes: Callable[[], Expression], no: Expression) -> Expression:
        """See ``Syntax``."""
        with self._where(condition):
            read = yes()
        return self.chosen(condition, read, no)

    @contextmanager
    def _where(self, condition: Expression) -> Iterator[None]:
        self._conditions.append(f"({condition})")
        yield
        self._conditions.pop()

    def divided(self, index: Expression, size: int) -> Expression:
        """See ``Syntax``."""
        return index if size == 1 else f"{enclosed(index)} // {mark(size)}"

    def call(self, function: str, *arguments: Expression) -> Expression:
        """See ``Syntax``."""
        spelled = _TRITON_SPELLED.get(function)
        return spelled.format(*arguments) if spelled else f"tl.{function}({', '.join(arguments)})"

    def cast(self, value: Expression, dtype: torch.dtype) -> Expression:
        """See ``Syntax``."""
        if dtype is torch.bool:
            return f"({value} != 0)"
        return f"({value}).to({triton_real(dtype)})"

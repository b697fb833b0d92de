"""Lets Triton's interpreter compute with bfloat16: it keeps the bits of such values, adds and multiplies those,
and cuts them off where hardware rounds.

Not trusted: lives in the interpreting process, beside the candidate. Values are widened to float32 for each operation
and rounded to the nearest afterwards; a product of matrices is summed in float32, as tensor cores do.
"""

from typing import Any

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter

_BUILDER: Any = interpreter.InterpreterBuilder
_Handle: Any = interpreter.TensorHandle


def mend() -> None:
    """Replace the interpreter's operations by ones that know bfloat16."""
    binary, unary, dot, cast = _BUILDER.binary_op, _BUILDER.unary_op, _BUILDER.create_dot, _BUILDER.cast_impl

    def binary_op(self: Any, lhs: Any, rhs: Any, op: Any) -> Any:
        if not (_is_narrow(lhs) and _is_narrow(rhs)) or op in (np.bitwise_and, np.bitwise_or, np.bitwise_xor):
            return binary(self, lhs, rhs, op)
        return _narrowed(op(_wide(lhs), _wide(rhs)))

    def unary_op(self: Any, arg: Any, op: Any) -> Any:
        return _narrowed(op(_wide(arg))) if _is_narrow(arg) else unary(self, arg, op)

    def create_fma(self: Any, x: Any, y: Any, z: Any) -> Any:
        found = _wide(x) * _wide(y) + _wide(z)
        return _narrowed(found) if _is_narrow(z) else _Handle(found, z.dtype.scalar)

    def create_dot(self: Any, a: Any, b: Any, d: Any, *more: Any) -> Any:
        if not (_is_narrow(a) and _is_narrow(b)):
            return dot(self, a, b, d, *more)
        product = np.matmul(_wide(a), _wide(b), dtype=np.float32)
        return _narrowed(product + _wide(d)) if _is_narrow(d) else _Handle(product + d.data, d.dtype.scalar)

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        if src.dtype.scalar == tl.float32 and dst_type.scalar == tl.bfloat16:
            return _narrowed(src.data)
        if _is_narrow(src) and dst_type.scalar == tl.float32:
            return _Handle(_wide(src), tl.float32)
        return cast(self, src, dst_type)

    _BUILDER.binary_op, _BUILDER.unary_op, _BUILDER.cast_impl = binary_op, unary_op, cast_impl
    _BUILDER.create_fma, _BUILDER.create_dot = create_fma, create_dot


def _is_narrow(handle: Any) -> bool:
    return handle.dtype.scalar == tl.bfloat16


def _wide(handle: Any) -> Any:
    """Values to compute with: those of bfloat16 as float32, others as they are."""
    return (handle.data.astype(np.uint32) << 16).view(np.float32) if _is_narrow(handle) else handle.data


def _narrowed(values: Any) -> Any:
    """A handle of bfloat16 values, rounded to the nearest, ties to even; of truth values, as they are."""
    if values.dtype != np.float32:
        return _Handle(values, tl.bfloat16)
    bits = np.ascontiguousarray(values).view(np.uint32).reshape(values.shape)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return _Handle(np.where(np.isnan(values), np.uint16(0x7FC0), rounded), tl.bfloat16)

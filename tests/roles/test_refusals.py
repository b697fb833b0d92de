"""Kernels that a transform must leave alone, each with the reason why the edit would be wrong or is not proven."""

import pytest

from roles.techniques.cpp.hoist import HoistCall, HoistReciprocal
from roles.techniques.cpp.interchange import LoopInterchange
from roles.techniques.cpp.pragmas import OmpSimd
from roles.techniques.cpp.register_block import RegisterBlock
from roles.techniques.cpp.split_accumulator import SplitAccumulator
from roles.techniques.cpp.store_once import StoreOnce
from roles.techniques.cpp.vector_exp import VectorExp
from roles.techniques.transform import TreeTransform

STRUCTURAL = (RegisterBlock(), LoopInterchange())
REDUCING = (SplitAccumulator(), OmpSimd())


def matmul(body: str, head: str = "", name: str = "solve") -> str:
    return f"""
{head}
extern "C" void {name}(const float* A, const float* B, float* C, int M, int N, int K) {{
    for (int i = 0; i < M; i++) {{
        for (int j = 0; j < N; j++) {{
            float sum = 0.0f;
            {body}
        }}
    }}
}}
"""


def rows(body: str, head: str = "") -> str:
    return f"""
#include <cmath>
{head}
extern "C" void solve(const float* x, float* y, const int* p, int rows, int cols) {{
    for (int r = 0; r < rows; r++) {{
        {body}
    }}
}}
"""


STORE = "C[i * N + j] = sum;"
LOOP = "for (int k = 0; k < K; k++)"
REFUSED: dict[str, tuple[tuple[TreeTransform, ...], str]] = {
    "output is an input": (STRUCTURAL, matmul(f"{LOOP} {{ sum += A[i * K + k] * C[k * N + j]; }} {STORE}")),
    "break in the reduction": (
        (*STRUCTURAL, *REDUCING),
        matmul(f"{LOOP} {{ if (k == 3) break; sum += A[i * K + k] * B[k * N + j]; }} {STORE}"),
    ),
    "unknown call": (
        (*STRUCTURAL, *REDUCING),
        matmul(f"{LOOP} sum += next(A[i * K + k]); {STORE}", "float next(float);"),
    ),
    "triangular bound": (
        STRUCTURAL,
        matmul(f"for (int k = 0; k < j; k++) sum += A[i * K + k] * B[k * N + j]; {STORE}"),
    ),
    "outputs collide": (
        STRUCTURAL,
        matmul(f"{LOOP} sum += A[i * K + k] * B[k * N + j]; C[0] = sum;"),
    ),
    "pointers that may overlap": (
        (*STRUCTURAL, StoreOnce()),
        matmul(f"{LOOP} sum += A[i * K + k] * B[k * N + j]; {STORE}", name="product"),
    ),
    "accumulator in its own term": (
        (*STRUCTURAL, *REDUCING),
        matmul(f"{LOOP} sum += A[i * K + k] * sum; {STORE}"),
    ),
    "volatile accumulator": (
        REDUCING,
        rows("volatile float s = 0; for (int c = 0; c < cols; c++) s += x[c]; y[r] = s;"),
    ),
    "recurrence through memory": (
        REDUCING,
        rows("for (int c = 1; c < cols; c++) y[r * cols + c] = y[r * cols + c - 1] + x[r * cols + c];"),
    ),
    "scatter": (REDUCING, rows("for (int c = 0; c < cols; c++) y[p[c]] = x[r * cols + c];")),
    "prefix sum": (
        REDUCING,
        rows("float s = 0; for (int c = 0; c < cols; c++) { s += x[r * cols + c]; y[r * cols + c] = s; }"),
    ),
    "bound changes in the loop": (
        REDUCING,
        rows("int n = cols; float s = 0; for (int c = 0; c < n; c++) { s += x[c]; n--; } y[r] = s;"),
    ),
    "moving pointer": (
        REDUCING,
        rows("const float* q = x; float s = 0; for (int c = 0; c < cols; c++) { s += q[c]; q++; } y[r] = s;"),
    ),
    "integer division": (
        (HoistReciprocal(),),
        rows("for (int c = 0; c < cols; c++) y[r * cols + c] = x[(c / rows)];"),
    ),
    "divisor changes": (
        (HoistReciprocal(), HoistCall()),
        rows("for (int c = 0; c < cols; c++) { float d = sqrtf(x[c]); y[r * cols + c] = x[c] / d; }"),
    ),
    "double exponential": ((VectorExp(),), rows("for (int c = 0; c < cols; c++) y[c] = std::exp((double)x[c]);")),
    "exponent changes between the loops": (
        (StoreOnce(),),
        rows(
            "float m = x[0]; float s = 0;"
            "for (int c = 0; c < cols; c++) s += std::exp(x[c] - m);"
            "m = 2.0f;"
            "for (int c = 0; c < cols; c++) y[c] = std::exp(x[c] - m) / s;"
        ),
    ),
    "different ranges": (
        (StoreOnce(),),
        rows(
            "float s = 0; for (int c = 1; c < cols; c++) s += std::exp(x[c]);"
            "for (int c = 0; c < cols; c++) y[c] = std::exp(x[c]) / s;"
        ),
    ),
    "text that does not parse": ((*STRUCTURAL, *REDUCING), matmul(f"{LOOP} sum += A[i * K + k] * ; {STORE} ((")),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refuses(reason: str) -> None:
    transforms, source = REFUSED[reason]
    for transform in transforms:
        assert transform.applies(source) == [], type(transform).__name__

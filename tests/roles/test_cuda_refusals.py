"""CUDA kernels that a transform must leave alone, each with the reason why the edit would be wrong or is not proven."""

import pytest

from roles.techniques.cuda.knobs import BlockSize
from roles.techniques.cuda.matmul_tensor import MatmulTensor
from roles.techniques.cuda.matmul_tile import MatmulTile
from roles.techniques.cuda.row_groups import RowGroups
from roles.techniques.cuda.shuffle import ShuffleReduction
from roles.techniques.cuda.transpose import TransposeTile
from roles.techniques.cuda.vectorise import VectoriseElements
from roles.techniques.transform import TreeTransform

ROW = "int r = blockIdx.x * blockDim.x + threadIdx.x;"


def kernel(body: str, launch: str = "k<<<(rows + 63) / 64, 64>>>(x, y, rows, cols);", head: str = "") -> str:
    return f"""
#include <cuda_runtime.h>
{head}
__global__ void k(const float* x, float* y, int rows, int cols) {{
    {body}
}}
extern "C" void solve(const float* x, float* y, int rows, int cols) {{
    {launch}
}}
"""


def rows(body: str, **more: str) -> str:
    return kernel(f"{ROW} if (r >= rows) return; {body}", **more)


def elements(body: str, **more: str) -> str:
    return kernel(f"int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * cols) {{ {body} }}", **more)


def planes(body: str) -> str:
    place = "int c = blockIdx.x * blockDim.x + threadIdx.x; int r = blockIdx.y * blockDim.y + threadIdx.y;"
    return kernel(
        f"{place} if (r < rows && c < cols) {{ {body} }}", "k<<<dim3(9, 9), dim3(16, 16)>>>(x, y, rows, cols);"
    )


def blocks(store: str, tree: str, use: str) -> str:
    body = f"__shared__ float s[128]; int t = threadIdx.x; {store} __syncthreads(); {tree} {use}"
    return kernel(body, "k<<<rows, 128>>>(x, y, rows, cols);")


SUM = "float s = 0; for (int c = 0; c < cols; c++) s += x[r * cols + c];"
TREE = "for (int h = blockDim.x / 2; h > 0; h /= 2) { if (t < h) s[t] += s[t + h]; __syncthreads(); }"
STRIDED = "float v = 0; for (int c = t; c < cols; c += blockDim.x) v += x[blockIdx.x * cols + c];"

REFUSED: dict[str, tuple[TreeTransform, str]] = {
    "no guard": (RowGroups(), kernel(f"{ROW} {SUM} y[r] = s;")),
    "launched twice": (
        RowGroups(),
        rows(f"{SUM} y[r] = s;", launch="k<<<1, 64>>>(x, y, 64, 8); k<<<2, 64>>>(x, y, 128, 8);"),
    ),
    "same buffer twice": (
        RowGroups(),
        rows(
            "for (int c = 0; c < cols; c++) y[r * cols + c] = x[r * cols + c];",
            launch="k<<<(rows + 63) / 64, 64>>>(y, y, rows, cols);",
        ),
    ),
    "prefix sum": (
        RowGroups(),
        rows("float s = 0; for (int c = 0; c < cols; c++) { s += x[c]; y[r * cols + c] = s; }"),
    ),
    "recurrence through memory": (
        RowGroups(),
        rows("for (int c = 1; c < cols; c++) y[r * cols + c] = y[r * cols + c - 1] + x[r * cols + c];"),
    ),
    "reversed store": (
        RowGroups(),
        rows("for (int c = 0; c < cols; c++) y[r * cols + cols - 1 - c] = x[r * cols + c];"),
    ),
    "break": (
        RowGroups(),
        rows("float s = 0; for (int c = 0; c < cols; c++) { if (c > 3) break; s += x[c]; } y[r] = s;"),
    ),
    "different bounds": (
        RowGroups(),
        rows(f"{SUM} for (int c = 0; c < rows; c++) s += x[c]; y[r] = s;"),
    ),
    "warp operation": (RowGroups(), rows(f"{SUM} s += __shfl_xor_sync(~0u, s, 1); y[r] = s;")),
    "atomic": (RowGroups(), rows(f"{SUM} atomicAdd(&y[0], s);")),
    "online maximum": (
        RowGroups(),
        rows(
            "float m = x[r * cols], s = 0; for (int c = 0; c < cols; c++) {"
            " if (x[r * cols + c] > m) { s *= expf(m - x[r * cols + c]); m = x[r * cols + c]; }"
            " s += expf(x[r * cols + c] - m); } y[r] = s;"
        ),
    ),
    "tree of another operation than its loop": (
        RowGroups(),
        blocks(
            f"{STRIDED} s[t] = v;",
            TREE.replace("s[t] += s[t + h]", "s[t] = fmaxf(s[t], s[t + h])"),
            "if (t == 0) y[blockIdx.x] = s[0];",
        ),
    ),
    "partial sum used after the tree": (
        RowGroups(),
        blocks(f"{STRIDED} s[t] = v;", TREE, "if (t == 0) y[blockIdx.x] = s[0] + v;"),
    ),
    "neighbour": (VectoriseElements(), elements("y[i] = x[i]; y[i + 1] = x[i];")),
    "output read at another place": (VectoriseElements(), elements("y[i] = x[i] + y[0];")),
    "branch": (VectoriseElements(), elements("if (x[i] > 0) y[i] = x[i];")),
    "stride of two": (VectoriseElements(), elements("y[2 * i] = x[i];")),
    "copy": (TransposeTile(), planes("y[r * cols + c] = x[r * cols + c];")),
    "in place": (TransposeTile(), planes("y[c * rows + r] = y[r * cols + c];")),
    "wrong width": (TransposeTile(), planes("y[c * cols + r] = x[r * cols + c];")),
    "operand written": (
        MatmulTile(),
        planes(
            "float s = 0; for (int k = 0; k < cols; k++) s += y[r * cols + k] * x[k * cols + c]; y[r * cols + c] = s;"
        ),
    ),
    "term that does not vanish": (
        MatmulTile(),
        planes("float s = 0; for (int k = 0; k < cols; k++) s += x[r * cols + k] + 1.0f; y[r * cols + c] = s;"),
    ),
    "distances on tensor cores": (
        MatmulTensor(),
        planes(
            "float s = 0; for (int k = 0; k < cols; k++) s += (x[r * cols + k] - x[k * cols + c]) * (x[r * cols + k] -"
            " x[k * cols + c]); y[r * cols + c] = s;"
        ),
    ),
    "tree over half of the array": (
        ShuffleReduction(),
        blocks("s[t] = x[t];", TREE.replace("blockDim.x / 2", "blockDim.x / 4"), "if (t == 0) y[blockIdx.x] = s[0];"),
    ),
    "tree without a barrier": (
        ShuffleReduction(),
        blocks("s[t] = x[t];", TREE.replace(" __syncthreads();", ""), "if (t == 0) y[blockIdx.x] = s[0];"),
    ),
    "partial results used": (ShuffleReduction(), blocks("s[t] = x[t];", TREE, "y[blockIdx.x] = s[0] + s[1];")),
    "shared array sized for the block": (
        BlockSize(),
        kernel(
            "__shared__ float s[64]; s[threadIdx.x] = 0;", "int b = 64; k<<<(rows + b - 1) / b, b>>>(x, y, rows, cols);"
        ),
    ),
    "grid that is not computed from the block": (
        BlockSize(),
        rows(f"{SUM} y[r] = s;", launch="int b = 64; k<<<rows, b>>>(x, y, rows, cols);"),
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refuses(reason: str) -> None:
    transform, source = REFUSED[reason]
    assert transform.applies(source) == []


def test_the_skeletons_of_these_kernels_are_understood() -> None:
    taken = {
        RowGroups(): rows(f"{SUM} y[r] = s;"),
        VectoriseElements(): elements("y[i] = x[i];"),
        TransposeTile(): planes("y[c * rows + r] = x[r * cols + c];"),
        ShuffleReduction(): blocks("s[t] = x[t];", TREE, "if (t == 0) y[blockIdx.x] = s[0];"),
        BlockSize(): rows(f"{SUM} y[r] = s;", launch="int b = 64; k<<<(rows + b - 1) / b, b>>>(x, y, rows, cols);"),
    }
    for transform, source in taken.items():
        assert len(transform.applies(source)) == 1, type(transform).__name__

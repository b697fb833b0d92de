# pyright: reportArgumentType=false, reportCallIssue=false
"""C = A @ B^T in the inputs' precision, summed in single: one program per tile of C, small steps along K."""

import triton
import triton.language as tl


@triton.jit
def gemm(A, B, C, M, N, K, ROWS: tl.constexpr, COLS: tl.constexpr, STEP: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    total = tl.zeros((ROWS, COLS), dtype=tl.float32)
    for start in range(0, K, STEP):
        ks = start + tl.arange(0, STEP)
        a_mask = (rows[:, None] < M) & (ks[None, :] < K)
        b_mask = (cols[None, :] < N) & (ks[:, None] < K)
        a = tl.load(A + rows[:, None].to(tl.int64) * K + ks[None, :], mask=a_mask, other=0.0)
        b = tl.load(B + cols[None, :].to(tl.int64) * K + ks[:, None], mask=b_mask, other=0.0)
        total = tl.dot(a, b, total)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(C + rows[:, None].to(tl.int64) * N + cols[None, :], total.to(C.dtype.element_ty), mask=mask)


def run_kernel(A, B, C, M, N, K):
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 64))
    gemm[grid](A, B, C, M, N, K, ROWS=32, COLS=64, STEP=64)

"""C = A @ B in single precision: one program per 32 x 32 tile of C, small steps along K, no tensor cores."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul(A, B, C, M, N, K, TILE: tl.constexpr, STEP: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, K, STEP):
        ks = start + tl.arange(0, STEP)
        a = tl.load(A + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & (ks[None, :] < K), other=0.0)
        b = tl.load(B + ks[:, None] * N + cols[None, :], mask=(ks[:, None] < K) & (cols[None, :] < N), other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(C + rows[:, None] * N + cols[None, :], total, mask=(rows[:, None] < M) & (cols[None, :] < N))


def setup(M, N, K, seed):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator(device).manual_seed(seed)
    a = torch.randn(M, K, device=device, generator=generator)
    b = torch.randn(K, N, device=device, generator=generator)
    c = torch.empty(M, N, device=device)
    return {"inputs": {"A": a, "B": b, "C": c, "M": M, "N": N, "K": K}, "outputs": ["C"]}


def run_kernel(A, B, C, M, N, K):
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    matmul[grid](A, B, C, M, N, K, TILE=32, STEP=16)

"""A Triton kernel as the optimizer skills take it: ``setup`` says the tensors, ``run_kernel`` launches."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_softmax(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row + at, mask=at < cols, other=float("-inf")).to(tl.float32)
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row + at, (values / tl.sum(values, axis=0) * cols).to(y.dtype.element_ty), mask=at < cols)


def setup(rows, cols, seed):
    x = torch.randn(rows, cols, generator=torch.Generator().manual_seed(seed)).half()
    return {"inputs": {"x": x, "y": torch.empty_like(x)}, "outputs": ["y"]}


def run_kernel(x, y, rows, cols):
    row_softmax[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols))

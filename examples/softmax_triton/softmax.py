"""Row-wise softmax, numerically stable: one program per row, which is read three times in blocks of 128."""

import triton
import triton.language as tl


@triton.jit
def softmax(input, output, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    top = float("-inf")
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(input + row + at, mask=at < cols, other=float("-inf"))
        top = tl.maximum(top, tl.max(values, axis=0))
    total = 0.0
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(input + row + at, mask=at < cols, other=float("-inf"))
        total += tl.sum(tl.exp(values - top), axis=0)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(input + row + at, mask=at < cols, other=float("-inf"))
        tl.store(output + row + at, tl.exp(values - top) / total, mask=at < cols)


def run_kernel(input, output, rows, cols):
    softmax[(rows,)](input, output, cols, BLOCK=128)

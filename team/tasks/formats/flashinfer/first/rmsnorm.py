# pyright: reportArgumentType=false, reportCallIssue=false
"""RMS norm of each row times a weight, in single precision: one program per row."""

import triton
import triton.language as tl


@triton.jit
def rmsnorm(hidden_states, weight, output, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    values = tl.load(hidden_states + row + at, mask=at < cols, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values, axis=0) / cols + 1e-6)
    factor = tl.load(weight + at, mask=at < cols, other=0.0).to(tl.float32)
    tl.store(output + row + at, (values * scale * factor).to(output.dtype.element_ty), mask=at < cols)


def run_kernel(hidden_states, weight, output, batch_size, hidden_size):
    block = triton.next_power_of_2(hidden_size)
    rmsnorm[(batch_size,)](hidden_states, weight, output, hidden_size, BLOCK=block)

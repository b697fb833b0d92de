# pyright: reportArgumentType=false, reportCallIssue=false
"""Rotary positions by a table, the first half of a head's rotated part against the second: one program per head."""

import triton
import triton.language as tl


@triton.jit
def rotate(x, table, positions, out, heads, WIDTH: tl.constexpr, HALF: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    row = (token * heads + tl.program_id(1)) * WIDTH
    position = tl.load(positions + token)
    at = tl.arange(0, HALF)
    cos = tl.load(table + position * 2 * HALF + at)
    sin = tl.load(table + position * 2 * HALF + HALF + at)
    first = tl.load(x + row + at).to(tl.float32)
    second = tl.load(x + row + HALF + at).to(tl.float32)
    tl.store(out + row + at, (first * cos - second * sin).to(out.dtype.element_ty))
    tl.store(out + row + HALF + at, (second * cos + first * sin).to(out.dtype.element_ty))
    rest = tl.arange(0, WIDTH)
    kept = tl.load(x + row + rest, mask=rest >= 2 * HALF, other=0.0)
    tl.store(out + row + rest, kept, mask=rest >= 2 * HALF)


def run_kernel(
    q, k, cos_sin_cache, positions, q_out, k_out, num_tokens, num_qo_heads, num_kv_heads, head_size, rotary_dim
):
    half = rotary_dim // 2
    rotate[(num_tokens, num_qo_heads)](q, cos_sin_cache, positions, q_out, num_qo_heads, WIDTH=head_size, HALF=half)
    rotate[(num_tokens, num_kv_heads)](k, cos_sin_cache, positions, k_out, num_kv_heads, WIDTH=head_size, HALF=half)

# pyright: reportArgumentType=false, reportCallIssue=false
"""The k best-scored tokens of a sequence, from its end to its beginning: right as a set, in no order of scores.

One program per page scores; one per sequence holds all of its scores while it finds the k-th one bit by bit.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def score(
    q_index_fp8,
    k_index_cache_fp8,
    weights,
    seq_lens,
    block_table,
    scores,
    pages,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    PAGE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    number = tl.program_id(1)
    length = tl.load(seq_lens + row)
    if number * PAGE < length:
        heads = tl.arange(0, HEADS)
        inner = tl.arange(0, WIDTH)
        tokens = tl.arange(0, PAGE)
        page = tl.load(block_table + row * pages + number).to(tl.int64)
        start = k_index_cache_fp8 + page * (PAGE * (WIDTH + 4))
        k = tl.load(start + tokens[:, None] * WIDTH + inner[None, :]).to(tl.float8e4nv, bitcast=True)
        scale = tl.load((start + PAGE * WIDTH).to(tl.pointer_type(tl.float32)) + tokens)
        q = tl.load(q_index_fp8 + row * HEADS * WIDTH + heads[:, None] * WIDTH + inner[None, :])
        products = tl.dot(q.to(tl.bfloat16), tl.trans(k.to(tl.bfloat16)))
        factor = tl.load(weights + row * HEADS + heads)
        total = tl.sum(tl.maximum(products, 0.0) * factor[:, None], axis=0) * scale
        tl.store(scores + row * pages * PAGE + number * PAGE + tokens, total)


@triton.jit
def select(scores, seq_lens, block_table, topk_indices, pages, topk, PAGE: tl.constexpr, WHOLE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    length = tl.load(seq_lens + row)
    wanted = tl.minimum(length, topk)
    at = tl.arange(0, WHOLE)
    bits = tl.load(scores + row * pages * PAGE + at, mask=at < length, other=0.0).to(tl.int32, bitcast=True)
    order = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    alive = at < length
    limit = tl.full((), -2147483648, tl.int32)
    if length > topk:
        low = tl.full((), -2147483648, tl.int64)
        for step in range(32):
            higher = low + (tl.full((), 1, tl.int64) << (31 - step))
            count = tl.sum((alive & (order >= higher.to(tl.int32))).to(tl.int32), axis=0)
            low = tl.where(count >= wanted, higher, low)
        limit = low.to(tl.int32)
    surely = alive & (order > limit)
    ties = (alive & (order == limit)).to(tl.int32)
    above = tl.sum(surely.to(tl.int32), axis=0)
    taken = surely | ((ties > 0) & (tl.cumsum(ties, axis=0) <= wanted - above))
    place = wanted - tl.cumsum(taken.to(tl.int32), axis=0)
    page = tl.load(block_table + row * pages + at // PAGE, mask=taken, other=0)
    tl.store(topk_indices + row * topk + place, page * PAGE + at % PAGE, mask=taken)
    for start in range(0, topk, 1024):
        rest = start + tl.arange(0, 1024)
        tl.store(
            topk_indices + row * topk + rest, tl.full((1024,), -1, tl.int32), mask=(rest >= wanted) & (rest < topk)
        )


def run_kernel(
    q_index_fp8,
    k_index_cache_fp8,
    weights,
    seq_lens,
    block_table,
    topk_indices,
    batch_size,
    num_index_heads,
    index_head_dim,
    page_size,
    max_num_pages,
    topk,
):
    scores = torch.empty((batch_size, max_num_pages * page_size), dtype=torch.float32, device=weights.device)
    score[(batch_size, max_num_pages)](
        q_index_fp8,
        k_index_cache_fp8,
        weights,
        seq_lens,
        block_table,
        scores,
        max_num_pages,
        HEADS=num_index_heads,
        WIDTH=index_head_dim,
        PAGE=page_size,
    )
    whole = triton.next_power_of_2(max_num_pages * page_size)
    select[(batch_size,)](
        scores, seq_lens, block_table, topk_indices, max_num_pages, topk, PAGE=page_size, WHOLE=whole, num_warps=32
    )

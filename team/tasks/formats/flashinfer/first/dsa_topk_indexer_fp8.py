# pyright: reportArgumentType=false, reportCallIssue=false
"""Scores of a sequence's tokens under 64 heads, then the k best of them, in the order of their positions.

One program per page scores; one per sequence finds the k-th score bit by bit and writes what lies above it. The order
within a row is free. Scores go through memory of this call's own.
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
def ranked(scores, at, length):
    """Scores as integers of the same order, from 0 on; nothing beyond the length."""
    bits = tl.load(scores + at, mask=at < length, other=0.0).to(tl.int32, bitcast=True)
    order = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return tl.where(at < length, order.to(tl.int64) + 2147483648, -1)


@triton.jit
def select(scores, seq_lens, block_table, topk_indices, pages, topk, PAGE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    length = tl.load(seq_lens + row)
    wanted = tl.minimum(length, topk)
    mine = scores + row * pages * PAGE
    limit = tl.zeros((), tl.int64)
    for step in range(32):
        higher = limit + (tl.full((), 1, tl.int64) << (31 - step))
        count = tl.zeros((), tl.int32)
        for start in range(0, length, BLOCK):
            order = ranked(mine, start + tl.arange(0, BLOCK), length)
            count += tl.sum((order >= higher).to(tl.int32), axis=0)
        limit = tl.where(count >= wanted, higher, limit)
    above = tl.zeros((), tl.int32)
    for start in range(0, length, BLOCK):
        above += tl.sum((ranked(mine, start + tl.arange(0, BLOCK), length) > limit).to(tl.int32), axis=0)
    written = tl.zeros((), tl.int32)
    tied = tl.zeros((), tl.int32)
    for start in range(0, length, BLOCK):
        at = start + tl.arange(0, BLOCK)
        order = ranked(mine, at, length)
        ties = (order == limit).to(tl.int32)
        among = tied + tl.cumsum(ties, axis=0)
        taken = (order > limit) | ((ties > 0) & (among <= wanted - above))
        place = written + tl.cumsum(taken.to(tl.int32), axis=0) - 1
        page = tl.load(block_table + row * pages + at // PAGE, mask=at < length, other=0)
        tl.store(topk_indices + row * topk + place, page * PAGE + at % PAGE, mask=taken)
        written += tl.sum(taken.to(tl.int32), axis=0)
        tied += tl.sum(ties, axis=0)
    for start in range(0, topk, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(topk_indices + row * topk + at, tl.full((BLOCK,), -1, tl.int32), mask=(at >= wanted) & (at < topk))


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
    select[(batch_size,)](
        scores, seq_lens, block_table, topk_indices, max_num_pages, topk, PAGE=page_size, BLOCK=1024, num_warps=8
    )

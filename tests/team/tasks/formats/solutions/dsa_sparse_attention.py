# pyright: reportArgumentType=false, reportCallIssue=false
"""Attention over selected tokens: the tokens of a query in parts, a program each, and their sums joined afterwards."""

import torch
import triton
import triton.language as tl


@triton.jit
def attend(
    q_nope,
    q_pe,
    ckv_cache,
    kpe_cache,
    sparse_indices,
    sums,
    tops,
    totals,
    sm_scale,
    topk,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    ROPE: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    heads = tl.arange(0, HEADS)
    wide = tl.arange(0, WIDTH)
    narrow = tl.arange(0, ROPE)
    length = topk // PARTS
    top = tl.full((HEADS,), float("-inf"), tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    acc = tl.zeros((HEADS, WIDTH), tl.float32)
    first = tl.load(sparse_indices + token * topk + part * length + tl.arange(0, BLOCK))
    mine = token * PARTS + part
    if tl.max(first, axis=0) >= 0 or length > BLOCK:
        q = tl.load(q_nope + token * HEADS * WIDTH + heads[:, None] * WIDTH + wide[None, :])
        qr = tl.load(q_pe + token * HEADS * ROPE + heads[:, None] * ROPE + narrow[None, :])
        for start in range(0, length, BLOCK):
            at = part * length + start + tl.arange(0, BLOCK)
            chosen = tl.load(sparse_indices + token * topk + at)
            valid = chosen >= 0
            if tl.max(valid.to(tl.int32), axis=0) > 0:
                row = tl.where(valid, chosen, 0).to(tl.int64)
                k = tl.load(ckv_cache + row[:, None] * WIDTH + wide[None, :], mask=valid[:, None], other=0.0)
                kr = tl.load(kpe_cache + row[:, None] * ROPE + narrow[None, :], mask=valid[:, None], other=0.0)
                logits = (tl.dot(q, tl.trans(k)) + tl.dot(qr, tl.trans(kr))) * sm_scale
                logits = tl.where(valid[None, :], logits, float("-inf"))
                higher = tl.maximum(top, tl.max(logits, axis=1))
                kept = tl.exp(top - higher)
                p = tl.exp(logits - higher[:, None])
                total = total * kept + tl.sum(p, axis=1)
                acc = acc * kept[:, None] + tl.dot(p.to(k.dtype), k)
                top = higher
        tl.store(sums + mine * HEADS * WIDTH + heads[:, None] * WIDTH + wide[None, :], acc)
    tl.store(tops + mine * HEADS + heads, top)
    tl.store(totals + mine * HEADS + heads, total)


@triton.jit
def join(
    sums, tops, totals, output, lse, HEADS: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr, COLS: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    parts = tl.arange(0, PARTS)
    cols = tl.program_id(2) * COLS + tl.arange(0, COLS)
    at = (token * PARTS + parts) * HEADS + head
    top = tl.load(tops + at)
    total = tl.load(totals + at)
    highest = tl.max(top, axis=0)
    factor = tl.where(total > 0, tl.exp(top - highest), 0.0)
    whole = tl.sum(total * factor, axis=0)
    share = tl.where(whole > 0, whole, 1.0)
    values = tl.load(sums + at[:, None] * WIDTH + cols[None, :], mask=(total > 0)[:, None], other=0.0)
    result = tl.sum(values * factor[:, None], axis=0) / share
    tl.store(output + (token * HEADS + head) * WIDTH + cols, result.to(output.dtype.element_ty))
    if tl.program_id(2) == 0:
        tl.store(lse + token * HEADS + head, (highest + tl.log(share)) * 1.4426950408889634)


def run_kernel(
    q_nope,
    q_pe,
    ckv_cache,
    kpe_cache,
    sparse_indices,
    output,
    lse,
    sm_scale,
    num_tokens,
    num_qo_heads,
    head_dim_ckv,
    head_dim_kpe,
    topk,
):
    parts = 64 if num_tokens <= 8 else 16
    sums = torch.empty((num_tokens, parts, num_qo_heads, head_dim_ckv), dtype=torch.float32, device=lse.device)
    tops = torch.empty((num_tokens, parts, num_qo_heads), dtype=torch.float32, device=lse.device)
    totals = torch.empty((num_tokens, parts, num_qo_heads), dtype=torch.float32, device=lse.device)
    attend[(num_tokens, parts)](
        q_nope,
        q_pe,
        ckv_cache,
        kpe_cache,
        sparse_indices,
        sums,
        tops,
        totals,
        sm_scale,
        topk,
        HEADS=num_qo_heads,
        WIDTH=head_dim_ckv,
        ROPE=head_dim_kpe,
        PARTS=parts,
        BLOCK=32,
        num_warps=4,
        num_stages=1,
    )
    join[(num_tokens, num_qo_heads, head_dim_ckv // 128)](
        sums, tops, totals, output, lse, HEADS=num_qo_heads, WIDTH=head_dim_ckv, PARTS=parts, COLS=128
    )

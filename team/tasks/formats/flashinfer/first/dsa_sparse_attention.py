# pyright: reportArgumentType=false, reportCallIssue=false
"""Attention over selected tokens of a latent cache: one program per query token, its heads together, online softmax."""

import triton
import triton.language as tl


@triton.jit
def attend(
    q_nope,
    q_pe,
    ckv_cache,
    kpe_cache,
    sparse_indices,
    output,
    lse,
    sm_scale,
    topk,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    ROPE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    heads = tl.arange(0, HEADS)
    wide = tl.arange(0, WIDTH)
    narrow = tl.arange(0, ROPE)
    q = tl.load(q_nope + token * HEADS * WIDTH + heads[:, None] * WIDTH + wide[None, :])
    qr = tl.load(q_pe + token * HEADS * ROPE + heads[:, None] * ROPE + narrow[None, :])
    top = tl.full((HEADS,), float("-inf"), tl.float32)
    total = tl.zeros((HEADS,), tl.float32)
    acc = tl.zeros((HEADS, WIDTH), tl.float32)
    for start in range(0, topk, BLOCK):
        at = start + tl.arange(0, BLOCK)
        chosen = tl.load(sparse_indices + token * topk + at, mask=at < topk, other=-1)
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
    share = tl.where(total > 0, total, 1.0)
    values = (acc / share[:, None]).to(output.dtype.element_ty)
    tl.store(output + token * HEADS * WIDTH + heads[:, None] * WIDTH + wide[None, :], values)
    tl.store(lse + token * HEADS + heads, (top + tl.log(share)) * 1.4426950408889634)


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
    attend[(num_tokens,)](
        q_nope,
        q_pe,
        ckv_cache,
        kpe_cache,
        sparse_indices,
        output,
        lse,
        sm_scale,
        topk,
        HEADS=num_qo_heads,
        WIDTH=head_dim_ckv,
        ROPE=head_dim_kpe,
        BLOCK=32,
        num_warps=8,
        num_stages=1,
    )

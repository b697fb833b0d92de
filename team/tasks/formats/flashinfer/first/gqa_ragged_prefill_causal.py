# pyright: reportArgumentType=false, reportCallIssue=false
"""Causal grouped attention of ragged sequences: one program per query token and key head, online softmax."""

import triton
import triton.language as tl


@triton.jit
def prefill(
    q,
    k,
    v,
    qo_indptr,
    kv_indptr,
    output,
    lse,
    sm_scale,
    sequences,
    heads,
    kv_heads,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0)
    kv_head = tl.program_id(1)
    sequence = 0
    for number in range(1, sequences):
        sequence += (tl.load(qo_indptr + number) <= token).to(tl.int32)
    begin = tl.load(kv_indptr + sequence)
    length = tl.load(kv_indptr + sequence + 1) - begin
    length = tl.maximum(length - (tl.load(qo_indptr + sequence + 1) - 1 - token), 0)  # what lies before this token
    rows = tl.arange(0, ROWS)
    cols = tl.arange(0, WIDTH)
    mine = token.to(tl.int64) * heads + kv_head * GROUP + rows
    query = tl.load(q + mine[:, None] * WIDTH + cols[None, :], mask=rows[:, None] < GROUP, other=0.0)
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, WIDTH), tl.float32)
    for start in range(0, length, BLOCK):
        at = start + tl.arange(0, BLOCK)
        place = ((begin + at).to(tl.int64) * kv_heads + kv_head) * WIDTH
        keys = tl.load(k + place[:, None] + cols[None, :], mask=(at < length)[:, None], other=0.0)
        values = tl.load(v + place[:, None] + cols[None, :], mask=(at < length)[:, None], other=0.0)
        logits = tl.where((at < length)[None, :], tl.dot(query, tl.trans(keys)) * sm_scale, float("-inf"))
        higher = tl.maximum(top, tl.max(logits, axis=1))
        kept = tl.exp(top - higher)
        p = tl.exp(logits - higher[:, None])
        total = total * kept + tl.sum(p, axis=1)
        acc = acc * kept[:, None] + tl.dot(p.to(values.dtype), values)
        top = higher
    share = tl.where(total > 0, total, 1.0)
    result = (acc / share[:, None]).to(output.dtype.element_ty)
    tl.store(output + mine[:, None] * WIDTH + cols[None, :], result, mask=rows[:, None] < GROUP)
    tl.store(lse + mine, (top + tl.log(share)) * 1.4426950408889634, mask=rows < GROUP)


def run_kernel(
    q,
    k,
    v,
    qo_indptr,
    kv_indptr,
    output,
    lse,
    sm_scale,
    total_q,
    len_indptr,
    num_qo_heads,
    num_kv_heads,
    head_dim,
):
    group = num_qo_heads // num_kv_heads
    prefill[(total_q, num_kv_heads)](
        q,
        k,
        v,
        qo_indptr,
        kv_indptr,
        output,
        lse,
        sm_scale,
        len_indptr - 1,
        num_qo_heads,
        num_kv_heads,
        GROUP=group,
        ROWS=max(16, triton.next_power_of_2(group)),
        WIDTH=head_dim,
        BLOCK=32,
    )

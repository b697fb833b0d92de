# pyright: reportArgumentType=false, reportCallIssue=false
"""Grouped attention of one new token over a paged cache: one program per sequence and key head, online softmax."""

import triton
import triton.language as tl


@triton.jit
def decode(
    q,
    k_cache,
    v_cache,
    kv_indptr,
    kv_indices,
    kv_last_page_len,
    output,
    lse,
    sm_scale,
    heads,
    kv_heads,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    PAGE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    sequence = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    begin = tl.load(kv_indptr + sequence)
    pages = tl.load(kv_indptr + sequence + 1) - begin
    length = pages
    if PAGE > 1:
        length = tl.where(pages > 0, (pages - 1) * PAGE + tl.load(kv_last_page_len + sequence), 0)
    rows = tl.arange(0, ROWS)
    cols = tl.arange(0, WIDTH)
    mine = sequence * heads + kv_head * GROUP + rows
    query = tl.load(q + mine[:, None] * WIDTH + cols[None, :], mask=rows[:, None] < GROUP, other=0.0)
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, WIDTH), tl.float32)
    for start in range(0, length, BLOCK):
        at = start + tl.arange(0, BLOCK)
        page = tl.load(kv_indices + begin + at // PAGE, mask=at < length, other=0).to(tl.int64)
        place = ((page * PAGE + at % PAGE) * kv_heads + kv_head) * WIDTH
        k = tl.load(k_cache + place[:, None] + cols[None, :], mask=(at < length)[:, None], other=0.0)
        v = tl.load(v_cache + place[:, None] + cols[None, :], mask=(at < length)[:, None], other=0.0)
        logits = tl.where((at < length)[None, :], tl.dot(query, tl.trans(k)) * sm_scale, float("-inf"))
        higher = tl.maximum(top, tl.max(logits, axis=1))
        kept = tl.exp(top - higher)
        p = tl.exp(logits - higher[:, None])
        total = total * kept + tl.sum(p, axis=1)
        acc = acc * kept[:, None] + tl.dot(p.to(v.dtype), v)
        top = higher
    share = tl.where(total > 0, total, 1.0)
    values = (acc / share[:, None]).to(output.dtype.element_ty)
    tl.store(output + mine[:, None] * WIDTH + cols[None, :], values, mask=rows[:, None] < GROUP)
    tl.store(lse + mine, (top + tl.log(share)) * 1.4426950408889634, mask=rows < GROUP)


def run_kernel(
    q,
    k_cache,
    v_cache,
    kv_indptr,
    kv_indices,
    output,
    lse,
    sm_scale,
    batch_size,
    num_qo_heads,
    num_kv_heads,
    head_dim,
    page_size,
    kv_last_page_len=None,
):
    group = num_qo_heads // num_kv_heads
    decode[(batch_size, num_kv_heads)](
        q,
        k_cache,
        v_cache,
        kv_indptr,
        kv_indices,
        kv_indptr if kv_last_page_len is None else kv_last_page_len,
        output,
        lse,
        sm_scale,
        num_qo_heads,
        num_kv_heads,
        GROUP=group,
        ROWS=max(16, triton.next_power_of_2(group)),
        WIDTH=head_dim,
        PAGE=page_size,
        BLOCK=32,
    )

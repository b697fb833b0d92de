"""Seeded inputs of a definition on one workload: what recorded tensors do not give is drawn within what it means.

Page numbers exist, offsets rise to their totals, a causal query has keys before it, probabilities are positive and sum
to 1, scales are positive, decay decays, experts do not tie. What has no such meaning is drawn as flashinfer-bench draws
it: standard normal, 8-bit floats within 2. Trusted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from team.errors import UserError
from team.tasks.formats.flashinfer.drawing import Drawing, offsets
from team.tasks.formats.flashinfer.schema import Definition, TensorSpec

Tensors = dict[str, torch.Tensor]
FP8_MAX = 448.0  # largest float8_e4m3fn
LEAST_SCALE = 1e-4  # of a quantised key, as the kernels that write the cache clamp it


@dataclass(frozen=True)
class Case:
    """One workload of a definition: every axis by name."""

    definition: Definition
    axes: Mapping[str, int]

    def extents(self, spec: TensorSpec) -> tuple[int, ...]:
        """The shape of a tensor."""
        return tuple(self.axes[axis] for axis in spec.shape or ())

    def has(self, *names: str) -> bool:
        """Whether all these inputs exist."""
        return all(name in self.definition.tensors for name in names)


def make_inputs(case: Case, seed: int, device: torch.device, given: Mapping[str, torch.Tensor]) -> Tensors:
    """Every tensor input by name, as ``device`` tensors; ``given`` are the recorded ones."""
    drawing = Drawing(seed, device)
    rule = RULES.get(case.definition.op_type)
    meant = rule(case, drawing) if rule else {}
    made: Tensors = {}
    for name, spec in case.definition.tensors.items():
        dtype, shape = dtype_of(spec), case.extents(spec)
        value = given[name] if name in given else meant.get(name)
        if value is None:
            made[name] = _plain(drawing, shape, dtype)
        elif tuple(value.shape) != shape:
            raise UserError(
                f"The recorded tensor '{name}' of {case.definition.name} has the shape {tuple(value.shape)}, the "
                f"workload says {shape}.",
                "Correct the workload, or fetch its blob again.",
            )
        else:
            made[name] = drawing.place(value, dtype).contiguous()
    return made


def dtype_of(spec: TensorSpec) -> torch.dtype:
    """The element type; ``UserError`` for one that torch has no values of."""
    if spec.dtype == "float4_e2m1":
        raise UserError("float4_e2m1 tensors cannot be drawn or compared by torch.", "Declare packed bytes as int8.")
    return getattr(torch, spec.dtype)


def _plain(drawing: Drawing, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    if dtype is torch.bool:
        return drawing.place(drawing.integers(shape, 0, 2), dtype)
    if not dtype.is_floating_point:
        low, high = (-128, 128) if dtype is torch.int8 else (-1024, 1024)
        return drawing.place(drawing.integers(shape, low, high), dtype)
    return drawing.normal(shape, dtype)


def _sequences(case: Case, drawing: Drawing) -> Tensors:
    """Offsets, page numbers and lengths of paged and ragged attention, for decoding and causal prefill."""
    axes, page = case.axes, case.axes.get("page_size", 1)
    batch, made = axes["len_indptr"] - 1, Tensors()
    queries = torch.ones(batch, dtype=torch.int64)
    if case.has("qo_indptr"):
        queries = drawing.cut(axes["total_q"], batch)
        made["qo_indptr"] = offsets(queries)
    total = axes["num_kv_indices"] if case.has("kv_indices") else axes["total_kv"]
    pages = drawing.cut(total, batch, (queries + page - 1) // page)
    made["kv_indptr"] = offsets(pages)
    if case.has("kv_indices"):
        made["kv_indices"] = drawing.some(total, axes["num_pages"])
    if case.has("kv_last_page_len"):
        least = (queries - (pages - 1) * page).clamp(1, page)
        last = least + drawing.integers((batch,), 0, 1 << 30) % (page + 1 - least)
        unread = case.extents(case.definition.tensors["kv_last_page_len"])[0] - batch  # some declare one element more
        made["kv_last_page_len"] = torch.cat([last, torch.ones(unread, dtype=torch.int64)])
    return made


def _sparse(case: Case, drawing: Drawing) -> Tensors:
    """Sparse attention's token numbers, or the indexer's cache, lengths and pages."""
    return _indexer(case, drawing) if case.has("block_table") else _selected(case, drawing)


def _selected(case: Case, drawing: Drawing) -> Tensors:
    """Different tokens of the cache for each query, padded with -1 behind; some rows are full, some hold few."""
    rows, width, known = case.axes["num_tokens"], case.axes["topk"], case.axes["num_pages"] * case.axes["page_size"]
    found = torch.full((rows, width), -1, dtype=torch.int64)
    for row in range(rows):
        most = min(width, known)
        count = most if row % 3 == 0 else int(drawing.integers((1,), 1, max(most // (1 + row % 5 * 8), 1) + 1))
        found[row, :count] = drawing.some(count, known)
    return {"sparse_indices": found}


def _indexer(case: Case, drawing: Drawing) -> Tensors:
    """Keys quantised as the cache's writer does, sequences of all lengths, pages that no two sequences share."""
    axes = case.axes
    rows, pages, most, page = axes["batch_size"], axes["num_pages"], axes["max_num_pages"], axes["page_size"]
    table = drawing.some(rows * most, pages) if rows * most <= pages else None
    if table is None:  # too few pages for all of them: each row has its own order
        table = torch.stack([drawing.some(most, pages) for _ in range(rows)])
    lengths = drawing.integers((rows,), 1, most * page + 1)
    lengths[0] = most * page  # the first is as long as it can be
    if rows > 3:
        lengths[1] = 0
    if most > pages:  # a row would name a page twice
        lengths.clamp_(max=pages * page)
        table = torch.stack([torch.cat([drawing.order(pages), drawing.integers((most - pages,), 0, pages)])] * rows)
    keys = drawing.normal((pages, page, axes["index_head_dim"]), torch.bfloat16)
    return {
        "block_table": table.view(rows, most),
        "seq_lens": lengths,
        "k_index_cache_fp8": packed_keys(keys).view(pages, page, 1, axes["head_dim_with_scale"]),
    }


def packed_keys(keys: torch.Tensor) -> torch.Tensor:
    """(pages, page, dim) keys as bytes: each page's float8 values, then a float32 scale for each of its keys."""
    pages = keys.shape[0]
    wide = keys.float()
    scales = (wide.abs().amax(-1, keepdim=True) / FP8_MAX).clamp(min=LEAST_SCALE)
    narrow = (wide / scales).to(torch.float8_e4m3fn)
    bytes_of_keys = narrow.view(torch.int8).view(pages, -1)
    bytes_of_scales = scales.squeeze(-1).contiguous().view(torch.int8).view(pages, -1)
    return torch.cat([bytes_of_keys, bytes_of_scales], dim=1)


def _delta_net(case: Case, drawing: Drawing) -> Tensors:
    """Queries and keys of about unit length, as the layer normalises them; sequences; places in the pool."""
    made = Tensors()
    for name in ("q", "k"):
        spec = case.definition.tensors[name]
        shape = case.extents(spec)
        made[name] = drawing.normal(shape, dtype_of(spec), shape[-1] ** -0.5)
    if case.has("cu_seqlens"):
        made["cu_seqlens"] = offsets(drawing.cut(case.axes["total_seq_len"], case.axes["num_seqs"]))
    if case.has("initial_state_indices"):
        made["initial_state_indices"] = drawing.some(case.axes["batch_size"], case.axes["pool_size"])
    return made


def _state_space(case: Case, drawing: Drawing) -> Tensors:
    """A decay that decays, one number for each head, and different slots; every fifth sequence is padding."""
    shape = case.extents(case.definition.tensors["A"])
    rates = drawing.uniform((shape[0], 1, 1), torch.float32, -8.0, -0.5)
    slots = drawing.some(case.axes["batch_size"], case.axes["state_cache_size"])
    slots[4::5] = -1
    return {"A": rates.expand(shape), "state_batch_indices": slots}


def _experts(case: Case, drawing: Drawing) -> Tensors:
    """Routing without ties, positive scales, weights that keep activations' size."""
    made = Tensors()
    for name, spec in case.definition.tensors.items():
        shape, dtype = case.extents(spec), dtype_of(spec)
        if name == "routing_logits":
            made[name] = _untied(drawing, shape)
        elif name == "routing_bias":
            made[name] = drawing.normal(shape, dtype, 2.0**-6)
        elif "scale" in name:
            made[name] = drawing.uniform(shape, dtype, 0.5, 1.5) * _unit(case, name)
        elif name in ("gemm1_weights", "gemm2_weights") and dtype is torch.float32:
            made[name] = drawing.normal(shape, dtype, shape[-1] ** -0.5)
        elif name == "topk_ids":
            made[name] = _packed_routing(case, drawing, shape)
    return made


def _unit(case: Case, name: str) -> float:
    """The size of a scale, so that a product of 8-bit values comes out near 1."""
    size = {"gemm1": "hidden_size", "output1": "hidden_size", "gemm2": "intermediate_size"}
    axis = size.get(name.split("_")[0], "intermediate_size" if name.startswith("output2") else "")
    return float(case.axes[axis]) ** -0.5 if axis in case.axes else 1.0


def _untied(drawing: Drawing, shape: tuple[int, ...]) -> torch.Tensor:
    """Logits that differ by at least a bfloat16 step within each row: ties could be routed either way."""
    rows, experts = shape
    ranks = torch.stack([drawing.order(experts) for _ in range(rows)]) if rows else torch.zeros(shape)
    return (ranks.float() + 0.5) / experts * 4.0 - 2.0 if experts <= 64 else _spread(ranks, experts)


def _spread(ranks: torch.Tensor, experts: int) -> torch.Tensor:
    """Many experts: only the upper 64 ranks lie apart, and nobody else is near them."""
    above = (ranks - (experts - 64)).clamp(min=-1).float()
    return torch.where(above >= 0, above / 32.0, -2.0 + ranks.float() / experts * 1.5)


def _packed_routing(case: Case, drawing: Drawing, shape: tuple[int, ...]) -> torch.Tensor:
    """Different experts for each token in the upper 16 bits, their bfloat16 weights, which sum to about 1, below."""
    tokens, chosen = shape
    experts = torch.stack([drawing.some(chosen, case.axes["num_experts"]) for _ in range(tokens)])
    weights = drawing.integers(shape, 1, 100).float()
    bits = (weights / weights.sum(-1, keepdim=True)).to(torch.bfloat16).view(torch.int16).to(torch.int64)
    return (experts << 16) | (bits & 0xFFFF)


def _rotary(case: Case, drawing: Drawing) -> Tensors:
    """Cosines and sines of the usual frequencies; positions within the table."""
    length, width = case.axes["max_seq_len"], case.axes["rotary_dim"]
    frequencies = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * frequencies
    table = torch.cat([angles.cos(), angles.sin()], dim=-1)
    return {"cos_sin_cache": table, "positions": drawing.integers((case.axes["num_tokens"],), 0, length)}


def _sampling(case: Case, drawing: Drawing) -> Tensors:
    """Softmax of normal logits of different temperatures; limits from one token to all of them."""
    rows, words = case.axes["batch_size"], case.axes["vocab_size"]
    logits = drawing.normal((rows, words), torch.float32)
    heat = drawing.uniform((rows, 1), torch.float32, 1.0, 4.0)
    made = {"probs": torch.softmax(logits * heat, dim=-1)}
    if case.has("top_k"):
        limits = torch.tensor([1, 2, 10, 40, 200, 1000, words, 0])
        made["top_k"] = limits[drawing.integers((rows,), 0, len(limits))].clamp(max=words)
    if case.has("top_p"):
        shares = torch.tensor([0.0, 0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 1.0])
        made["top_p"] = shares[drawing.integers((rows,), 0, len(shares))]
    return made


RULES: dict[str, Callable[[Case, Drawing], Tensors]] = {
    "gqa_paged": _sequences,
    "gqa_ragged": _sequences,
    "mla_paged": _sequences,
    "mla_ragged": _sequences,
    "dsa_paged": _sparse,
    "gdn": _delta_net,
    "mamba_ssu": _state_space,
    "moe": _experts,
    "rope": _rotary,
    "sampling": _sampling,
}

"""Whether a top-k indexer selected the right tokens: as a set, with near ties either way. Trusted.

The order within a row is free, and so is the choice among tokens whose scores are closer to the k-th one than rounding
in single precision (or the tensor cores' own accumulation of 8-bit products) can tell apart.
"""

from collections.abc import Mapping

import torch

NEAR = 2e-3  # of the mean sum of absolute terms of a row's scores: what counts as a tie
PADDING = -1
_CHUNK = 1 << 14  # tokens that are scored at once


def selected(
    got: Mapping[str, torch.Tensor],
    want: Mapping[str, torch.Tensor],
    inputs: Mapping[str, torch.Tensor],
    numbers: Mapping[str, float],
) -> dict[str, float | str]:
    """See ``evaluators``: the worst row's distance from the k-th score, as a share of what counts as a tie."""
    indices = got["topk_indices"].long()
    keys, scales = unpacked_keys(inputs["k_index_cache_fp8"], int(numbers["index_head_dim"]))
    worst = 0.0
    for row in range(indices.shape[0]):
        length = int(inputs["seq_lens"][row])
        tokens = _tokens(inputs["block_table"][row].long(), length, int(numbers["page_size"]))
        found = _positions(indices[row], tokens, min(indices.shape[1], length))
        if isinstance(found, str):
            return {"topk_indices": f"row {row} {found}"}
        if length > indices.shape[1]:
            query, weights = inputs["q_index_fp8"][row], inputs["weights"][row]
            worst = max(worst, _beyond(found, *_scores(query, weights, keys, scales, tokens)))
    return {"topk_indices": worst}


def unpacked_keys(cache: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The cache's bytes as (tokens, width) float8 keys and (tokens,) float32 scales; pages hold keys, then scales."""
    pages, page = cache.shape[0], cache.shape[1]
    flat = cache.view(torch.int8).view(pages, -1)
    keys = flat[:, : page * width].contiguous().view(torch.float8_e4m3fn).view(pages * page, width)
    return keys, flat[:, page * width :].contiguous().view(torch.float32).view(pages * page)


def _tokens(pages: torch.Tensor, length: int, page: int) -> torch.Tensor:
    """Global numbers of a row's tokens, in their order."""
    at = torch.arange(length, device=pages.device)
    return pages[at // page] * page + at % page


def _positions(chosen: torch.Tensor, tokens: torch.Tensor, wanted: int) -> torch.Tensor | str:
    """Positions in the sequence of the chosen tokens, or what is wrong with them as a set."""
    kept = chosen[chosen != PADDING]
    if len(kept) != wanted:
        return f"selects {len(kept)} tokens, not {wanted}"
    if not wanted:
        return kept
    known, order = tokens.sort()
    at = torch.searchsorted(known, kept).clamp(max=len(known) - 1)
    strange = known[at] != kept
    if bool(strange.any()):
        return f"selects {int(kept[strange][0])}, which is no token of its sequence"
    found = order[at]
    if len(found.unique()) != wanted:
        return f"selects {wanted - len(found.unique())} tokens twice"
    return found


def _scores(
    query: torch.Tensor, weights: torch.Tensor, keys: torch.Tensor, scales: torch.Tensor, tokens: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(scores, sums of their terms' absolute values) of a row's tokens, in float64."""
    heads, factors = query.double(), weights.double()
    scores, sizes = [], []
    for part in tokens.split(_CHUNK):
        products = heads @ (keys[part].double() * scales[part].double()[:, None]).T
        terms = products.relu() * factors[:, None]
        scores.append(terms.sum(0))
        sizes.append(terms.abs().sum(0))
    return torch.cat(scores), torch.cat(sizes)


def _beyond(found: torch.Tensor, scores: torch.Tensor, sizes: torch.Tensor) -> float:
    """How far on the wrong side of the k-th score the worst choice lies, as a share of what counts as a tie."""
    limit = scores.topk(len(found)).values[-1]
    left = torch.ones_like(scores, dtype=torch.bool)
    left[found] = False
    missed = (scores[left] - limit).max()
    taken = (limit - scores[found]).max()
    return float(torch.maximum(missed, taken).clamp(min=0.0) / (NEAR * sizes.mean()).clamp(min=1e-30))

"""Whether sampled tokens follow their filtered distribution: every one admissible, all of them together distributed so.

A token is admissible when the filter of its row keeps it; where probabilities tie, or where the running sum stands at
the limit, within what single precision can tell apart, either is. For the distribution each row's token becomes a
number that is uniform on [0, 1] if the token was drawn rightly: the probability of all tokens before it, plus a random
share of its own. Tokens are ordered by probability in one test and by number in another, because a sampler that always
takes the likeliest token looks innocent in the second. The largest distance between the numbers' distribution
and the uniform one exceeds sqrt(ln(2 / a) / 2n) for n rows with a probability of at most a (the inequality of
Dvoretzky, Kiefer and Wolfowitz with Massart's constant): a right sampler is rejected once in 1 / ERROR launches.
"""

import math
import os
from collections.abc import Mapping

import torch

ERROR = 1e-9  # probability that one launch of a right sampler is rejected
SLACK = 1e-4  # of the running sum, in single precision over a hundred thousand tokens
_TESTS = 2


def sampled(
    got: Mapping[str, torch.Tensor],
    want: Mapping[str, torch.Tensor],
    inputs: Mapping[str, torch.Tensor],
    numbers: Mapping[str, float],
) -> dict[str, float | str]:
    """See ``evaluators``: the larger of the two tests' distances, as a share of what is allowed."""
    samples, probs = got["samples"].long(), inputs["probs"].double()
    rows, words = probs.shape
    if bool(((samples < 0) | (samples >= words)).any()):
        at = int(((samples < 0) | (samples >= words)).nonzero()[0])
        return {"samples": f"row {at} samples {int(samples[at])}, of {words} tokens"}
    values, order = probs.sort(dim=-1, descending=True, stable=True)
    kept, admissible = _filtered(values, inputs.get("top_k"), inputs.get("top_p"))
    rank = (order == samples[:, None]).long().argmax(-1)
    refused = ~admissible.gather(1, rank[:, None]).squeeze(1)
    if bool(refused.any()):
        at = int(refused.nonzero()[0])
        return {"samples": f"row {at} samples {int(samples[at])}, which its filter removes"}
    by_rank = kept / kept.sum(-1, keepdim=True)
    by_number = torch.zeros_like(by_rank).scatter_(1, order, by_rank)
    bound = math.sqrt(math.log(2.0 * _TESTS / ERROR) / (2.0 * max(rows, 1)))
    distances = [_distance(by_rank, rank), _distance(by_number, samples)]
    return {"samples": max(distances) / bound}


def _filtered(
    values: torch.Tensor, top_k: torch.Tensor | None, top_p: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of probabilities in descending order: what the filters keep of them, and which tokens may be sampled."""
    words = values.shape[1]
    place = torch.arange(words, device=values.device)
    kept, admissible = values.clone(), values > 0
    if top_k is not None:
        limit = torch.where((top_k > 0) & (top_k < words), top_k.long(), words)[:, None]
        least = values.gather(1, limit - 1)
        kept[place >= limit] = 0.0
        admissible &= values >= least
    if top_p is not None:
        share = top_p.double()[:, None]
        before = (kept / kept.sum(-1, keepdim=True)).cumsum(-1).roll(1, dims=-1)
        before[:, 0] = 0.0
        first = place == 0
        everything = share >= 1.0
        reached = everything | first | ((before <= share + SLACK) & (share > 0.0))
        least = torch.where(reached & admissible, values, math.inf).amin(-1, keepdim=True)
        admissible &= values >= least
        kept = torch.where(everything | first | ((before <= share) & (share > 0.0)), kept, 0.0)
    return kept, admissible


def _distance(chances: torch.Tensor, chosen: torch.Tensor) -> float:
    """Largest distance between the distribution of the rows' numbers and the uniform one."""
    own = chances.gather(1, chosen[:, None]).squeeze(1)
    before = chances.cumsum(-1).gather(1, chosen[:, None]).squeeze(1) - own
    secret = torch.Generator(own.device).manual_seed(int.from_bytes(os.urandom(7), "little"))
    shares = torch.rand(own.shape, generator=secret, device=own.device, dtype=own.dtype)
    numbers = (before + shares * own).clamp(0.0, 1.0).sort().values
    count = len(numbers)
    if not count:
        return 0.0
    steps = torch.arange(count + 1, device=numbers.device, dtype=numbers.dtype) / count
    return float(torch.maximum(steps[1:] - numbers, numbers - steps[:-1]).max())

"""From raw pairs, as the judge reports them, to one log ratio per restart. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from protocol.messages import Restart
from protocol.two_level import Array, order_effect, pair_location, pair_variance, without_order


@dataclass(frozen=True)
class Samples:
    """One log ratio per restart: of one workload, or of all by weight."""

    values: Array
    pairs: float
    """Mean number of pairs behind each value."""
    of_pair: Array
    """Variance of one pair within a restart."""


def pairs_of(restarts: Sequence[Restart], weights: Mapping[str, float]) -> int:
    """Pairs over all restarts of the weighted workload with the fewest."""
    return min(sum(len(restart.pairs.get(name, ())) for restart in restarts) for name in weights)


def of_workload(restarts: Sequence[Restart], workload: str) -> Samples:
    """One workload's values. The order effect is estimated over all restarts together and taken out first."""
    if not restarts:
        raise ValueError("no restarts to estimate from")
    if not all(restart.pairs.get(workload) for restart in restarts):
        raise ValueError(f"a restart holds no pairs of workload {workload!r}")
    pairs = [pair for restart in restarts for pair in restart.pairs[workload]]
    ratios = np.array([log(pair.base_ns / pair.candidate_ns) for pair in pairs])
    first = np.array([pair.candidate_first for pair in pairs], dtype=np.bool_)
    ends = np.cumsum([len(restart.pairs[workload]) for restart in restarts])[:-1]
    groups = np.split(without_order(ratios, first, order_effect(ratios, first)), ends)
    values = np.array([float(pair_location(group)) for group in groups])
    residuals = np.concatenate([group - group.mean() for group in groups])
    mean_pairs = len(pairs) / len(restarts)
    return Samples(values, mean_pairs, pair_variance(residuals, mean_pairs))


def weighted(parts: Mapping[str, Samples], weights: Mapping[str, float]) -> Samples:
    """All workloads as one: the weighted mean of their values; pair variances add by squared weight."""
    shares = normalised(weights)
    values = np.sum([shares[name] * part.values for name, part in parts.items()], axis=0)
    of_pair = np.sum([shares[name] ** 2 * part.of_pair for name, part in parts.items()], axis=0)
    return Samples(values, min(part.pairs for part in parts.values()), of_pair)


def normalised(weights: Mapping[str, float]) -> dict[str, float]:
    """Weights that sum to one. Raises ValueError when one is negative or all are zero."""
    total = sum(weights.values())
    if total <= 0.0 or min(weights.values()) < 0.0:
        raise ValueError("workload weights must be non-negative and not all zero")
    return {name: weight / total for name, weight in weights.items()}

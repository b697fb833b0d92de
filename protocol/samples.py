"""From raw pairs, as the judge reports them, to one log ratio per restart. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from protocol.messages import Restart
from protocol.two_level import Array, about_mean, order_effect, pair_location, pair_variance, without_order


@dataclass(frozen=True)
class Samples:
    """One log ratio of one workload per restart."""

    values: Array
    pairs: float
    """Mean number of pairs behind each value."""
    residuals: Array
    """All pairs about their restart's mean."""

    def of_pair(self) -> Array:
        """Variance of one pair within a restart."""
        return pair_variance(self.residuals, self.pairs)


def pairs_of(restarts: Sequence[Restart], weights: Mapping[str, float]) -> int:
    """Pairs over all restarts of the weighted workload with the fewest."""
    return min(sum(len(restart.pairs.get(name, ())) for restart in restarts) for name in weights)


def of_workloads(restarts: Sequence[Restart], workloads: Iterable[str]) -> dict[str, Samples]:
    """Each workload's values. Its order effect is estimated over all restarts together and taken out first.

    Workloads with the same numbers of pairs, which is most of the time all of them, are computed at once.
    """
    if not restarts:
        raise ValueError("no restarts to estimate from")
    asked = tuple(workloads)
    alike: dict[tuple[int, ...], list[str]] = {}
    for name in asked:
        counts = tuple(len(restart.pairs.get(name, ())) for restart in restarts)
        if not all(counts):
            raise ValueError(f"a restart holds no pairs of workload {name!r}")
        alike.setdefault(counts, []).append(name)
    found = {name: part for counts, names in alike.items() for name, part in _of_alike(restarts, names, counts)}
    return {name: found[name] for name in asked}


def _of_alike(
    restarts: Sequence[Restart], names: Sequence[str], counts: tuple[int, ...]
) -> Iterator[tuple[str, Samples]]:
    """Samples of workloads that have ``counts`` pairs in the restarts; arrays are (workload, restart, pair)."""
    pairs = [[restart.pairs[name] for restart in restarts] for name in names]
    base = np.array([[ns for part in row for ns in part.base_ns] for row in pairs])
    candidate = np.array([[ns for part in row for ns in part.candidate_ns] for row in pairs])
    first = np.array([[each for part in row for each in part.candidate_first] for row in pairs], dtype=np.bool_)
    ratios = np.log(base / candidate)
    flat = without_order(ratios, first, order_effect(ratios, first)[:, None])
    groups = _grouped(flat, counts)
    values = np.concatenate([pair_location(group) for group in groups], axis=1)
    residuals = np.concatenate([about_mean(group).reshape(len(names), -1) for group in groups], axis=1)
    for row, name in enumerate(names):
        yield name, Samples(values[row], sum(counts) / len(counts), residuals[row])


def _grouped(flat: Array, counts: tuple[int, ...]) -> list[Array]:
    """(workload, pair of any restart) as arrays of (workload, restart, pair): one when all restarts are alike."""
    rows = len(flat)
    if len(set(counts)) == 1:
        return [flat.reshape(rows, len(counts), counts[0])]
    parts = np.split(flat, np.cumsum(counts)[:-1], axis=1)
    return [part.reshape(rows, 1, -1) for part in parts]


def weighted(parts: Mapping[str, Samples], weights: Mapping[str, float]) -> Array:
    """All workloads as one: the weighted mean of their values."""
    shares = normalised(weights)
    return np.add.reduce([shares[name] * part.values for name, part in parts.items()])


def pairs_behind(parts: Mapping[str, Samples]) -> float:
    """Mean number of pairs behind a weighted value: of the workload with the fewest."""
    return min(part.pairs for part in parts.values())


def weighted_of_pair(parts: Mapping[str, Samples], weights: Mapping[str, float]) -> Array:
    """Variance of one pair of all workloads as one: those of the workloads add by squared weight."""
    shares = normalised(weights)
    return np.add.reduce([shares[name] ** 2 * part.of_pair() for name, part in parts.items()])


def normalised(weights: Mapping[str, float]) -> dict[str, float]:
    """Weights that sum to one. Raises ValueError when one is negative or all are zero."""
    total = sum(weights.values())
    if total <= 0.0 or min(weights.values()) < 0.0:
        raise ValueError("workload weights must be non-negative and not all zero")
    return {name: weight / total for name, weight in weights.items()}

"""From raw pairs, as the judge reports them, to one log ratio per restart. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.messages import Restart
from protocol.two_level import Array, about_mean, order_effect, pair_location, pair_variance, without_order

Counts = Mapping[str, tuple[int, ...]]
"""How many pairs each restart holds, of each workload."""


@dataclass(frozen=True)
class Samples:
    """One log ratio of one workload per restart."""

    values: Array
    pairs: float
    """Mean number of pairs behind each value."""
    groups: tuple[Array, ...]
    """The log ratios of all pairs, (restart, pair): one array for all restarts when they are alike, else one each."""

    def of_pair(self) -> Array:
        """Variance of one pair within a restart: of all pairs about their restart's mean."""
        residuals = np.concatenate([about_mean(group).ravel() for group in self.groups])
        return pair_variance(residuals, self.pairs)


def counts_of(restarts: Sequence[Restart], workloads: Iterable[str]) -> Counts:
    """How many pairs each restart holds of each of these workloads; 0 where it has none of one."""
    held = [restart.pairs for restart in restarts]
    return {name: tuple([len(one[name].base_ns) if name in one else 0 for one in held]) for name in workloads}


def of_workloads(restarts: Sequence[Restart], counts: Counts) -> dict[str, Samples]:
    """Each counted workload's values. Its order effect is estimated over all restarts together and taken out first.

    Workloads with the same numbers of pairs, which is most of the time all of them, are computed at once.
    """
    if not restarts:
        raise ValueError("no restarts to estimate from")
    alike: dict[tuple[int, ...], list[str]] = {}
    for name, count in counts.items():
        if not all(count):
            raise ValueError(f"a restart holds no pairs of workload {name!r}")
        alike.setdefault(count, []).append(name)
    found = {name: part for count, names in alike.items() for name, part in _of_alike(restarts, names, count)}
    return {name: found[name] for name in counts}


def _of_alike(
    restarts: Sequence[Restart], names: Sequence[str], counts: tuple[int, ...]
) -> Iterator[tuple[str, Samples]]:
    """Samples of workloads that have ``counts`` pairs in the restarts; arrays are (workload, restart, pair)."""
    parts = [restart.pairs[name] for name in names for restart in restarts]
    shape = len(names), sum(counts)
    first = _column([part.candidate_first for part in parts], np.bool_, shape)
    base = _column([part.base_ns for part in parts], np.float64, shape)
    candidate = _column([part.candidate_ns for part in parts], np.float64, shape)
    ratios = np.log(base / candidate)
    flat = without_order(ratios, first, order_effect(ratios, first)[:, None])
    groups = _grouped(flat, counts)
    located = [pair_location(group) for group in groups]
    values = located[0] if len(located) == 1 else np.concatenate(located, axis=1)
    for row, name in enumerate(names):
        yield name, Samples(values[row], shape[1] / len(counts), tuple([group[row] for group in groups]))


def _column(parts: Sequence[Sequence[Any]], dtype: type[np.generic], shape: tuple[int, int]) -> NDArray[Any]:
    return np.fromiter(chain.from_iterable(parts), dtype, shape[0] * shape[1]).reshape(shape)


def _grouped(flat: Array, counts: tuple[int, ...]) -> list[Array]:
    """(workload, pair of any restart) as arrays of (workload, restart, pair): one when all restarts are alike."""
    rows = len(flat)
    if len(set(counts)) == 1:
        return [flat.reshape(rows, len(counts), counts[0])]
    parts = np.split(flat, np.cumsum(counts)[:-1], axis=1)
    return [part.reshape(rows, 1, -1) for part in parts]


def weighted(parts: Mapping[str, Samples], shares: Mapping[str, float]) -> Array:
    """All workloads as one: the mean of their values, weighted by shares that sum to one."""
    return np.add.reduce([shares[name] * part.values for name, part in parts.items()])


def pairs_behind(parts: Mapping[str, Samples]) -> float:
    """Mean number of pairs behind a weighted value: of the workload with the fewest."""
    return min(part.pairs for part in parts.values())


def weighted_of_pair(parts: Mapping[str, Samples], shares: Mapping[str, float]) -> Array:
    """Variance of one pair of all workloads as one: those of the workloads add by squared share."""
    return np.add.reduce([shares[name] ** 2 * part.of_pair() for name, part in parts.items()])


def normalised(weights: Mapping[str, float]) -> dict[str, float]:
    """Weights that sum to one. Raises ValueError when one is negative or all are zero."""
    total = sum(weights.values())
    if total <= 0.0 or min(weights.values()) < 0.0:
        raise ValueError("workload weights must be non-negative and not all zero")
    return {name: weight / total for name, weight in weights.items()}

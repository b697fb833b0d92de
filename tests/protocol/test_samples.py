"""Samples of several workloads are computed at once and come out as if each were alone, to the last bit."""

from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.messages import Restart
from protocol.pairs import Pair
from protocol.samples import Samples, counts_of, of_workloads
from protocol.two_level import order_effect, pair_location, without_order

GAINS = st.floats(-0.5, 0.5)
PAIRS = st.builds(
    lambda first, gain: Pair(candidate_first=first, base_ns=1000.0 * exp(gain), candidate_ns=1000.0),
    st.booleans(),
    GAINS,
)


@st.composite
def measured(draw: st.DrawFn) -> list[Restart]:
    """Some restarts of up to three workloads; all alike, or with any number of pairs each."""
    names, count = ("b", "c", "a")[: draw(st.integers(1, 3))], draw(st.integers(1, 9))
    sizes = draw(st.sampled_from([st.just(4), st.integers(1, 5)]))
    return [Restart.of({name: tuple(draw(PAIRS) for _ in range(draw(sizes))) for name in names}) for _ in range(count)]


def alone(restarts: list[Restart], name: str) -> Samples:
    """One workload, restart by restart: what the law says in words."""
    pairs = [pair for restart in restarts for pair in restart.pairs[name]]
    ratios = np.log([pair.base_ns / pair.candidate_ns for pair in pairs])
    first = np.array([pair.candidate_first for pair in pairs])
    ends = np.cumsum([len(restart.pairs[name]) for restart in restarts])[:-1]
    groups = np.split(without_order(ratios, first, order_effect(ratios, first)), ends)
    mean = len(pairs) / len(restarts)
    located = np.array([pair_location(group) for group in groups])
    return Samples(located, mean, tuple(group[None] for group in groups))


@settings(deadline=None)
@given(measured())
def test_workloads_together_are_each_alone(restarts: list[Restart]) -> None:
    names = tuple(restarts[0].pairs)
    together = of_workloads(restarts, counts_of(restarts, names))
    assert tuple(together) == names, "in the order of the weights, which is the order of the sums"
    for name in names:
        by_itself = of_workloads(restarts, counts_of(restarts, [name]))[name]
        assert np.array_equal(together[name].values, by_itself.values)
        assert together[name].of_pair() == by_itself.of_pair()
        slow = alone(restarts, name)
        assert together[name].values == pytest.approx(slow.values, rel=1e-12, abs=1e-15)
        assert float(together[name].of_pair()) == pytest.approx(float(slow.of_pair()), rel=1e-9, abs=1e-15)
        assert together[name].pairs == slow.pairs


def test_what_was_not_measured_is_told() -> None:
    pair = Pair(candidate_first=True, base_ns=1.0, candidate_ns=1.0)
    restarts = [Restart.of({"a": (pair,)})]
    with pytest.raises(ValueError, match="no restarts"):
        of_workloads([], {"a": ()})
    with pytest.raises(ValueError, match="no pairs of workload 'b'"):
        of_workloads(restarts, counts_of(restarts, ["a", "b"]))

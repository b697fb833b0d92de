"""Held-out shapes take a keep back when the kernel loses on them, and change nothing otherwise."""

from math import log

import pytest

from protocol.held_out import held_to
from protocol.messages import Decision, Estimate, Measurement, Noise, Outcome, Restart
from protocol.pairs import Pair
from protocol.policy import Policy

NOISE = Noise(restart_sd=0.001, restart_df=11, pair_sd=0.004, floor=0.005)
POLICY = Policy()


def kept(state: str = "keep") -> Decision:
    told = Estimate(gain=0.3, low=0.28, high=0.32, pairs=16, restarts=4)
    return Decision(state=state, reason="faster", overall=told, workloads={"listed": told})  # type: ignore[arg-type]


def measured(**speedups: float) -> Measurement:
    """Four restarts of four pairs, with a scatter of half a per cent."""
    restarts = tuple(
        Restart.of(
            {
                name: tuple(
                    Pair(candidate_first=bool(pair % 2), base_ns=1000.0 + pair + restart, candidate_ns=1000.0 / speedup)
                    for pair in range(4)
                )
                for name, speedup in speedups.items()
            }
        )
        for restart in range(4)
    )
    return Measurement(outcome=Outcome.MEASURED, held_out=restarts)


def test_without_them_nothing_changes() -> None:
    decision = kept()
    assert held_to(decision, Measurement(outcome=Outcome.MEASURED), NOISE, POLICY) is decision


@pytest.mark.parametrize("speedups", [{"a": 1.0, "b": 1.0}, {"a": 1.4, "b": 1.0}, {"a": 0.97, "b": 1.2}])
def test_what_holds_there_is_kept_and_they_stand_among_the_workloads(speedups: dict[str, float]) -> None:
    found = held_to(kept(), measured(**speedups), NOISE, POLICY)
    assert (found.state, found.reason, found.overall) == ("keep", "faster", kept().overall)
    assert set(found.workloads) == {"listed", *speedups}
    assert found.workloads["a"].gain == pytest.approx(log(speedups["a"]), abs=0.01)


@pytest.mark.parametrize("speedups", [{"a": 0.95, "b": 1.0}, {"a": 0.5, "b": 3.0}, {"a": 0.2, "b": 0.2}])
def test_a_loss_there_is_a_revert_that_names_no_shape(speedups: dict[str, float]) -> None:
    found = held_to(kept(), measured(**speedups), NOISE, POLICY)
    assert found.state == "revert"
    assert found.reason.startswith("it is slower on shapes that are not listed")


def test_a_loss_below_the_threshold_is_none() -> None:
    assert held_to(kept(), measured(a=0.995, b=1.0), NOISE, POLICY).state == "keep"


def test_what_was_not_to_be_kept_keeps_its_own_reason() -> None:
    found = held_to(kept("unresolved"), measured(a=0.2), NOISE, POLICY)
    assert (found.state, found.reason) == ("unresolved", "faster")


def test_the_state_of_a_campaign_keeps_no_samples_of_them() -> None:
    assert measured(a=1.0).without_samples().held_out == ()

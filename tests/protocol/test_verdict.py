"""The verdict table of DESIGN section 4, row by row, and what must hold for every input."""

from math import inf, log1p, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from story import NOISE, WEIGHTS, decision, estimate, measured

from protocol.messages import Measurement, Noise, Outcome, Restart, Verdict, WorkloadCheck
from protocol.pairs import Pair
from protocol.policy import Policy
from protocol.sequential import decide
from protocol.verdict import judge

LAW = Policy()
GOOD = WorkloadCheck(workload="small", checks=3, worst=1.0)


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (Outcome.TAMPERED, Verdict.TAMPERED),
        (Outcome.BUILD_FAILED, Verdict.BUILD_FAILED),
        (Outcome.INCORRECT, Verdict.INCORRECT),
        (Outcome.CRASHED, Verdict.CRASHED),
        (Outcome.TIMEOUT, Verdict.TIMEOUT),
    ],
)
def test_what_was_not_measured_is_reverted_by_name(outcome: Outcome, verdict: Verdict) -> None:
    found, reason = judge(measured(0.5, outcome, detail="what happened"), None, True, LAW)
    assert (found, reason) == (verdict, "what happened")
    assert not found.kept


def test_every_outcome_has_a_row() -> None:
    for outcome in Outcome:
        judge(measured(outcome=outcome), decision("keep", 0.1) if outcome is Outcome.MEASURED else None, False, LAW)


def test_a_proven_gain_is_kept() -> None:
    assert judge(measured(), decision("keep", 0.1), False, LAW)[0] is Verdict.KEEP


def test_a_proven_gain_of_simpler_code_is_a_keep_of_its_own_right() -> None:
    assert judge(measured(), decision("keep", 0.1), True, LAW)[0] is Verdict.KEEP


@pytest.mark.parametrize("word", ["revert", "unresolved"])
def test_simpler_code_at_the_same_speed_is_kept(word: str) -> None:
    assert judge(measured(), decision(word, 0.0), True, LAW)[0] is Verdict.KEEP_SIMPLER


@pytest.mark.parametrize(
    ("gain", "half"),
    [
        pytest.param(-0.02, 0.004, id="slower beyond doubt"),
        pytest.param(0.0, 0.02, id="a loss above the threshold is left in the interval"),
    ],
)
def test_simpler_code_that_may_be_slower_is_not_kept(gain: float, half: float) -> None:
    assert judge(measured(), decision("revert", gain, half), True, LAW)[0] is Verdict.REVERT


def test_simpler_code_whose_estimate_is_under_the_flat_band_is_not_kept() -> None:
    law = Policy(threshold=0.02)
    assert judge(measured(), decision("revert", -0.0049, 0.009), True, law)[0] is Verdict.KEEP_SIMPLER
    assert judge(measured(), decision("revert", -0.0051, 0.009), True, law)[0] is Verdict.REVERT


def test_simpler_code_that_loses_one_workload_beyond_doubt_is_not_kept() -> None:
    word = decision("revert", 0.0, small=estimate(0.06), large=estimate(-0.06))
    assert judge(measured(), word, True, LAW)[0] is Verdict.REVERT


def test_simpler_code_is_not_kept_before_the_test_has_spoken() -> None:
    assert judge(measured(), decision("continue", 0.0), True, LAW)[0] is Verdict.UNRESOLVED


def test_the_rest_is_reverted_or_unresolved() -> None:
    assert judge(measured(), decision("revert", 0.0), False, LAW)[0] is Verdict.REVERT
    assert judge(measured(), decision("unresolved", 0.02), False, LAW)[0] is Verdict.UNRESOLVED
    assert judge(measured(), decision("continue", 0.02), False, LAW)[0] is Verdict.UNRESOLVED


@pytest.mark.parametrize(
    "checks",
    [
        pytest.param((), id="none was made"),
        pytest.param((GOOD,), id="one workload was never compared"),
        pytest.param((GOOD, WorkloadCheck(workload="large", checks=0, worst=0.0)), id="compared zero times"),
        pytest.param((GOOD, WorkloadCheck(workload="large", checks=3, worst=1.0001)), id="just outside"),
        pytest.param((GOOD, WorkloadCheck(workload="large", checks=3, worst=inf)), id="infinitely outside"),
    ],
)
def test_nothing_incorrect_is_kept_however_fast(checks: tuple[WorkloadCheck, ...]) -> None:
    assert judge(measured(0.9, checks=checks), decision("keep", 0.9), True, LAW)[0] is Verdict.INCORRECT


def test_an_error_that_is_no_number_cannot_be_stated() -> None:
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        WorkloadCheck(workload="small", checks=1, worst=nan)


def test_a_measurement_without_the_tests_word_is_an_error() -> None:
    with pytest.raises(ValueError, match="needs the decision"):
        judge(measured(), None, False, LAW)


WORDS = st.sampled_from(["keep", "revert", "continue", "unresolved"])
CHECKS = st.tuples(
    *(
        st.builds(WorkloadCheck, workload=st.just(name), checks=st.integers(0, 3), worst=st.floats(0.0, 2.0))
        for name in WEIGHTS
    )
)


@given(WORDS, st.floats(-0.5, 0.5), st.floats(0.0, 0.1), CHECKS, st.booleans(), st.sampled_from(Outcome))
def test_what_is_kept_is_measured_correct_and_proven_or_simpler(
    word: str, gain: float, half: float, checks: tuple[WorkloadCheck, ...], simpler: bool, outcome: Outcome
) -> None:
    said = decision(word, gain, half) if outcome is Outcome.MEASURED else None
    verdict, reason = judge(measured(0.0, outcome, checks=checks), said, simpler, LAW)
    assert reason
    if verdict.kept:
        assert outcome is Outcome.MEASURED
        assert all(check.checks > 0 and check.worst <= 1.0 for check in checks)
    if verdict is Verdict.KEEP:
        assert word == "keep"
    if verdict is Verdict.KEEP_SIMPLER:
        assert simpler
        assert gain - half > log1p(-LAW.threshold)


def _samples(base: list[float], candidate: float) -> Measurement:
    pairs = tuple(Pair(candidate_first=i % 2 == 0, base_ns=ns, candidate_ns=candidate) for i, ns in enumerate(base))
    return measured(restarts=(Restart.of(dict.fromkeys(WEIGHTS, pairs)),) * 8)


@given(st.lists(st.floats(900.0, 1200.0), min_size=4, max_size=4), st.floats(0.0, 0.08), st.floats(0.0, 0.05))
def test_the_threshold_is_only_ever_raised(base: list[float], floor: float, threshold: float) -> None:
    law = Policy(threshold=threshold)
    noise = NOISE.model_copy(update={"floor": floor})
    measurement = _samples(base, 1000.0)
    said = decide(measurement.restarts, WEIGHTS, Noise.model_validate(noise.model_dump()), law)
    if judge(measurement, said, False, law)[0] is Verdict.KEEP:
        assert said.overall.gain >= max(log1p(threshold), floor)
        assert said.overall.low > 0.0

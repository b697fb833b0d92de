"""Properties of the law of gains, by Hypothesis, and its error rates, by seeded simulation."""

import sys
from math import exp, log1p
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from protocol.messages import Estimate, Noise, Restart
from protocol.pairs import Pair
from protocol.policy import Policy
from protocol.sequential import agrees, calibrate, combine, decide, drift, estimate, look_errors, target_gain

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from choose_statistics import calibration, law, run_model
from noise_models import CAP, cpu, models

settings.register_profile("law", max_examples=40, deadline=None, derandomize=True)
settings.load_profile("law")

POLICY = Policy()
WEIGHTS = {"small": 1.0, "large": 3.0}
QUIET = Noise(restart_sd=0.001, restart_df=11, pair_sd=0.005, floor=0.003)


def pair(gain: float, base_ns: float = 1000.0, candidate_first: bool = False) -> Pair:
    return Pair(candidate_first=candidate_first, base_ns=base_ns, candidate_ns=base_ns * exp(-gain))


def restart(gains: list[float]) -> Restart:
    """Both workloads with these log gains, orders alternating."""
    pairs = tuple(pair(gain, candidate_first=index % 2 == 1) for index, gain in enumerate(gains))
    return Restart.of(dict.fromkeys(WEIGHTS, pairs))


def planted(gain: float, restarts: int, seed: int, bias_sd: float = 0.002, pair_sd: float = 0.008) -> list[Restart]:
    rng = np.random.default_rng(seed)
    return [
        restart(list(gain + bias_sd * rng.standard_normal() + pair_sd * rng.standard_normal(4)))
        for _ in range(restarts)
    ]


small = st.floats(-0.05, 0.05, allow_nan=False)
samples = st.lists(
    st.builds(
        lambda gains, first, base: Restart.of(
            {name: tuple(pair(g, base, f) for g, f in zip(gains[name], first, strict=True)) for name in WEIGHTS}
        ),
        st.fixed_dictionaries({name: st.lists(small, min_size=4, max_size=4) for name in WEIGHTS}),
        st.lists(st.booleans(), min_size=4, max_size=4),
        st.floats(500.0, 5e6),
    ),
    min_size=1,
    max_size=9,
)
calibrated = st.one_of(
    st.none(),
    st.builds(
        Noise,
        restart_sd=st.floats(0.0, 0.02),
        restart_df=st.integers(1, 20),
        pair_sd=st.floats(0.0, 0.05),
        floor=st.floats(0.0, 0.03),
    ),
)


def mapped(restarts: list[Restart], change) -> list[Restart]:
    return [
        Restart.of({name: tuple(change(one) for one in pairs) for name, pairs in each.pairs.items()})
        for each in restarts
    ]


@given(samples, calibrated)
def test_swapping_sides_negates_every_estimate(restarts, noise):
    swapped = mapped(
        restarts,
        lambda p: Pair(candidate_first=not p.candidate_first, base_ns=p.candidate_ns, candidate_ns=p.base_ns),
    )
    there, there_by_workload = estimate(restarts, WEIGHTS, noise, POLICY, 0.01)
    back, back_by_workload = estimate(swapped, WEIGHTS, noise, POLICY, 0.01)
    for a, b in [(there, back), *((there_by_workload[name], back_by_workload[name]) for name in WEIGHTS)]:
        assert (a.gain, a.low, a.high) == pytest.approx((-b.gain, -b.high, -b.low), abs=1e-9)


@given(samples, calibrated, st.floats(0.01, 100.0))
def test_unit_of_time_is_irrelevant(restarts, noise, unit):
    scaled = mapped(restarts, lambda p: Pair(p.candidate_first, p.base_ns * unit, p.candidate_ns * unit))
    there, back = (estimate(each, WEIGHTS, noise, POLICY, 0.01)[0] for each in (restarts, scaled))
    assert (there.gain, there.low, there.high) == pytest.approx((back.gain, back.low, back.high), abs=1e-9)


@given(samples, calibrated, st.randoms(use_true_random=False))
def test_order_of_restarts_and_of_pairs_within_them_is_irrelevant(restarts, noise, random):
    shuffled = [
        Restart.of({name: tuple(random.sample(pairs, len(pairs))) for name, pairs in each.pairs.items()})
        for each in random.sample(restarts, len(restarts))
    ]
    there, back = (estimate(each, WEIGHTS, noise, POLICY, 0.01)[0] for each in (restarts, shuffled))
    assert (there.gain, there.low, there.high) == pytest.approx((back.gain, back.low, back.high), abs=1e-9)


@given(samples, calibrated, st.floats(0.001, 0.2))
def test_a_planted_gain_shifts_estimate_and_bounds(restarts, noise, gain):
    moved = mapped(restarts, lambda p: Pair(p.candidate_first, p.base_ns, p.candidate_ns * exp(-gain)))
    there, shifted = (estimate(each, WEIGHTS, noise, POLICY, 0.01)[0] for each in (restarts, moved))
    assert shifted.gain - there.gain == pytest.approx(gain, abs=1e-9)
    assert shifted.low - there.low == pytest.approx(gain, abs=1e-9)


@given(samples, calibrated, st.floats(1e-4, 0.2), st.floats(1e-4, 0.2))
def test_more_error_gives_a_narrower_interval(restarts, noise, one, other):
    strict, loose = (estimate(restarts, WEIGHTS, noise, POLICY, error)[0] for error in sorted((one, other)))
    assert strict.low <= loose.low <= loose.gain <= loose.high <= strict.high


@given(samples.filter(lambda each: len(each) > 1), calibrated, st.floats(0.0, 0.2))
def test_more_gain_never_unmakes_a_keep_and_less_never_makes_one(restarts, noise, gain):
    moved = mapped(restarts, lambda p: Pair(p.candidate_first, p.base_ns, p.candidate_ns * exp(-gain)))
    before, after = (decide(each, WEIGHTS, noise, POLICY).state for each in (restarts, moved))
    assert not (before == "keep" and after != "keep")


losses = st.lists(st.lists(st.floats(-0.3, 0.0), min_size=4, max_size=4), min_size=1, max_size=32)


@given(losses, calibrated)
@settings(max_examples=50)
def test_losses_only_are_never_kept(gains, noise):
    assert decide([restart(each) for each in gains], WEIGHTS, noise, POLICY).state != "keep"


flat = st.lists(st.lists(st.floats(-0.009, 0.009), min_size=4, max_size=4), min_size=1, max_size=32)


@given(flat, st.floats(0.05, 0.5), st.floats(0.05, 0.5), st.integers(1, 2), calibrated)
@settings(max_examples=60)
def test_one_wild_restart_or_two_never_make_a_keep(gains, wild, other, how_many, noise):
    """The others lie under the threshold, so a keep could only come from the wild ones."""
    gains[:how_many] = [[wild] * 4, [other] * 4][:how_many]
    assert decide([restart(each) for each in gains], WEIGHTS, noise, POLICY).state != "keep"


@pytest.mark.parametrize("restarts", [2, 4, 8])
def test_two_equal_wild_restarts_never_make_a_keep_at_any_early_look(restarts):
    values = [[0.06] * 4, [0.06] * 4, *([[0.0] * 4] * (restarts - 2))]
    assert decide([restart(each) for each in values], WEIGHTS, QUIET, POLICY).state != "keep"


def test_large_gain_is_kept_at_the_second_look():
    decision = decide(planted(log1p(0.5), 4, seed=1), WEIGHTS, QUIET, POLICY)
    assert decision.state == "keep"
    assert "%" in decision.reason


def test_clear_loss_is_reverted_at_the_first_look():
    decision = decide(planted(-0.1, 2, seed=1), WEIGHTS, QUIET, POLICY)
    assert (decision.state, decision.overall.pairs) == ("revert", 8)


def test_before_the_first_look_it_continues():
    assert decide(planted(0.5, 1, seed=1), WEIGHTS, QUIET, POLICY).state == "continue"


def test_undecided_at_the_cap_is_unresolved():
    policy = Policy(threshold=0.02)
    decision = decide(planted(log1p(0.0199), 32, seed=3), WEIGHTS, QUIET, policy)
    assert decision.state == "unresolved"


def test_pairs_beyond_a_look_wait_for_the_next_one():
    restarts = planted(log1p(0.015), 7, seed=5)
    assert decide(restarts, WEIGHTS, QUIET, POLICY) == decide(restarts[:4], WEIGHTS, QUIET, POLICY)


def test_a_workload_lost_beyond_doubt_vetoes_the_keep():
    rng = np.random.default_rng(2)

    def one() -> Restart:
        won, lost = (
            tuple(pair(g + 0.004 * rng.standard_normal(), candidate_first=i % 2 == 0) for i in range(4))
            for g in (0.3, -0.2)
        )
        return Restart.of({"large": won, "small": lost})

    decision = decide([one() for _ in range(16)], WEIGHTS, QUIET, POLICY)
    assert decision.overall.low > 0.1
    assert decision.state == "revert"
    assert "small" in decision.reason


def test_noise_floor_only_raises_the_threshold():
    loud = QUIET.model_copy(update={"floor": 0.03})
    assert target_gain(QUIET, POLICY) == target_gain(None, POLICY) == log1p(0.01)
    assert target_gain(loud, POLICY) == 0.03
    restarts = planted(log1p(0.02), 32, seed=1)
    assert decide(restarts, WEIGHTS, QUIET, POLICY).state == "keep"
    assert decide(restarts, WEIGHTS, loud, POLICY).state != "keep"


def test_without_calibration_small_gains_need_many_restarts():
    assert decide(planted(log1p(0.5), 4, seed=1), WEIGHTS, None, POLICY).state == "continue"
    assert decide(planted(log1p(0.5), 8, seed=1), WEIGHTS, None, POLICY).state == "keep"
    assert decide(planted(log1p(0.02), 32, seed=1), WEIGHTS, None, POLICY).state == "keep"
    alone, _ = estimate(planted(0.02, 1, seed=1), WEIGHTS, None, POLICY, 0.005)
    assert alone.low < -1.0 < 1.0 < alone.high


def test_looks_spend_the_total_error_and_no_more():
    assert sum(look_errors(POLICY)) == pytest.approx(POLICY.total_error)
    assert all(error > 0 for error in look_errors(POLICY))


def test_the_order_effect_cancels_even_when_orders_are_uneven():
    first = [True, False, False, False]
    pairs = tuple(pair(0.02 + (0.08 if f else -0.08), candidate_first=f) for f in first)
    gain, _ = estimate([Restart.of({"only": pairs})] * 4, {"only": 1.0}, QUIET, POLICY, 0.01)
    assert gain.gain == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("restarts", "weights"), [([], WEIGHTS), (planted(0, 1, 1), {"absent": 1.0}), (planted(0, 1, 1), {"small": 0.0})]
)
def test_what_cannot_be_estimated_is_refused(restarts, weights):
    with pytest.raises(ValueError, match=r"restart|weights"):
        estimate(restarts, weights, None, POLICY, 0.01)


def test_calibration_recovers_planted_noise_and_ignores_a_wild_restart():
    restarts = planted(0.0, 200, seed=4, bias_sd=0.006, pair_sd=0.01)
    restarts[7] = restart([0.06] * 4)
    noise = calibrate(restarts, {"small": 1.0}, POLICY)
    assert noise.restart_sd == pytest.approx(0.006, rel=0.2)
    assert noise.pair_sd == pytest.approx(0.01, rel=0.15)
    with pytest.raises(ValueError, match="at least 4"):
        calibrate(restarts[:3], WEIGHTS, POLICY)


def test_a_constant_bias_of_the_calibration_raises_the_floor():
    honest, biased = (calibrate(planted(gain, 24, seed=4), WEIGHTS, POLICY) for gain in (0.0, 0.012))
    assert biased.floor > honest.floor + 0.01


def near(gain: float, half: float) -> Estimate:
    return Estimate(gain=gain, low=gain - half, high=gain + half, pairs=32, restarts=8)


def test_product_of_landed_gains_against_the_direct_measurement():
    product = combine([near(0.1, 0.03), near(0.2, 0.04)])
    assert (product.gain, product.low, product.high) == pytest.approx((0.3, 0.25, 0.35))
    assert agrees(product, near(0.24, 0.04))
    assert not agrees(product, near(0.2, 0.04))
    assert agrees(0.3, near(0.27, 0.04))
    assert not agrees(0.3, near(0.2, 0.04))
    assert combine([]).gain == 0.0
    moved = drift(near(0.1, 0.03), near(0.05, 0.04))
    assert (moved.gain, moved.low, moved.high) == pytest.approx((-0.05, -0.1, 0.0))


# ---------------------------------------------------------------- error rates, simulated


def as_messages(trials, index: int) -> list[Restart]:
    return [
        Restart.of({"only": tuple(pair(float(g), candidate_first=bool(f)) for g, f in zip(gains, first, strict=True))})
        for gains, first in zip(trials.ratios[index], trials.first[index], strict=True)
    ]


def test_the_simulation_runs_the_law_itself():
    """The script's arrays and the messages' path give the same calibration and the same bounds."""
    rng = np.random.default_rng(11)
    drawn, measured = cpu()(rng, 5, 24), cpu()(rng, 5, CAP)
    found, floors = calibration(drawn)
    for restarts, error in zip((4, 8, CAP), look_errors(POLICY)[1:4], strict=True):
        centre, low, _ = law(measured.upto(restarts), found, error, POLICY.futility_error)
        for index in range(5):
            noise = calibrate(as_messages(drawn, index), {"only": 1.0}, POLICY)
            assert noise.floor == pytest.approx(float(floors[index]))
            seen = as_messages(measured.upto(restarts), index)
            got, _ = estimate(seen, {"only": 1.0}, noise, POLICY, error)
            assert got.gain == pytest.approx(float(centre[index]))
            assert low[index] <= got.low + 1e-12


@pytest.mark.parametrize("name", ["H200 graph 1.3 us", "H200 graph 3.4 us", "H200 gated 4.8 us", "CPU", "CPU loud"])
def test_false_keeps_stay_under_the_total_error(name):
    trials = 8_000
    result = run_model(models()[name], trials, seed=20, rules=("the law: trimmed, two struck",))
    false = result["rules"]["the law: trimmed, two struck"]["false_keeps"]
    assert binomtest(false, trials, POLICY.total_error, alternative="less").pvalue < 0.01


@pytest.mark.parametrize(
    ("name", "power"),
    [("H200 graph 1.3 us", 0.99), ("H200 graph 9.4 us", 0.99), ("H200 graph 127.1 us", 0.99), ("CPU", 0.95)],
)
def test_two_percent_is_found(name, power):
    result = run_model(models()[name], 2_000, seed=21, rules=("the law: trimmed, two struck",))
    found = result["rules"]["the law: trimmed, two struck"]["power"]
    assert found["+2%"] > power
    assert found["+5%"] > 0.99

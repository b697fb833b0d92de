"""What the judge's clocks say about claims, on made-up samples."""

import random

import pytest

from protocol.policy import Policy
from team.judge.clocks import ClockAudit, below_floor, complaint
from team.judge.runner.process import Sample

MS = 1_000_000


def audit(
    dice: random.Random,
    lie: float = 0.0,
    sleep: int = 0,
    preempted: float = 0.0,
    samples: int = 16,
    bursts: tuple[int, ...] = (),
) -> ClockAudit:
    """Samples of 1 ms that claim ``1 - lie`` of their time, with exchanges of 100 us, give or take.

    Into the samples whose numbers are in ``bursts`` fell 0.8 ms of interrupts, before they started their clock.
    """
    result = ClockAudit(cores=1)
    for _ in range(4):
        cost = int(dice.gauss(100_000, 15_000))
        result.add_idle(Sample(500, cost, cost))
    for number in range(samples):
        burst = 800_000 if number in bursts else 0
        cost, away = burst + int(dice.gauss(110_000, 15_000)), 4 * MS if dice.random() < preempted else 0
        claimed = int(MS * (1.0 - lie)) + away
        result.add("w", Sample(claimed, MS + away + cost + sleep, MS + cost))
    return result


@pytest.mark.parametrize("seed", range(20))
def test_honest_claims_raise_no_alarm(seed: int) -> None:
    dice = random.Random(seed)
    assert complaint(audit(dice), audit(dice), ["w"], Policy()) == ("", "")
    assert complaint(audit(dice, preempted=0.5), audit(dice), ["w"], Policy()) == ("", "")
    assert complaint(audit(dice), audit(dice, preempted=0.5), ["w"], Policy()) == ("", "")


@pytest.mark.parametrize("seed", range(20))
def test_bursts_of_interrupts_raise_no_alarm(seed: int) -> None:
    dice = random.Random(seed)
    assert complaint(audit(dice), audit(dice, samples=8, bursts=(3,)), ["w"], Policy()) == ("", "")
    assert complaint(audit(dice), audit(dice, bursts=(2, 9)), ["w"], Policy()) == ("", "")


def test_a_sample_with_a_burst_is_repeated() -> None:
    one = audit(random.Random(1))
    share = Policy().clock_disagreement
    assert one.outlies(Sample(MS, 2 * MS, int(1.9 * MS)), one.cost(), share)
    assert not one.outlies(Sample(MS, 2 * MS, int(1.2 * MS)), one.cost(), share)


@pytest.mark.parametrize("seed", range(20))
def test_a_lie_of_a_quarter_is_seen_at_once_and_of_a_tenth_later(seed: int) -> None:
    dice = random.Random(seed)
    assert "CPU time" in complaint(audit(dice, samples=8), audit(dice, lie=0.25, samples=8), ["w"], Policy())[1]
    assert "CPU time" in complaint(audit(dice, samples=128), audit(dice, lie=0.1, samples=128), ["w"], Policy())[1]


def test_time_spent_elsewhere_shows_on_the_wall_clock() -> None:
    dice = random.Random(1)
    where, clause = complaint(audit(dice), audit(dice, sleep=MS), ["w"], Policy())
    assert (where, "judge's clock" in clause) == ("w", True)


def test_a_preempted_sample_counts_by_its_cpu_time() -> None:
    one = audit(random.Random(1))
    assert one.own_time(Sample(MS, MS + 100_000, MS + 100_000), one.cost()) == MS
    assert one.own_time(Sample(5 * MS, 5 * MS, MS + 110_000), one.cost()) == pytest.approx(MS, rel=0.03)


def test_the_floor_needs_measured_peaks() -> None:
    model = {"bytes_min": 1000.0, "flops": 1000.0}
    assert below_floor(model, {}, "float32", 0.9, 1.0) == ""
    peaks = {"copy_bytes_per_s": 1e9, "float32_flops_per_s": 1e12}
    assert below_floor(model, peaks, "float32", 0.9, 950.0) == ""
    assert "roofline" in below_floor(model, peaks, "float32", 0.9, 850.0)

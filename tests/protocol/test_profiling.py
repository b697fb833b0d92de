"""The position of a kernel by its profile: which peak bounds it, or what it waits for."""

import pytest
from story import A, started

from protocol import events as ev
from protocol.briefing import briefing_of
from protocol.messages import Position, Profile, ProfileReport, Verdict
from protocol.policy import Policy
from protocol.profiling import DRAM, OCCUPANCY, SM, position_of


@pytest.mark.parametrize(
    ("compute", "memory", "occupancy", "expected"),
    [
        (0.71, 0.30, None, Position.COMPUTE),
        (0.30, 0.71, 0.20, Position.BANDWIDTH),
        (0.80, 0.75, 0.90, Position.COMPUTE),
        (0.70, 0.70, 0.90, Position.BALANCED),
        (0.39, 0.39, 0.39, Position.OCCUPANCY),
        (0.39, 0.39, 0.61, Position.LATENCY),
        (0.39, 0.39, 0.50, Position.BALANCED),
        (0.40, 0.10, 0.90, Position.BALANCED),
        (0.39, 0.39, None, Position.UNKNOWN),
    ],
)
def test_the_shares_of_the_peaks_place_a_kernel(
    compute: float, memory: float, occupancy: float | None, expected: Position
) -> None:
    metrics = {SM: compute, DRAM: memory} | ({OCCUPANCY: occupancy} if occupancy is not None else {})
    assert position_of(metrics, Policy()) is expected


@pytest.mark.parametrize("metrics", [{}, {SM: 0.9}, {DRAM: 0.9, OCCUPANCY: 0.1}])
def test_without_both_shares_nothing_is_said(metrics: dict[str, float]) -> None:
    assert position_of(metrics, Policy()) is Position.UNKNOWN


@pytest.mark.parametrize("told", [Position.UNKNOWN, Position.LATENCY])
def test_a_report_without_a_position_gets_it_from_its_metrics(told: Position) -> None:
    story = started()
    story.experiment(A, Verdict.KEEP, 0.2)
    duty = story.ask(A, Profile)
    report = ProfileReport(commit=duty.commit, tool="ncu", metrics={SM: 0.2, DRAM: 0.9}, position=told)
    story.say(A, ev.ProfileReported(duty=duty.id, report=report))
    expected = Position.BANDWIDTH if told is Position.UNKNOWN else told
    assert briefing_of(story.state, A, story.state.head_of(A)).position is expected

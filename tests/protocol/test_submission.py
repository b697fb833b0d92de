"""Phase C in the ledger: versions, what is gone on with, and the average of the runs."""

import pytest
from story import NOISE, A, B, Story, estimate, measured, started

from protocol import events as ev
from protocol.messages import Verdict
from protocol.submission import average, by_workload, next_version, overall, unfinished


def begin(story: Story, tag: str = "fast", version: int = 1) -> None:
    main = story.state.main
    story.say("", ev.SubmissionStarted(tag=tag, version=version, evaluated=main, device="cpu:0", noise=NOISE))


def run(story: Story, gain: float, version: int = 1) -> None:
    number = len(story.state.submissions[-1].runs) + 1
    each = {"small": estimate(gain), "large": estimate(2 * gain)}
    body = ev.SubmissionMeasured(
        tag="fast", version=version, run=number, estimate=estimate(gain), workloads=each, measurement=measured(gain)
    )
    story.say("", body)


def landed() -> Story:
    story = started()
    story.land(story.experiment(A, Verdict.KEEP, 0.05), B)
    return story


def test_the_average_has_mean_spread_and_ends() -> None:
    found = average([0.10, 0.12, 0.11])
    assert (found.runs, found.low, found.high) == (3, 0.10, 0.12)
    assert found.gain == pytest.approx(0.11)
    assert found.spread == pytest.approx(0.01)
    assert average([0.1]).spread == 0.0


def test_a_submission_that_was_broken_off_goes_on_with_its_runs() -> None:
    story = landed()
    begin(story)
    run(story, 0.10)
    run(story, 0.12)
    found = unfinished(story.state.submissions, "fast", story.state.main)
    assert found is not None
    assert overall(found.runs).gain == pytest.approx(0.11)
    assert by_workload(found.runs)["large"].gain == pytest.approx(0.22)
    assert [one.measurement for one in found.runs] == [None, None]
    assert unfinished(story.state.submissions, "other", story.state.main) is None
    assert unfinished(story.state.submissions, "fast", "another-main") is None


def test_one_that_is_done_or_refused_does_not_go_on() -> None:
    story = landed()
    begin(story)
    story.say("", ev.SubmissionRefused(tag="fast", version=1, why="incorrect", workload="small"))
    assert unfinished(story.state.submissions, "fast", story.state.main) is None
    begin(story, version=2)
    story.say("", ev.Submitted(commit="s", branch="autodev/fast", tag="fast", version=2))
    assert unfinished(story.state.submissions, "fast", story.state.main) is None
    assert [one.over for one in story.state.submissions] == ["refused: incorrect", "autodev/fast"]


def test_versions_count_upwards_for_each_tag() -> None:
    taken = ["submission-fast-v1", "submission-fast-v9", "submission-fast-vX", "submission-fast-er-v20", "v3"]
    assert next_version(taken, "fast") == 10
    assert next_version(taken, "other") == 1

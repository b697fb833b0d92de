"""Errors in the report: recorded by output, shown through the kept experiments, told when they near the tolerance."""

import time
from pathlib import Path

import pytest
from campaigns import WORKLOADS, Script

from protocol.accuracy import trails
from protocol.messages import Verdict
from team.report.html import page
from team.report.lines import line
from team.report.log import log_rows
from team.report.notes import _eval
from team.report.reading import read_story


@pytest.fixture
def creeping(tmp_path: Path) -> Script:
    """Three kept experiments, each further from the reference; between them one that is reverted."""
    script = Script(tmp_path)
    script.start()
    script.baselines()
    for error, verdict in ((0.1, Verdict.KEEP), (0.9, Verdict.REVERT), (0.4, Verdict.KEEP), (0.8, Verdict.KEEP)):
        script.error = error
        script.end(script.begin("explorer-1", script.plan()), verdict, 0.1)
    return script


def test_kept_experiments_leave_a_trail(creeping: Script) -> None:
    found = trails(creeping.state)
    assert {trail.place for trail in found} == {(name, "C") for name in WORKLOADS}
    assert {trail.steps for trail in found} == {((1, 0.1), (3, 0.4), (4, 0.8))}
    assert all(trail.creeps(creeping.state.policy) for trail in found)


def test_the_log_and_the_note_tell_errors_by_output(creeping: Script) -> None:
    rows = log_rows(creeping.run_dir)
    assert [row["errors"][next(iter(WORKLOADS))] for row in rows] == [{"C": error} for error in (0.1, 0.9, 0.4, 0.8)]
    assert "worst error 0.8 of tolerance" in _eval(creeping.state.experiments[rows[3]["id"]])


def test_a_keep_near_the_tolerance_says_so(creeping: Script) -> None:
    story = read_story(creeping.run_dir)
    said = [one for one in (line(event, story.state) for event in story.events) if one and "of the tolerance" in one]
    assert len(said) == 1
    assert "#4" in said[0]
    assert "its error is 0.80 of the tolerance in 'C' on" in said[0]


def test_the_page_shows_the_trail(creeping: Script) -> None:
    text = page(read_story(creeping.run_dir), creeping.run_dir, None, time.time())
    assert "#1 0.1, #3 0.4, #4 0.8" in text
    assert "creeps towards its tolerance" in text


def test_nothing_kept_has_no_trail(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.start()
    script.baselines()
    assert "Accuracy" not in page(read_story(tmp_path), tmp_path, None, time.time())

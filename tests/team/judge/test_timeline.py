"""Where the time went: stages are recorded however they end, survive their file, and frequent ones are summed."""

from pathlib import Path

import pytest

from team.judge.timeline import SINGLE, Stage, Timeline, listing, read_stages


def test_a_stage_is_recorded_however_it_ends() -> None:
    timeline = Timeline()
    with pytest.raises(ZeroDivisionError), timeline.stage("fails", "runner 7"):
        raise ZeroDivisionError
    (seen,) = timeline.stages
    assert (seen.name, seen.who) == ("fails", "runner 7")
    assert timeline.began_ns <= seen.begin_ns <= seen.end_ns


def test_the_stages_of_a_request_are_read_again_from_its_begin_on(tmp_path: Path) -> None:
    timeline = Timeline()
    timeline.add("of the request before", "judge", 1, 2)
    timeline.begin()
    timeline.add("context", "runner 8", timeline.began_ns - 5, timeline.began_ns + 7)
    timeline.write(tmp_path / "stages")
    assert read_stages(tmp_path / "stages") == [Stage("context", "runner 8", -5, 7)]
    assert read_stages(tmp_path / "nothing") == []


def test_frequent_stages_are_summed_and_rare_ones_are_not() -> None:
    rare = [Stage("restart", "judge", at, at + 10**9) for at in (3 * 10**9, 0)]
    frequent = [Stage("fill", f"runner {at}", at, at + 10**8) for at in range(1, SINGLE + 2)]
    lines = listing([*rare, *frequent])
    assert [line.split()[5] for line in lines] == ["restart", "fill", "restart"]
    assert lines[1].endswith(f"several in {SINGLE + 1}, longest 100.0 ms")
    assert "1.300 s" in lines[1]

"""One line per event: what it says, that it fits, and that nothing hostile reaches a terminal."""

from pathlib import Path

import pytest
from campaigns import Script, campaign
from hypothesis import given
from hypothesis import strategies as st

from protocol import events as ev
from protocol.messages import Verdict
from protocol.state import CampaignState, apply
from team.report import wording
from team.report import wording as w
from team.report.lines import line, styled
from team.report.reading import read_story

HOSTILE = "evil \x1b[31m\x1b]0;owned\x07 [bold]x[/bold] \u202etxt\n<script>alert(1)</script> µs ×"


@pytest.fixture
def script(tmp_path: Path) -> Script:
    script = Script(tmp_path)
    script.start()
    script.baselines()
    return script


def lines_of(run_dir: Path, width: int | None = None) -> list[str]:
    state, said = CampaignState(), list[str]()
    for event in read_story(run_dir).events:
        apply(state, event)
        one, coloured = line(event, state, width), styled(event, state, width)
        assert (one is None) == (coloured is None)
        if one is not None and coloured is not None:
            assert coloured.plain.rstrip() == one
            said.append(one)
    return said


def test_an_experiments_line_says_everything(script: Script) -> None:
    ident = script.begin("exploiter-1", script.plan("tile-loops"))
    script.end(ident, Verdict.KEEP, 0.2175, 0.0180, "lower bound over 1 %", {"tile": 64, "f": 0.5})
    last = lines_of(script.run_dir)[-1]
    for part in ("#1", "exploiter-1", "cpu:1", "KEEP", "1.243x [1.221, 1.266]", "$0.00", "tile-loops (tile=64 f=0.5)",
                 "lower bound over 1 %"):  # fmt: skip
        assert part in last


def test_what_was_not_measured_has_no_speedup(script: Script) -> None:
    script.end(script.begin("explorer-1", script.plan()), Verdict.CRASHED, reason="signal 11")
    assert " -  " in lines_of(script.run_dir)[-1]
    assert "CRASHED" in lines_of(script.run_dir)[-1]


def test_a_landing_says_where_main_is_now(script: Script) -> None:
    ident = script.begin("explorer-1", script.plan())
    script.end(ident, Verdict.KEEP, 0.5)
    script.land(ident, 0.4, "exploiter-1")
    assert lines_of(script.run_dir)[-1].endswith("main is 1.492x over the baseline")


def test_an_experiment_lost_before_its_plan_has_no_line(script: Script) -> None:
    before = lines_of(script.run_dir)
    script.end(script.begin("explorer-1", None), Verdict.LOST)
    assert lines_of(script.run_dir) == before


def test_every_other_event_has_its_line_or_none(script: Script) -> None:
    ident = script.begin("explorer-1", script.plan())
    script.end(ident, Verdict.KEEP, 0.3)
    script.search("explorer-1", "pack-b")
    script.profile("explorer-1")
    refused = script.begin("exploiter-1", None)
    script.say("exploiter-1", ev.PlanRefused(experiment=refused, plan=script.plan(), why="closed category"))
    script.say("exploiter-1", ev.NothingProposed(experiment=refused, why="no idea left"))
    script.say("explorer-1", ev.AgentLost(why="killed by signal 9"))
    script.say("", ev.LandingConflicted(experiment=ident, main=script.state.main, files=("k.cpp",)))
    script.say("explorer-1", ev.MergeResolved(duty="g1", experiment=ident, why="hunks overlap"))
    script.say("", ev.InteractsBadly(experiment=ident, others=(ident,), candidate="c" * 40, why="no faster together"))
    script.say("", ev.Mended(what=("Removed a lock.",)))
    script.say("", ev.LandingRefused(experiment=ident, why="slower on the merged tree"))
    script.measure_main("exploiter-1")
    script.say("", ev.RoundEnded(number=1, recap=("explorer-1: 1 experiment",)))
    script.say("", ev.StopRequested(why="Ctrl-C"))
    script.say("", ev.Resumed(lost=("explorer-1",)))
    script.say("", ev.Finished(why="budget spent"))
    script.say("", ev.Submitted(commit="a" * 40, branch="autodev/x"))
    script.say("explorer-1", ev.BaselineRefused(duty="b9", why="does not build"))
    text = "\n".join(lines_of(script.run_dir))
    for word in ("search", "profile", "closed category", "no idea left", "killed by signal 9", "slower on the merged",
                 "conflict", "could not resolve", "hunks overlap", "bad pair", "no faster together", "Removed a lock.",
                 "main ", "round 1", "stopping", "in flight and lost: explorer-1", "finished", "submitted",
                 "does not build"):  # fmt: skip
        assert word in text


@pytest.mark.parametrize("width", [80, 100, 140])
def test_lines_fit(tmp_path: Path, width: int) -> None:
    campaign(tmp_path, 12)
    assert max(len(one) for one in lines_of(tmp_path, width)) <= width


def test_hostile_text_stays_text(script: Script) -> None:
    ident = script.begin("explorer-1", script.plan(HOSTILE, change=HOSTILE))
    script.end(ident, Verdict.BUILD_FAILED, reason=HOSTILE)
    last = lines_of(script.run_dir)[-1]
    assert last.isascii()
    assert last.isprintable()
    assert "[bold]x[/bold]" in last


@given(st.text())
def test_plain_is_one_line_of_printable_ascii(text: str) -> None:
    said = w.plain(text)
    assert said.isascii()
    assert said == "" or said.isprintable()
    assert said == w.plain(said)


@given(st.text(), st.integers(0, 40))
def test_cut_never_exceeds_its_width(text: str, width: int) -> None:
    assert len(w.cut(text, width)) <= max(width, 0)


@given(st.floats(1e-4, 1e5))
def test_a_speedup_keeps_its_value(value: float) -> None:
    assert float(w.speedup(value).removesuffix("x")) == pytest.approx(value, rel=1e-3, abs=6e-4)


@given(st.floats())
def test_any_gain_can_be_written(gain: float) -> None:
    assert w.speedup(w.ratio(gain))


TIMES = [(0.5, "0.5000 ns"), (1620.0, "1.620 us"), (1.48e7, "14.80 ms"), (2e9, "2.000 s"), (1e6, "1.000 ms")]


@pytest.mark.parametrize(("ns", "text"), TIMES)
def test_times_have_four_digits(ns: float, text: str) -> None:
    assert w.nanoseconds(ns) == text


def test_a_gpu_is_named_by_the_first_group_of_its_uuid() -> None:
    assert w.short_device("GPU-1a2b3c4d-2b3c-4d5e-6f70-8192a3b4c5d6") == "GPU-1a2b3c4d"
    assert w.short_device("cpu:0-1") == "cpu:0-1"


def test_a_reader_sees_settings_and_not_what_a_mind_keeps_for_itself() -> None:
    assert wording.parameters({"tile": 8, "site": "k.cpp:solve:1", "text": "ab12"}) == "tile=8"

"""Notes: pure, append-only where they say so, harmless as Markdown. And: any sequence of events renders."""

import os
import re
import tempfile
from math import exp
from pathlib import Path

from campaigns import Script, campaign
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from test_report_lines import HOSTILE

from protocol import events as ev
from protocol.messages import Verdict
from protocol.state import CampaignState, apply
from team.report.html import page
from team.report.lines import line
from team.report.log import log_lines, rows_of
from team.report.notes import cell, notes, perf_log
from team.report.reading import read_story
from team.report.staircase import ascii_staircase, spark
from team.report.status import status_of
from team.report.status_view import render_status


def rows_in(text: str) -> list[str]:
    return [one for one in text.splitlines() if re.match(r"\| v\d", one)]


def test_the_perf_log_only_grows(tmp_path: Path) -> None:
    campaign(tmp_path, 12)
    state, before = CampaignState(), list[str]()
    for event in read_story(tmp_path).events:
        apply(state, event)
        if state.numbered:
            now = rows_in(perf_log(state))
            assert now[: len(before)] == before
            before = now
    assert len(before) == 13


def test_a_row_of_the_perf_log_says_what_the_rules_ask(tmp_path: Path) -> None:
    script = campaign(tmp_path, 12)
    done = [script.state.experiments[ident] for ident in script.state.verdicts]
    rows = rows_in(perf_log(script.state))[1:]
    assert len(rows) == len(done)
    for row, experiment in zip(rows, done, strict=True):
        plan = experiment.plan
        assert plan is not None
        assert experiment.verdict is not None
        for told in (experiment.agent, experiment.verdict.value, plan.change, plan.category, plan.bottleneck):
            assert told in row
        assert plan.fallback in row
        speeds = [exp(estimate.gain) for estimate in experiment.workloads.values()]
        cells = [one.strip() for one in row.split("|")]
        if speeds:
            assert cells[6:8] == [f"{min(speeds):.3f}x", f"{max(speeds):.3f}x"]
            assert "[" in cells[5]
    rewritten = done[0]
    assert rewritten.plan is not None
    rewritten.plan = rewritten.plan.model_copy(update={"rewrite": "one kernel in place of three"})
    assert f"rewrite: {rewritten.plan.change}" in perf_log(script.state)
    assert "Staircase of main" in perf_log(script.state)


def test_every_note_has_its_place(tmp_path: Path) -> None:
    script = campaign(tmp_path, 12)
    texts = notes(script.state)
    for path in ("notes/perf_log.md", "team_notes/current_baseline.md", "team_notes/merge_log.md", "plan/plan_v2.md",
                 "results/all_eval_v1.txt", "results/all_eval_v13.txt"):  # fmt: skip
        assert texts[path].endswith("\n")
    assert any(path.startswith("profile/profile_v") for path in texts)
    assert script.state.main in texts["team_notes/current_baseline.md"]
    assert len(rows_in(texts["team_notes/merge_log.md"])) >= len(script.state.landed)
    assert notes(script.state) == texts
    assert notes(CampaignState()) == {}


def test_all_notes_are_ascii_and_stay_tables(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.start()
    script.baselines()
    plan = script.plan(HOSTILE, HOSTILE + "|", change="a|b\n| v9 | x", fallback="`rm` [x](http://evil)")
    script.end(script.begin("explorer-1", plan), Verdict.BUILD_FAILED, reason=HOSTILE + "|")
    texts = notes(script.state)
    assert all(text.isascii() for text in texts.values())
    assert len(rows_in(texts["notes/perf_log.md"])) == 2
    assert "<script" not in texts["notes/perf_log.md"]


@given(st.text())
def test_a_cell_opens_nothing(text: str) -> None:
    said = cell(text)
    assert "\n" not in said
    assert "<" not in said
    assert "](" not in said
    assert said.replace("\\\\", "").count("|") == said.replace("\\\\", "").count("\\|")


@given(st.lists(st.tuples(st.integers(0, 30), st.floats(-3.0, 3.0)), max_size=8), st.integers(0, 300))
def test_the_ascii_staircase_is_a_plot(steps: list[tuple[int, float]], last: int) -> None:
    lines = ascii_staircase([(0, 0.0), *sorted(steps)], last)
    assert len(lines) == 14
    assert all(len(one) <= 80 and one.isascii() for one in lines)
    assert sum("_" in one or "|_" in one for one in lines) >= 1


@given(st.lists(st.floats(-3.0, 3.0)), st.integers(1, 80))
def test_a_spark_fits(levels: list[float], width: int) -> None:
    assert len(spark(levels, width)) == min(len(levels), width)
    assert spark(levels, width, blocks=False).isascii()


words = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
gains = st.floats(-60.0, 60.0) | st.just(float("nan"))
kinds = ("judge", "land", "lose", "open", "search", "main", "resume", "stop", "none", "round")
acts = st.tuples(st.sampled_from(kinds), st.integers(0, 1), st.sampled_from(list(Verdict)), gains, words)


def act(script: Script, what: str, who: int, verdict: Verdict, gain: float, text: str) -> None:
    agents = list(script.state.agents)
    agent, other = agents[who], agents[1 - who]
    if what in ("judge", "land"):
        ident = script.begin(agent, script.plan(text, text))
        script.end(ident, verdict, gain, reason=text, parameters={text: gain})
        if what == "land" and verdict.kept:
            script.land(ident, gain, other)
    elif what == "open":
        script.begin(agent, script.plan(text) if verdict.kept else None)
    elif what == "none":
        script.say(agent, ev.NothingProposed(experiment=script.begin(agent, None), why=text))
    else:
        _act_alone(script, what, agent, text)


def _act_alone(script: Script, what: str, agent: str, text: str) -> None:
    if what == "lose":
        script.say(agent, ev.AgentLost(why=text))
    elif what == "search":
        script.search(agent, text)
    elif what == "main":
        script.measure_main(agent)
    elif what == "resume":
        script.say("", ev.Resumed(lost=(agent,)))
    elif what == "stop":
        script.say("", ev.StopRequested(why=text), ev.Finished(why=text))
    else:
        script.say("", ev.RoundEnded(number=1, recap=(text,)))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(acts, max_size=6), st.booleans())
def test_any_sequence_of_events_renders(sequence: list[tuple[str, int, Verdict, float, str]], calibrated: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        script = Script(Path(folder))
        script.start()
        if calibrated:
            script.baselines()
        for step in sequence:
            act(script, *step)
        story = read_story(Path(folder))
        state = CampaignState()
        for event in story.events:
            apply(state, event)
            said = line(event, state, 100)
            assert said is None or said.isascii()
        console = Console(file=open(os.devnull, "w"), width=100)  # noqa: SIM115
        console.print(render_status(status_of(state, 1, script.now)), log_lines(rows_of(state)))
        assert page(story, Path(folder), None, script.now).endswith("</html>\n")
        assert notes(state)

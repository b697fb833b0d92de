"""Two agents win at once, with real kernels: wins that compose, wins that conflict, and conflicts that stay."""

import json
from math import log
from pathlib import Path
from typing import Any

import pytest
from campaign_bench import Bench, git
from recomputing import REFERENCE, TASK, apart, play, together

from protocol import events as ev
from protocol.state import CampaignState
from roles.minds.scripted import Play
from team.workspace.hub import Hub

pytestmark = pytest.mark.timeout(1200)


def campaign(bench: Bench, kernel: str, explorer: Play, exploiter: Play) -> tuple[CampaignState, list[Any]]:
    """Both plays on this kernel, to the end; the state and the bodies of its events."""
    for name, text in (("row_energy.cpp", kernel), ("task.toml", TASK), ("reference.py", REFERENCE)):
        (bench.task / name).write_text(text)
    git(bench.task, "commit", "-q", "-a", "-m", "recompute")
    team: list[str] = []
    for role, script in (("explorer", explorer), ("exploiter", exploiter)):
        path = bench.task.parent / f"{role}.json"
        path.write_text(json.dumps(script.model_dump(mode="json")))
        team.append(f"{role}:scripted:{path}")
    asked = ("--yes", "--experiments", "2", "--agents", ",".join(team))
    done = bench.call("run", str(bench.task), *asked, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    state = bench.state()
    assert len(state.judged) == 2, done.stdout
    assert all(e.verdict and e.verdict.kept for e in state.judged), done.stdout
    return state, [event.body for event in bench.events()]


def gain_of_main(state: CampaignState) -> tuple[float, float]:
    """Interval of main's log gain over the baseline, measured directly after everything landed."""
    assert state.main_measured[-1].commit == state.main
    estimate = state.main_measured[-1].estimate
    assert estimate is not None
    return estimate.low, estimate.high


def text_of_main(bench: Bench) -> str:
    hub = Hub.open(bench.run)
    return hub.read(["row_energy.cpp"], hub.main)["row_energy.cpp"]


def beats_both_parents(state: CampaignState) -> bool:
    parents = [e.overall.high for e in state.judged if e.overall]
    return gain_of_main(state)[0] > max(parents) > log(1.3)


@pytest.mark.slow
def test_wins_in_different_places_both_land(bench: Bench) -> None:
    plays = play("mean", apart(True, False)), play("top", apart(False, True))
    state, bodies = campaign(bench, apart(False, False), *plays)
    assert [landed.how for landed in state.landed] == ["cherry-pick", "cherry-pick"]
    assert beats_both_parents(state)
    assert text_of_main(bench) == apart(True, True)
    verified = {body.experiment: body.device for body in bodies if isinstance(body, ev.LandingMeasured)}
    for experiment in state.judged:
        assert verified[experiment.id] != state.device_of(state.agents[experiment.agent]), "verified at home"
    message = git(Path(Hub.open(bench.run).path), "log", "-1", "--format=%(trailers)", "main")
    assert all(f"{name}:" in message for name in ("Experiment", "Technique", "Speedup", "Interval"))


@pytest.mark.slow
def test_wins_on_the_same_lines_are_brought_together_by_a_mind(bench: Bench) -> None:
    both = together(True, True)
    plays = play("mean", together(True, False), both), play("top", together(False, True), both)
    state, bodies = campaign(bench, together(False, False), *plays)
    assert [landed.how for landed in state.landed] == ["cherry-pick", "resolved"]
    assert beats_both_parents(state)
    assert text_of_main(bench) == both
    (conflict,) = [body for body in bodies if isinstance(body, ev.LandingConflicted)]
    (answer,) = [body for body in bodies if isinstance(body, ev.MergeResolved)]
    assert conflict.experiment == answer.experiment == state.landed[-1].experiment
    assert answer.commit


@pytest.mark.slow
def test_of_wins_that_nobody_can_merge_the_better_tree_stays(bench: Bench) -> None:
    plays = play("mean", together(True, False)), play("top", together(True, True))
    state, bodies = campaign(bench, together(False, False), *plays)
    (answer,) = [body for body in bodies if isinstance(body, ev.MergeResolved)]
    assert answer.commit == ""
    assert "no resolution" in answer.why
    assert text_of_main(bench) == together(True, True)
    better = next(e for e in state.judged if e.plan and e.plan.technique == "top")
    assert state.landed[-1].experiment == better.id
    whole = [body for body in bodies if isinstance(body, ev.LandingPrepared) and body.how == "whole tree"]
    assert len(whole) == 1, "whole trees were compared once"
    assert gain_of_main(state)[0] > log(2.0)

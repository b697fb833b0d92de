"""Two agents win at once, with real kernels: wins that compose, wins that conflict, and conflicts that stay.

The kernel takes the mean and the top of a row anew for every column. Taking one of them once a row is about twice as
fast, taking both once is many times as fast, so no noise of a machine can hide which tree is which.
"""

import json
from math import log
from pathlib import Path
from typing import Any

import pytest
from campaign_bench import Bench, git

from protocol import events as ev
from protocol.messages import Plan, Proposal, Resolution, Variant
from protocol.state import CampaignState
from roles.minds.scripted import Play
from team.workspace.hub import Hub

TASK = """\
name = "row_energy"
source = "row_energy.cpp"

[arguments]
x = { shape = ["rows", "cols"] }
y = { shape = ["rows", "cols"] }

[tolerance]
default = { atol = 1e-3, rtol = 1e-3 }

[policy]
calibration_restarts = 4

[[workloads]]
name = "only"
dims = { rows = 16, cols = 160 }
"""
REFERENCE = """\
def reference(x, y, rows, cols):
    y.copy_((x - x.mean(-1, keepdim=True)) / (1.0 + x.abs().amax(-1, keepdim=True)))
"""
MEAN = "float mean = 0.0f;\n{0}for (int k = 0; k < cols; k++) mean += x[r * cols + k] / cols;\n"
TOP = "float top = 1.0f;\n{0}for (int k = 0; k < cols; k++) top = std::max(top, 1.0f + std::fabs(x[r * cols + k]));\n"
OUTER, INNER = " " * 8, " " * 12


def apart(mean_once: bool, top_once: bool) -> str:
    """Mean and top in two functions, ten lines apart."""
    return "\n".join((
        "#include <algorithm>\n#include <cmath>\n",
        "static void centre(const float* x, float* y, int rows, int cols) {",
        _loops(MEAN, mean_once, "y[r * cols + c] = x[r * cols + c] - mean;"),
        "}\n\n// the second half\n\n",
        "static void scale(const float* x, float* y, int rows, int cols) {",
        _loops(TOP, top_once, "y[r * cols + c] /= top;"),
        "}\n",
        'extern "C" void solve(const float* x, float* y, int rows, int cols) {',
        "    centre(x, y, rows, cols);\n    scale(x, y, rows, cols);\n}\n",
    ))  # fmt: skip


def _loops(what: str, once: bool, store: str) -> str:
    before = OUTER + what.format(OUTER) if once else ""
    inside = "" if once else INNER + what.format(INNER)
    column = f"{OUTER}for (int c = 0; c < cols; c++) {{\n{inside}{INNER}{store}\n{OUTER}}}"
    return f"    for (int r = 0; r < rows; r++) {{\n{before}{column}\n    }}"


def together(mean_once: bool, top_once: bool) -> str:
    """Mean and top on neighbouring lines of one loop."""
    takes = ((MEAN, mean_once), (TOP, top_once))
    before = "".join(OUTER + take.format(OUTER) for take, once in takes if once)
    inside = "".join(INNER + take.format(INNER) for take, once in takes if not once)
    return "\n".join((
        "#include <algorithm>\n#include <cmath>\n",
        'extern "C" void solve(const float* x, float* y, int rows, int cols) {',
        "    for (int r = 0; r < rows; r++) {",
        f"{before}{OUTER}for (int c = 0; c < cols; c++) {{",
        f"{inside}{INNER}y[r * cols + c] = (x[r * cols + c] - mean) / top;",
        f"{OUTER}}}\n    }}\n}}\n",
    ))  # fmt: skip


def play(technique: str, text: str, resolution: str = "") -> Play:
    words = dict.fromkeys(
        ("bottleneck", "evidence", "mechanism", "disproof", "fallback"), "recomputed for every column"
    )
    plan = Plan(
        technique=technique, category=technique, change=f"take the {technique} once a row", expected_gain=log(2.0),
        cell="balanced/early", **words,
    )  # fmt: skip
    both = {name: Resolution(files={"row_energy.cpp": resolution}, how="both once a row") for name in ("mean", "top")}
    proposal = Proposal(plan=plan, variants=(Variant(files={"row_energy.cpp": text}),))
    return Play(proposals=(proposal,), resolutions=both if resolution else {})


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
    done = bench.call("run", str(bench.task), "--yes", "--experiments", "2", "--agents", ",".join(team))
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

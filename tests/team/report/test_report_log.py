"""The log: one row per experiment, no gap, JSON-ready."""

import json
import os
from pathlib import Path

from campaigns import Script, campaign
from rich.console import Console

from protocol import events as ev
from protocol.messages import Parameter, Verdict
from team.report.log import log_lines, log_rows


def shown(rows: list[dict[str, object]], width: int = 150) -> str:
    console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(log_lines(rows))
    return console.export_text()


def test_numbers_have_no_gap(tmp_path: Path) -> None:
    script = campaign(tmp_path, 24)
    rows = log_rows(tmp_path)
    assert [row["number"] for row in rows] == list(range(1, 25))
    assert sum(row["landed"] for row in rows) == len(script.state.landed)
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert str(rows[0]["technique"]) in shown(rows)


def test_running_planning_lost_and_withdrawn(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.start()
    script.baselines()
    script.end(script.begin("explorer-1", script.plan()), Verdict.LOST, reason="its agent was restarted")
    script.begin("explorer-1", script.plan())
    gone = script.begin("exploiter-1", None)
    script.say("exploiter-1", ev.NothingProposed(experiment=gone, why="no idea"))
    script.begin("exploiter-1", None)
    rows = log_rows(tmp_path)
    assert [(row["number"], row["state"], row["verdict"]) for row in rows] == [
        (1, "judged", "LOST"),
        (2, "running", ""),
        (None, "planning", ""),
    ]
    assert "its agent was restarted" in shown(rows)
    assert "planning" in shown(rows)


def test_no_figure_is_lost_on_a_narrow_terminal(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.start()
    script.baselines()
    ident = script.begin("exploiter-1", script.plan())
    values: dict[str, Parameter] = {f"a_long_name_{n}": n for n in range(20)}
    script.end(ident, Verdict.KEEP, 0.0, 0.1, "a reason of many words " * 9, values)
    text = shown(log_rows(tmp_path), width=80)
    assert "\u2026" not in text
    for figure in ("exploiter-1", "KEEP", "1.000x [0.", "a_long_name_19=19"):
        assert figure in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_row_has_the_figures(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.start()
    script.baselines()
    ident = script.begin("explorer-1", script.plan())
    script.end(ident, Verdict.KEEP, 0.0, 0.1, "why", {"tile": 8})
    script.say("", ev.LandingRefused(experiment=ident, why="slower"))
    row = log_rows(tmp_path)[0]
    assert row["speedup"] == 1.0
    assert row["low"] < 1.0 < row["high"]
    assert row["seconds"] == {"build": 2.9, "check": 0.4, "measure": 1.7}
    assert row["landing"] == "refused: slower"
    assert len(row["workloads"]) == 4
    assert "landing refused: slower" in shown([row], 220)

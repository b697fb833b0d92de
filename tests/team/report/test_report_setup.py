"""The blocks of phase A: the same rows in the status, on the page and in the notes."""

import json
import os
from math import log1p
from pathlib import Path

import pytest
from campaigns import Script
from rich.console import Console

from protocol.hardware import Hardware
from protocol.messages import Noise
from protocol.policy import Policy
from protocol.problem import Operand, Problem
from team.report.html import write_report
from team.report.notes import notes
from team.report.status import status, status_of
from team.report.status_view import render_status

PROBLEM = Problem(
    operator="row_energy", entry="row_energy.cpp(x, y, rows, cols)", numerics="reference",
    operands=(
        Operand(name="x", role="input", dtype="float32", shape=("rows", "cols")),
        Operand(name="y", role="output", dtype="float32", shape=("rows",), tolerance=(1e-3, 1e-4)),
    ),
    dispatch={"rows": (67, 128)}, floors={"wide": {"flops": 2.0, "bytes_min": 8.0}},
)  # fmt: skip
HARDWARE = Hardware(kind="cpu", name="EPYC 9454P", arch="x86_64-avx512", compiler="g++ 12.2.0", isa=("avx2",))
SAID = (
    "row_energy.cpp(x, y, rows, cols)", "y: float32[rows], atol 0.001, rtol 0.0001", "rows 67..128", "flops 2",
    "EPYC 9454P", "x86_64-avx512", "g++ 12.2.0",
    "square-128, square-256", "weighted geometric mean of speedup; keep at >= 1.0%, never lower",
    "24 experiments, $3.00", "or past 2x when the last tries brought nothing", "no vendors' libraries",
    "branch autodev/matmul_cpu-20260725-0f3a of /home/you/kernels, when the campaign ends",
    "huge", "its reference needs 80 GB",
)  # fmt: skip


def begun(run_dir: Path) -> Script:
    script = Script(run_dir)
    script.start(
        Policy(max_dollars=3.0, target_speedup=2.0), problem=PROBLEM, hardware=HARDWARE, submit=True,
        known_broken={"huge": "its reference needs 80 GB"}, tooling=("g++ 12.2.0", "no vendors' libraries"),
    )  # fmt: skip
    return script


def test_status_page_and_notes_show_what_was_agreed(tmp_path: Path) -> None:
    script = begun(tmp_path)
    found = status(tmp_path)
    console = Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(render_status(found))
    shown = {
        "json": json.dumps(found["setup"], ensure_ascii=False),
        "status": console.export_text(),
        "page": write_report(tmp_path, tmp_path / "report.html").read_text().replace("&gt;", ">"),
        "notes": notes(script.state)["notes/setup.md"],
    }
    assert list(found["setup"]) == ["Operator", "Hardware", "Scope", "Known broken, in no verdict"]
    for where, text in shown.items():
        assert [words for words in SAID if words not in text] == [], where


@pytest.mark.parametrize(("floor", "needs"), [(0.004, "1.00 %"), (0.04, "4.00 %")])
def test_noise_above_the_threshold_raises_it_and_that_is_told(tmp_path: Path, floor: float, needs: str) -> None:
    script = begun(tmp_path)
    script.state.noise["cpu:0"] = Noise(restart_sd=0.01, restart_df=11, pair_sd=0.01, floor=floor)
    found = status_of(script.state, None, script.now)
    assert found["noise"]["cpu:0"]["threshold"] == max(log1p(0.01), floor)
    console = Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(render_status(found))
    assert f"so a keep needs {needs}" in console.export_text()


def test_without_blocks_there_is_the_scope_alone(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.start()
    assert list(status(tmp_path)["setup"]) == ["Scope"]
    assert "by submit" in notes(script.state)["notes/setup.md"]

"""The judge on shapes that no mind is told of: asked for by landings and submissions, silent about what they are."""

import sys
from pathlib import Path

import pytest

from protocol.messages import Measurement, Outcome
from protocol.sequential import decide
from team.judge.client import Judge
from team.judge.failures import BaselineBroken
from team.judge.request import Calibrate, Compare
from team.tasks.spec import read_spec

sys.path.insert(0, str(Path(__file__).parents[1]))

from held_out_on_disk import FAST, SECRET, SLOW, kernel, write_task


def compared(judge: Judge, folder: Path, body: str, held_out: bool) -> Measurement:
    task = write_task(folder / f"task-{held_out}")
    tree = folder / f"tree-{held_out}"
    tree.mkdir()
    (tree / "doubled.cpp").write_text(kernel(body))
    return judge.compare(Compare(task=str(task), base=str(task), candidate=str(tree), held_out=held_out))


def test_a_kernel_that_is_wrong_there_is_incorrect_where_a_landing_is_verified(judge: Judge, tmp_path: Path) -> None:
    body = f"if (n != 60000) return; {FAST}"
    found = compared(judge, tmp_path, body, held_out=True)
    assert found.outcome is Outcome.INCORRECT
    assert found.detail == "The candidate failed: an output is wrong on a shape that is not listed."
    assert SECRET not in found.model_dump_json(exclude={"base_build", "candidate_build"})


@pytest.mark.slow
def test_the_quick_check_knows_nothing_of_them(judge: Judge, tmp_path: Path) -> None:
    found = compared(judge, tmp_path, f"if (n != 60000) return; {FAST}", held_out=False)
    assert (found.outcome, found.held_out) == (Outcome.MEASURED, ())
    assert {check.workload for check in found.checks} == {"listed"}


@pytest.mark.slow
def test_a_kernel_that_is_fast_on_listed_shapes_alone_is_measured_on_both(judge: Judge, tmp_path: Path) -> None:
    body = f"if (n == 60000) {{ {FAST} return; }} for (int t = 0; t < 3; t++) {SLOW}"
    found = compared(judge, tmp_path, body, held_out=True)
    assert found.outcome is Outcome.MEASURED, found.detail
    policy = read_spec(tmp_path / "task-True").policy
    assert decide(found.restarts, {"listed": 1.0}, None, policy).overall.gain > 0.2
    pairs = [pair for restart in found.held_out for pair in restart.pairs["held-out 1"]]
    assert len(pairs) == 8
    assert all(pair.candidate_ns > 1.5 * pair.base_ns for pair in sorted(pairs, key=lambda one: one.candidate_ns)[2:-2])
    assert {check.workload for check in found.checks} == {"listed", "held-out 1"}


@pytest.mark.slow
def test_a_base_that_fails_there_begins_no_campaign(judge: Judge, tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    (task / "doubled.cpp").write_text(kernel(f"if (n != 60000) return; {SLOW}"))
    with pytest.raises(BaselineBroken, match="held-out 1"):
        judge.calibrate(Calibrate(task=str(task), base=str(task)))

"""Shapes that a task does not list: near the listed ones, within what the task permits, and held against candidates."""

import random
from pathlib import Path

import pytest

from team.errors import UserError
from team.judge.client import Judge
from team.judge.request import Check, Compare
from team.judge.unlisted import smallest, unlisted_workloads
from team.tasks.spec import read_spec
from team.tasks.task import Task, load_task

TOML = """
name = "scaled"
source = "scaled.cpp"
[arguments]
x = {{ shape = ["rows", "cols"] }}
y = {{ shape = ["rows*cols"] }}
[[workloads]]
name = "large"
dims = {{ rows = 64, cols = 96, axis = 1 }}
[[workloads]]
name = "small"
dims = {{ rows = 8, cols = 96, axis = 1 }}
{rest}
"""
SOURCE = 'extern "C" void solve(const float* x, float* y, int rows, int cols, int axis) {{\n{body}\n}}\n'
PLAIN = "    for (int i = 0; i < rows * cols; i++) y[i] = 2.0f * x[i];"
ONE_SHAPE = "    if (cols == 96) for (int i = 0; i < rows * cols; i++) y[i] = 2.0f * x[i];"
WHOLE_EIGHTS = (
    "    for (int r = 0; r < rows; r++)\n"
    "        for (int c = 0; c < cols / 8 * 8; c++) y[r * cols + c] = 2.0f * x[r * cols + c];"
)


def write(folder: Path, body: str = PLAIN, rest: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "task.toml").write_text(TOML.format(rest=rest))
    (folder / "scaled.cpp").write_text(SOURCE.format(body=body))
    (folder / "reference.py").write_text("def reference(x, y):\n    y.copy_(2 * x.flatten())\n")
    return folder


def drawn(task: Task, times: int = 40) -> list[dict[str, int]]:
    return [one.dims for seed in range(times) for one in unlisted_workloads(task, random.Random(seed))]


def test_they_are_near_the_smallest_and_not_listed(tmp_path: Path) -> None:
    task = load_task(write(tmp_path))
    assert smallest(task).name == "small"
    seen = drawn(task)
    assert len(seen) == 80
    assert {dims["axis"] for dims in seen} == {1}
    assert {dims["cols"] for dims in seen} > {95, 97}
    assert 96 not in {dims["cols"] for dims in seen}
    assert all(1 <= dims["rows"] <= 24 and dims["rows"] != 8 for dims in seen)
    assert len({one.name for one in unlisted_workloads(task, random.Random(1))}) == 2


def test_a_task_says_what_may_vary(tmp_path: Path) -> None:
    shapes = '[shapes]\nfixed = ["rows"]\nmultiples = { cols = 16 }\n'
    seen = drawn(load_task(write(tmp_path / "some", rest=shapes)))
    assert {dims["rows"] for dims in seen} == {8}
    assert {dims["cols"] for dims in seen} == {80, 112, 128}
    none = '[shapes]\nunlisted = false\nreason = "the operator is defined for these shapes alone"\n'
    assert drawn(load_task(write(tmp_path / "none", rest=none))) == []


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        ("[shapes]\nunlisted = false\n", "needs a reason"),
        ('[shapes]\nfixed = ["depth"]\n', "names 'depth'"),
        ("[shapes]\nmultiples = { cols = 0 }\n", "at least 1"),
    ],
)
def test_a_wrong_wish_is_a_sentence(rest: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=says):
        read_spec(write(tmp_path, rest=rest))


def test_a_kernel_for_one_shape_is_incorrect_unless_the_base_is_such_a_kernel(judge: Judge, tmp_path: Path) -> None:
    task, narrow = write(tmp_path / "task"), write(tmp_path / "narrow", ONE_SHAPE)
    seen = judge.compare(Compare(task=str(task), base=str(task), candidate=str(narrow)))
    assert seen.outcome.value == "incorrect"
    assert "unlisted" in seen.detail
    eights = write(tmp_path / "eights", WHOLE_EIGHTS)
    seen = judge.check(Check(task=str(eights), tree=str(eights)))
    assert seen.outcome.value == "measured", seen.detail
    assert {check.workload for check in seen.checks} == {"large", "small"}

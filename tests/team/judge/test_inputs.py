"""Inputs of the checks: fresh with every draw, bent as each profile says; outputs of every kind compared by name."""

import os
from pathlib import Path

import pytest
import torch

from team.judge import inputs
from team.judge.check import ADVERSARIAL, PROFILES
from team.judge.inputs import LOWERED, SPIKED, InputSource, Profile
from team.tasks.task import Task, load_task

TOML = """
name = "kinds"
source = "kinds.cpp"
[arguments]
x = { shape = ["n"] }
scale = { shape = ["n"], values = "positive" }
index = { shape = ["n"], values = "integers", low = 0, high = 5 }
y = { shape = ["n"] }
count = { shape = ["n"] }
flag = { shape = ["n"] }
[tolerance]
default = { atol = 0.1, rtol = 0.0 }
[[workloads]]
name = "one"
dims = { n = 4096 }
"""
SOURCE = """\
extern "C" void solve(const float* x, const float* scale, const int* index, float* y, int* count, bool* flag, int n) {}
"""
REFERENCE = """\
def reference(x, scale, index, y, count, flag):
    y.copy_(x * scale)
    count.copy_(index * 2)
    flag.copy_(x > 0)
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    folder = tmp_path_factory.mktemp("kinds")
    for name, text in (("task.toml", TOML), ("kinds.cpp", SOURCE), ("reference.py", REFERENCE)):
        (folder / name).write_text(text)
    return load_task(folder)


def test_no_two_draws_and_no_two_launches_are_the_same(task: Task) -> None:
    workload = task.workloads[0]
    first, second = (InputSource(task).timed(workload, 2) for _ in range(2))
    for name in ("x", "scale", "index"):
        assert not first[name][0].equal(first[name][1])
        assert not first[name].equal(second[name])


def bent(task: Task, profile: Profile) -> dict[str, torch.Tensor]:
    found = InputSource(task).profiled(task.workloads[0], profile)
    assert found is not None
    return {name: value[0] for name, value in found.items()}


def test_each_profile_is_what_it_says(task: Task) -> None:
    assert set(PROFILES) | set(ADVERSARIAL) == {"large", "tiny", "zeros", "constant", "lowered", "spiked"}
    assert bent(task, "zeros")["x"].count_nonzero() == 0
    assert len(bent(task, "constant")["x"].unique()) == 1
    assert bent(task, "large")["x"].std() > 100.0
    assert bent(task, "tiny")["x"].std() < 0.01
    assert bent(task, "lowered")["x"].mean() < -0.9 * LOWERED
    spiked = bent(task, "spiked")["x"].abs()
    assert (spiked > 20.0).sum() in range(1, len(spiked) // SPIKED + 1)


def test_a_profile_keeps_within_the_kind_of_an_argument(task: Task) -> None:
    for profile in (*PROFILES, *ADVERSARIAL):
        found = bent(task, profile)
        assert bool((found["scale"] > 0).all())
        assert found["index"].min() >= 0
        assert found["index"].max() <= 5


def test_errors_are_told_by_output_and_integers_and_booleans_are_exact(task: Task) -> None:
    workload = task.workloads[0]
    inputs = {name: value[0] for name, value in InputSource(task).timed(workload, 1).items()}
    want = task.reference(workload, inputs, double=True)
    got = {buffer.name: want[buffer.name].to(buffer.dtype) for buffer in task.outputs}
    assert task.compare(got, want).passes
    got["y"] = got["y"] + 0.05
    seen = task.compare(got, want)
    assert seen.passes
    assert seen.errors["y"] == pytest.approx(0.5, rel=0.01)
    assert (seen.errors["count"], seen.errors["flag"]) == (0.0, 0.0)
    for name in ("count", "flag"):
        wrong = {**got, name: got[name].clone()}
        wrong[name][7] = 1 - wrong[name][7].to(torch.int32) if name == "count" else ~wrong[name][7]
        found = task.compare(wrong, want)
        assert not found.passes
        assert found.output == name


@pytest.mark.parametrize("many", [1, 1 << 40])
def test_inputs_that_a_task_makes_are_the_same_one_by_one_and_side_by_side(
    many: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = "def make_inputs(n, seed):\n    x = torch.full((n,), float(seed % 10007))\n"
    own += "    return {'x': x, 'scale': x, 'index': x.int()}\n"
    for name, text in (("task.toml", TOML), ("kinds.cpp", SOURCE), ("reference.py", f"import torch\n{REFERENCE}{own}")):
        (tmp_path / name).write_text(text)
    made = load_task(tmp_path)
    monkeypatch.setattr(inputs, "MANY", many)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(6)))
    source = InputSource(made)
    source.dice.seed(3)
    found = source.timed(made.workloads[0], 12)["x"]
    source.dice.seed(3)
    assert found[:, 0].tolist() == [float(source.dice.getrandbits(48) % 10007) for _ in range(12)]
    assert (found == found[:, :1]).all()

"""A KernelBench problem becomes a task that the judge accepts, on a CPU in C++ and under Triton's interpreter."""

from pathlib import Path

import pytest
import torch
from problems_on_disk import HEADED, plain, write_problem

from protocol.messages import Outcome
from team.cli import app, main
from team.devices.cpu import cpu_devices
from team.errors import UserError
from team.judge.judge import Judge
from team.judge.request import Check
from team.tasks.formats.kernelbench.importing import import_problem
from team.tasks.formats.kernelbench.problem import Precision, read_problem
from team.tasks.formats.recognised import is_foreign
from team.tasks.task import Task, load_task


def imported(folder: Path, text: str = HEADED, precision: Precision = "fp32", language: str = "cpp") -> Task:
    made = import_problem(read_problem(write_problem(folder, text), precision), folder / "task", language)  # type: ignore[arg-type]
    return load_task(made.folder)


def test_weights_are_arguments_and_the_reference_is_the_problems_own_model(tmp_path: Path) -> None:
    task = imported(tmp_path)
    names = {buffer.name: buffer.dtype for buffer in task.inputs}
    weights = ["linear_weight", "linear_bias", "norm_weight", "norm_bias"]
    assert list(names) == ["x", "labels", *weights]
    assert names["labels"] is torch.int64
    assert [buffer.name for buffer in task.outputs] == ["out1", "out2"]
    assert task.workloads[0].dims == {"batch": 12, "features": 20, "classes": 9}
    made = task.make_inputs(task.workloads[0], 5)
    assert all(made[name].equal(again) for name, again in task.make_inputs(task.workloads[0], 5).items())
    assert not made["linear_weight"].equal(task.make_inputs(task.workloads[0], 6)["linear_weight"])
    y = torch.nn.functional.linear(made["x"], made["linear_weight"], made["linear_bias"])
    y = torch.relu(torch.nn.functional.layer_norm(y, (9,), made["norm_weight"], made["norm_bias"]))
    want = task.reference(task.workloads[0], made, double=True)
    assert want["out1"].dtype is torch.float64
    torch.testing.assert_close(want["out1"].float(), y)
    torch.testing.assert_close(want["out2"].float(), torch.nn.functional.cross_entropy(y, made["labels"]))


BATCHED = HEADED.replace("nn.LayerNorm(classes)", "nn.BatchNorm1d(classes)")


def test_the_reference_runs_where_its_inputs_are_and_a_batch_norm_uses_its_batch(tmp_path: Path) -> None:
    task = imported(tmp_path, BATCHED)
    assert "norm_running_mean" not in {buffer.name for buffer in task.inputs}
    made = task.make_inputs(task.workloads[0], 5)
    there = task.reference(task.workloads[0], {name: value.to("meta") for name, value in made.items()}, double=True)
    assert {value.device.type for value in there.values()} == {"meta"}  # a stand-in for a card
    y = torch.nn.functional.linear(made["x"], made["linear_weight"])
    y = torch.nn.functional.batch_norm(y, None, None, made["norm_weight"], made["norm_bias"], training=True)
    torch.testing.assert_close(task.reference(task.workloads[0], made)["out1"], torch.relu(y), atol=1e-5, rtol=1e-4)


def test_a_weight_that_is_alike_everywhere_is_given_values(tmp_path: Path) -> None:
    task = imported(tmp_path)
    made = task.make_inputs(task.workloads[0], 1)
    assert made["norm_weight"].std() > 0.05
    assert made["norm_weight"].min() > 0.5
    assert made["norm_bias"].std() > 0.02


@pytest.mark.parametrize(("precision", "dtype", "tolerance"), [("fp32", "float32", 1e-4), ("bf16", "bfloat16", 1e-2)])
def test_precisions_are_the_benchmarks(tmp_path: Path, precision: Precision, dtype: str, tolerance: float) -> None:
    task = imported(tmp_path, precision=precision)
    assert task.spec.arguments["x"].dtype == task.spec.arguments["norm_bias"].dtype == dtype
    assert task.spec.arguments["labels"].dtype == "int64"
    assert task.make_inputs(task.workloads[0], 1)["linear_weight"].dtype is getattr(torch, dtype)
    assert task.spec.tolerance_of("out1").atol == task.spec.tolerance_of("out1").rtol == tolerance


def test_the_floor_counts_what_must_move(tmp_path: Path) -> None:
    task = imported(tmp_path, plain("torch.softmax(x, dim=1)"))
    assert task.floor(task.workloads[0]) == {"flops": 960.0, "bytes_min": 2 * 4 * 960.0}


@pytest.mark.slow
def test_the_judge_accepts_the_first_kernel_and_refuses_a_wrong_one(tmp_path: Path) -> None:
    task = imported(tmp_path)
    judge = Judge(cpu_devices(1)[0], tmp_path / "scratch")
    try:
        right = judge.check(Check(task=str(task.folder), tree=str(task.folder)))
        assert right.outcome is Outcome.MEASURED, right.detail
        source = task.folder / task.spec.source
        (tmp_path / "tree").mkdir()
        wrong = source.read_text().replace("norm_bias[i1]", "0.0f")
        assert wrong != source.read_text()
        (tmp_path / "tree" / task.spec.source).write_text(wrong)
        found = judge.check(Check(task=str(task.folder), tree=str(tmp_path / "tree")))
        assert found.outcome is Outcome.INCORRECT
    finally:
        judge.close()


@pytest.mark.slow
def test_triton_is_interpreted_on_small_shapes(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    task = imported(tmp_path, plain("torch.softmax(x * 2, dim=1)", rows=900, cols=700), language="triton")
    small = task.spec.interpreted[0].dims
    assert 2 * small["rows"] * small["cols"] <= 4096
    judge = Judge(cpu_devices(1)[0], tmp_path / "scratch")
    try:
        found = judge.check(Check(task=str(task.folder), tree=str(task.folder)))
        assert found.outcome is Outcome.MEASURED, found.detail
    finally:
        judge.close()


def test_init_recognises_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_problem(tmp_path, plain("x * 3"))
    assert is_foreign(path)
    assert not is_foreign(write_problem(tmp_path, "def run_kernel(x):\n    pass\n", "other.py"))
    app(["init", str(path), "--language", "cpp", "--dim", "rows=5"], standalone_mode=False)
    assert f"Made {tmp_path / 'problem_file'}" in capsys.readouterr().out
    assert load_task(tmp_path / "problem_file").workloads[0].dims == {"rows": 5, "cols": 40}


WRONG = {
    "no such size": (["--dim", "batch=5"], "has no size 'batch'. Its top-level integers are: rows, cols"),
    "language": (["--language", "fortran"], "--language has no 'fortran'. It has: triton, cuda, cpp"),
    "precision": (["--precision", "fp8"], "--precision has no 'fp8'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_options_are_one_sentence(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options, says = WRONG[name]
    monkeypatch.setattr("sys.argv", ["kernelteam", "init", str(write_problem(tmp_path, plain("x * 3"))), *options])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert says in capsys.readouterr().err


BROKEN = {
    "loads": (HEADED.replace("batch = 12", "batch = 12 / 0"), "does not load: ZeroDivisionError"),
    "inputs": (HEADED.replace("torch.rand(batch", "torch.rnd(batch"), "cannot make its model or inputs"),
    "forward": (HEADED.replace("self.norm(", "self.nrm("), "forward raised AttributeError"),
    "unknown": (plain("torch.linalg.inv(x)", rows=4, cols=4), "nobody taught it the operator"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_with_a_problem_is_one_sentence(name: str, tmp_path: Path) -> None:
    text, says = BROKEN[name]
    with pytest.raises(UserError, match=says):
        imported(tmp_path, text)
    assert not (tmp_path / "task").exists()

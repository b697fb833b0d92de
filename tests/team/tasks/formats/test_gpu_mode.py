"""A GPU MODE problem becomes a task that the judge accepts, and the result one submission file."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from gpu_mode_on_disk import CASES, REFERENCE, write_problem

from protocol.messages import Outcome
from team.cli import app
from team.devices.cpu import cpu_devices
from team.errors import UserError
from team.judge.judge import Judge
from team.judge.request import Check
from team.tasks.formats.export import export
from team.tasks.formats.gpu_mode.importing import import_problem
from team.tasks.formats.gpu_mode.problem import read_problem
from team.tasks.formats.recognised import is_foreign
from team.tasks.task import Task, load_task
from team.tasks.vetting.vetting import vet


def imported(folder: Path, language: str = "cpp", **texts: str) -> Task:
    problem = read_problem(write_problem(folder / "given", **texts))
    return load_task(import_problem(problem, folder / "task", language).folder)  # type: ignore[arg-type]


def test_benchmarks_are_timed_and_tests_are_checked(tmp_path: Path) -> None:
    task = imported(tmp_path)
    assert [one.dims for one in task.workloads] == [{"rows": 256, "cols": 512}, {"rows": 100, "cols": 1000}]
    assert [one.dims for one in task.spec.checked] == [{"rows": 7, "cols": 33}, {"rows": 64, "cols": 64}]
    assert {one.weight for one in task.workloads} == {1.0}
    assert [buffer.name for buffer in task.inputs] == ["values", "weight"]
    assert task.spec.tolerance_of("out").atol == task.spec.tolerance_of("out").rtol == 1e-3
    assert task.floor(task.workloads[0]) == {"flops": 256.0, "bytes_min": 4.0 * (256 * 512 + 512 + 256)}


def test_the_reference_is_the_problems_own_on_fresh_inputs(tmp_path: Path) -> None:
    task = imported(tmp_path)
    workload = task.spec.checked[0]
    first, second = task.make_inputs(workload, 1), task.make_inputs(workload, 2)
    assert not first["values"].equal(second["values"])
    results = [task.reference(workload, one)["out"] for one in (first, second)]
    for inputs, result in zip((first, second), results, strict=True):
        torch.testing.assert_close(result, (inputs["values"] * inputs["weight"]).sum(dim=1))
    assert vet(task.folder).findings == []


def test_the_judge_accepts_it_and_refuses_what_is_wrong_on_a_test_alone(tmp_path: Path) -> None:
    task = imported(tmp_path)
    source = task.folder / task.spec.source
    text = source.read_text()
    (tmp_path / "tree").mkdir()
    wrong = text.replace("    // sum\n", "    if (rows == 7) return;\n    // sum\n")
    assert wrong != text
    (tmp_path / "tree" / source.name).write_text(wrong)
    judge = Judge(cpu_devices(1)[0], tmp_path / "scratch")
    try:
        right = judge.check(Check(task=str(task.folder), tree=str(task.folder)))
        assert right.outcome is Outcome.MEASURED, right.detail
        assert {"test rows=7 cols=33", "test rows=64 cols=64"} <= {one.workload for one in right.checks}
        found = judge.check(Check(task=str(task.folder), tree=str(tmp_path / "tree")))
        assert (found.outcome, found.workload) == (Outcome.INCORRECT, "test rows=7 cols=33")
    finally:
        judge.close()


def test_the_result_is_a_submission_that_the_problems_own_check_accepts(tmp_path: Path) -> None:
    path = export(imported(tmp_path).folder, tmp_path / "submission.py")
    spec = importlib.util.spec_from_file_location("gpu_mode_submission", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    problem = read_problem(tmp_path / "given" / "weighted_rows")
    for case in (*problem.cases("tests"), *problem.cases("benchmarks")):
        data = problem.data(case, 77)
        answer = module.custom_kernel(data.filled({}))
        assert problem.accepts(data.filled({}), answer)
        assert not problem.accepts(data.filled({}), answer * 1.01 + 0.1)


def test_init_recognises_the_folder_and_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = write_problem(tmp_path)
    assert is_foreign(place)
    assert is_foreign(place / "task.yml")
    app(["init", str(place), "--language", "cpp", "--folder", str(tmp_path / "made")], standalone_mode=False)
    assert f"Made {tmp_path / 'made'}" in capsys.readouterr().out


WRONG = {
    "no benchmarks": ({"cases": CASES.replace("benchmarks:", "others:")}, "lists no benchmarks"),
    "not YAML": ({"cases": "tests: ["}, "cannot be read"),
    "no reference": ({"reference": REFERENCE.replace("def ref_kernel", "def other")}, "defines no ref_kernel"),
    "module": ({"reference": "import nowhere_to_be_found\n"}, "needs the module nowhere_to_be_found"),
    "raises": ({"reference": REFERENCE.replace("sum(dim=1)", "sum(dim=7)")}, "ref_kernel of .* raised IndexError"),
    "differs": ({"cases": CASES.replace('"cols": 33,', '"cols": 33, "kind": 1,')}, "differs|raised TypeError"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_problem_is_one_sentence(name: str, tmp_path: Path) -> None:
    texts, says = WRONG[name]
    with pytest.raises(UserError, match=says):
        imported(tmp_path, **texts)

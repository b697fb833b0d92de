"""The result of a campaign goes back in its task's format: from a run folder made by hand, and from a real campaign."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from gpu_mode_on_disk import write_problem as write_gpu_mode
from problems_on_disk import plain, write_problem
from run_on_disk import campaign_on, git, land
from test_flashinfer_import import dataset

from team.cli import app
from team.errors import UserError
from team.runs import Run
from team.tasks.formats.entry import import_foreign
from team.tasks.formats.export import artifact, export
from team.tasks.formats.flashinfer.packing import read_solution
from team.tasks.formats.gpu_mode.importing import import_problem as import_gpu_mode
from team.tasks.formats.gpu_mode.problem import read_problem as read_gpu_mode
from team.tasks.formats.kernelbench.importing import import_problem
from team.tasks.formats.kernelbench.problem import read_problem
from team.tasks.formats.recognised import was_imported

ROOT = Path(__file__).parents[4]
LANDED = "/* landed */ "


def loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"exported_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_softmax(folder: Path) -> Run:
    problem = read_problem(write_problem(folder, plain("torch.softmax(x, dim=1)")))
    return campaign_on(import_problem(problem, folder / "task", "cpp").folder, folder / "runs")


@pytest.mark.slow
def test_main_of_a_kernelbench_campaign_becomes_a_model(tmp_path: Path) -> None:
    run = on_softmax(tmp_path)
    land(run, 'extern "C"', f'{LANDED}extern "C"')
    path = export(run.folder, tmp_path / "model.py")
    assert LANDED in path.read_text()
    x = torch.randn(24, 40)
    torch.testing.assert_close(loaded(path).ModelNew()(x), torch.softmax(x, dim=1))


def test_main_of_a_gpu_mode_campaign_becomes_a_submission(tmp_path: Path) -> None:
    problem = read_gpu_mode(write_gpu_mode(tmp_path / "given"))
    run = campaign_on(import_gpu_mode(problem, tmp_path / "task", "cpp").folder, tmp_path / "runs")
    land(run, 'extern "C"', f'{LANDED}extern "C"')
    path = export(run.folder, tmp_path / "submission.py")
    assert LANDED in path.read_text()
    data = problem.data(problem.cases("tests")[0], 7)
    assert problem.accepts(data.filled({}), loaded(path).custom_kernel(data.filled({})))


def test_main_of_a_flashinfer_campaign_becomes_a_solution_and_a_candidate_again(tmp_path: Path) -> None:
    folder, _ = import_foreign(dataset(tmp_path / "data"), tmp_path / "task", "triton", "fp32", {"M": 6})
    (folder / "kernel.py").write_text("def run_kernel(x, places, y, a, M, W):\n    y.copy_(a * x)\n")
    run = campaign_on(folder, tmp_path / "runs")
    land(run, "a * x", "x * a")
    path = export(run.folder, tmp_path / "data" / "solutions" / "mine.json")
    assert "y.copy_(x * a)" in read_solution(path).sources[0].content
    again, _ = import_foreign(path, tmp_path / "again", "triton", "fp32", {})
    assert "y.copy_(x * a)" in (again / "kernel.py").read_text()
    assert (export(run.folder, tmp_path / "contest") / "axpy_n" / "config.toml").is_file()


def test_a_campaign_in_which_nothing_landed_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = on_softmax(tmp_path)
    app(["export", str(run.folder), "-o", str(tmp_path / "model.py")], standalone_mode=False)
    assert "Nothing has landed in this campaign" in capsys.readouterr().out
    land(run, 'extern "C"', f'{LANDED}extern "C"')
    app(["export", str(run.folder), "-o", str(tmp_path / "later.py")], standalone_mode=False)
    assert "Nothing" not in capsys.readouterr().out


def test_what_is_neither_a_campaign_nor_a_task_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no campaign"):
        export(tmp_path / "nowhere", tmp_path / "out.py")


def test_a_submission_carries_the_formats_own_file(tmp_path: Path) -> None:
    run = on_softmax(tmp_path)
    name, text = artifact(run.trusted, run.trusted)
    assert name == "submission.py"
    assert "class ModelNew" in text
    assert was_imported(run.trusted)
    assert not was_imported(ROOT / "examples" / "matmul_cpu")


@pytest.mark.slow
def test_a_real_campaign_on_a_cpu_is_submitted_and_exported(tmp_path: Path) -> None:
    text = plain("(x @ x.T).relu()", rows=160, cols=160)
    folder = import_problem(read_problem(write_problem(tmp_path, text)), tmp_path / "task", "cpp").folder
    git(folder, "init", "-q", "-b", "trunk")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=Ada", "commit", "-q", "-m", "a task")
    law = tmp_path / "campaign.toml"
    law.write_text(
        "[policy]\nthreshold = 0.1\nlooks = [4, 8, 16, 32]\npairs_per_restart = 2\nscreen_pairs = 2\n"
        "struck_restarts = 1\ncalibration_restarts = 4\nsubmission_runs = 1\n"
    )
    environment = {**os.environ, "KERNELTEAM_HOME": str(tmp_path / "home")}

    def product(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "team.cli", *words],
            env=environment, capture_output=True, text=True, timeout=220, stdin=subprocess.DEVNULL, cwd=ROOT,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    product("run", str(folder), "--yes", "--agents", "1", "--experiments", "4", "--campaign", str(law))
    (ledger,) = (tmp_path / "home").glob("runs/*/ledger.sqlite")
    said = product("export", str(ledger.parent), "-o", str(tmp_path / "model.py"))
    assert "Nothing has landed" not in said
    assert (folder / "task.cpp").read_text() not in (tmp_path / "model.py").read_text()
    product("submit", str(ledger.parent))
    (submitted,) = ledger.parent.glob("submissions/*/submission.py")
    assert submitted.read_text() == (tmp_path / "model.py").read_text()
    command = [sys.executable, str(ROOT / "scripts" / "kernelbench_eval.py"), "--device", "cpu", "--no-compile"]
    command += [f"{tmp_path / 'problem_file.py'}={submitted}", "--repeats", "20", "-o", str(tmp_path / "found.json")]
    assert subprocess.run(command, timeout=100, cwd=ROOT, capture_output=True).returncode == 0
    assert json.loads((tmp_path / "found.json").read_text())["results"][0]["correct"]

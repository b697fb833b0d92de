"""A result goes back as one ModelNew file, and a plain script by the benchmark's rules agrees with the judge."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from problems_on_disk import HEADED, plain, write_problem

from team.cli import main
from team.errors import UserError
from team.tasks.formats.export import export
from team.tasks.formats.kernelbench.importing import import_problem, small_sizes
from team.tasks.formats.kernelbench.problem import read_problem
from team.tasks.vetting.vetting import vet

ROOT = Path(__file__).parents[4]
SET = sorted((ROOT / "benchmarks" / "kernelbench_set").glob("level*/*.py"))
SCRIPT = ROOT / "scripts" / "kernelbench_eval.py"


def imported(folder: Path, text: str = HEADED, language: str = "cpp", **sizes: int) -> Path:
    problem = read_problem(write_problem(folder, text), "fp32", sizes)
    return import_problem(problem, folder / "task", language).folder  # type: ignore[arg-type]


def loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"exported_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_exported_model_has_the_same_weights_and_results(tmp_path: Path) -> None:
    path = export(imported(tmp_path, batch=7), tmp_path / "solution.py")
    parts: dict[str, Any] = {}
    exec(HEADED, parts)
    torch.manual_seed(42)
    reference = parts["Model"](20, 9)
    torch.manual_seed(42)
    ours = loaded(path).ModelNew(20, 9)
    assert all(one.equal(other) for one, other in zip(reference.parameters(), ours.parameters(), strict=True))
    x, labels = torch.rand(7, 20), torch.randint(0, 9, (7,))
    for one, other in zip(ours(x, labels), reference(x, labels), strict=True):
        torch.testing.assert_close(one, other)


def evaluated(*arguments: str) -> tuple[int, dict[str, Any]]:
    out = Path(arguments[-1])
    command = [sys.executable, str(SCRIPT), *arguments[:-1], "--repeats", "3", "--device", "cpu", "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=220, cwd=ROOT)
    assert out.exists(), done.stderr[-2000:]
    return done.returncode, json.loads(out.read_text())


@pytest.mark.slow
def test_the_script_tells_right_from_wrong(tmp_path: Path) -> None:
    text = plain("torch.softmax(x, dim=1)")
    right = export(imported(tmp_path, text), tmp_path / "right.py")
    (tmp_path / "wrong.py").write_text(right.read_text().replace("expf((", "expf(1.01f * (", 1))
    (tmp_path / "broken.py").write_text("def ModelNew():\n    raise ValueError('no such luck')\n")
    problem = tmp_path / "problem_file.py"
    pairs = [f"{problem}={tmp_path / name}.py" for name in ("right", "wrong", "broken")]
    status, found = evaluated(*pairs, "--no-compile", str(tmp_path / "found.json"))
    assert status == 1
    assert [one["correct"] for one in found["results"]] == [True, False, False]
    assert "largest error" in found["results"][1]["reason"]
    assert found["results"][2]["reason"] == "ValueError: no such luck"
    assert found["summary"]["correct"] == 1
    assert found["summary"]["fast_p over eager"]["0.0"] == pytest.approx(1 / 3)


@pytest.mark.slow
@pytest.mark.parametrize("problem", SET, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_set_goes_there_and_back(problem: Path, tmp_path: Path) -> None:
    sizes = small_sizes(read_problem(problem), 30000)
    made = import_problem(read_problem(problem, "fp32", sizes), tmp_path / "task", "cpp")
    solution = export(made.folder, tmp_path / "solution.py")
    dims = [f"--dim={name}={size}" for name, size in sizes.items()]
    more = dims if problem.parent.name == "level1" else [*dims, "--no-compile"]
    status, found = evaluated(f"{problem}={solution}", *more, str(tmp_path / "found.json"))
    assert status == 0, found
    assert vet(made.folder).findings == []


def test_the_set_has_three_levels() -> None:
    levels = [path.parent.name for path in SET]
    assert len(levels) >= 12
    assert set(levels) == {"level1", "level2", "level3"}


def test_what_cannot_be_exported_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = ROOT / "examples" / "matmul_cpu"
    with pytest.raises(UserError, match="was not imported from another format"):
        export(example, tmp_path / "solution.py")
    (tmp_path / "there.py").write_text("")
    monkeypatch.setattr("sys.argv", ["kernelteam", "export", str(example), "-o", str(tmp_path / "there.py")])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "exists. Name another file with -o." in capsys.readouterr().err

"""``kernelteam init FILE.py:FUNCTION``: a PyTorch function becomes a task whose first kernel is right."""

from pathlib import Path

import pytest
import torch

from protocol.messages import Outcome
from team.cli import app, init
from team.devices.cpu import cpu_devices
from team.errors import UserError
from team.judge.judge import Judge
from team.judge.request import Check
from team.tasks.formats.export import export
from team.tasks.task import load_task

TEXT = """\
import torch

EPSILON = 1e-5


def helper(x):
    return torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + EPSILON)


def scaled(x, weight, bias=None, *, unused):
    return x


def rms_norm(x, weight, factor=1.0):
    return x * helper(x) * weight * factor


def unknown(x):
    return torch.linalg.det(x)


def guesses(x):
    return x + torch.rand_like(x)
"""
EXAMPLE = "torch.randn(rows, cols), torch.rand(cols)"


def written(folder: Path) -> Path:
    (folder / "mine.py").write_text(TEXT)
    return folder / "mine.py"


def test_a_function_becomes_a_task_with_named_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = f"{written(tmp_path)}:rms_norm"
    sizes = ["--dim", "rows=24", "--dim", "cols=40"]
    app(["init", place, "--example", EXAMPLE, *sizes, "--language", "cpp"], standalone_mode=False)
    folder = tmp_path / "rms_norm"
    assert f"Made {folder}" in capsys.readouterr().out
    task = load_task(folder)
    assert [buffer.name for buffer in task.buffers] == ["x", "weight", "out"]
    assert task.workloads[0].dims == {"rows": 24, "cols": 40}
    given = task.make_inputs(task.workloads[0], 3)
    x, weight = given["x"], given["weight"]
    want = x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + 1e-5) * weight
    torch.testing.assert_close(task.reference(task.workloads[0], given)["out"], want)
    text = export(folder, tmp_path / "out.py").read_text()
    assert "class ModelNew" in text


@pytest.mark.slow
def test_the_judge_accepts_its_first_kernel(tmp_path: Path) -> None:
    init(Path(f"{written(tmp_path)}:rms_norm"), example=EXAMPLE, dim=["rows=24", "cols=40"], language="cpp")
    folder = tmp_path / "rms_norm"
    judge = Judge(cpu_devices(1)[0], tmp_path / "scratch")
    try:
        found = judge.check(Check(task=str(folder), tree=str(folder)))
        assert found.outcome is Outcome.MEASURED, found.detail
    finally:
        judge.close()


def test_numbers_are_fixed_and_sizes_may_stay_numbers(tmp_path: Path) -> None:
    init(Path(f"{written(tmp_path)}:rms_norm"), example="torch.randn(6, 8), torch.rand(8), 0.5", language="cpp")
    task = load_task(tmp_path / "rms_norm")
    assert task.workloads[0].dims == {}
    given = task.make_inputs(task.workloads[0], 3)
    torch.testing.assert_close(
        task.reference(task.workloads[0], given)["out"],
        0.5 * given["x"] * torch.rsqrt((given["x"] ** 2).mean(-1, keepdim=True) + 1e-5) * given["weight"],
    )


@pytest.mark.parametrize(
    ("function", "example", "says"),
    [
        ("rms_norm", "", "Nothing says which inputs the function takes"),
        ("rms_norm", "torch.randn(", "--example is not Python"),
        ("rms_norm", "1, 2, 3, 4", "gives 4 inputs, the function takes 3"),
        ("nothing", "torch.randn(3)", "defines no function nothing"),
        ("scaled", "torch.randn(3)", "have no place of their own"),
        ("rms_norm", "torch.randn(rows, 8), torch.rand(8)", "name 'rows' is not defined"),
        ("unknown", "torch.randn(4, 4)", "nobody taught it the operator"),
        ("guesses", "torch.randn(4, 4)", "nobody taught it the operator|draws random numbers"),
        ("rms_norm", "[torch.randn(4, 4)], torch.rand(4)", "gives a list"),
    ],
)
def test_what_cannot_be_taken_is_one_sentence(function: str, example: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=says):
        init(Path(f"{written(tmp_path)}:{function}"), example=example, language="cpp")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


def test_a_file_that_is_not_there_is_named_without_the_systems_number(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^There is no file .*nowhere\.py\. Give"):
        init(tmp_path / "nowhere.py:gelu", example="torch.randn(4)", language="cpp")


def test_only_a_function_has_an_example(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Leave out --example"):
        init(written(tmp_path), example="torch.randn(4)")

"""``kernelteam check`` finds what is wrong with a task, and nothing wrong with one that is sound."""

import json
from pathlib import Path

import pytest
from vetting_problems import HEAD, write_task

from team.cli import main
from team.tasks.examples import example_names
from team.tasks.vetting.vetting import vet

ROOT = Path(__file__).parents[3]


def kinds(folder: Path) -> list[str]:
    return [finding.kind for finding in vet(folder).findings]


def test_a_sound_task_has_no_findings(tmp_path: Path) -> None:
    found = vet(write_task(tmp_path, "torch.softmax(x * w, 1) * cols"))
    assert (found.findings, found.notes) == ([], [])


# What is known from problems of KernelBench on which a trivial output passes, each as a tiny one of that nature.
DEGENERATE = {
    "softmax over very many": (
        {"body": "torch.softmax(x * w / 9, 1)", "cols": 40000, "rows": 2},
        "zeros",
    ),
    "a mean is taken from one element": ({"body": "(x - x.view(rows, cols, 1).mean(2)) * w"}, "zeros"),
    "the mean of what was normalised": (
        {"body": "(((x * w) - (x * w).mean(1, keepdim=True)).mean(1))", "shape": '["rows"]'},
        "zeros",
    ),
    "a sum of many positive numbers at a loose tolerance": (
        {
            "body": "(x + 0 * w).mean(1)",
            "values": "uniform",
            "cols": 20000,
            "rows": 4,
            "tolerance": 1e-2,
            "shape": '["rows"]',
        },
        "constant",
    ),
    "softmax over one": ({"body": "torch.softmax((x @ w).view(rows, 1), 1)", "shape": '["rows", 1]'}, "constant"),
    "an activation of positive numbers": (
        {"body": "torch.relu(x) + 0 * w", "values": "uniform"},
        "copy",
    ),
    "clipping within the range": ({"body": "torch.clamp(x, -9, 9) + 0 * w"}, "copy"),
    "an output that its main input does not reach": ({"body": "w.expand(rows, cols) + 1e-7 * x"}, "ignores"),
    "a weight that cancels": ({"body": "(x + w.mean()) - (x + w.mean()).mean(1, keepdim=True)"}, "ignores"),
    "overflow": ({"body": "torch.exp(x * 40 + w) ** 3", "kind": "_Float16"}, "not finite"),
    "a loose tolerance hides the last step of a sum": (
        {"body": "(x * (w * w)).sum(1) / (w * w).sum()", "shape": '["rows"]', "tolerance": 0.1},
        "step",
    ),
    "a loose tolerance hides half the digits": ({"body": "x * w", "tolerance": 3e-2}, "rounded"),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_a_wrong_answer_that_would_pass_is_found(name: str, tmp_path: Path) -> None:
    options, kind = DEGENERATE[name]
    assert kind in kinds(write_task(tmp_path, **options))  # type: ignore[arg-type]


RANDOM = (
    HEAD + "def make_inputs(rows, cols, seed):\n    return {'x': torch.randn(rows, cols), 'w': torch.randn(cols)}\n\n\n"
)
FIXED = '[shapes]\nfixed = ["rows", "cols"]'
SOUND = "x * w"
OTHER = {
    "chance in the reference": ({"body": "x * w + torch.rand(rows, 1)"}, "not deterministic"),
    "chance in the inputs": ({"body": SOUND, "head": RANDOM}, "inputs differ"),
    "no floor": ({"body": SOUND, "head": "import torch\n\n\n"}, "no floor"),
    "a tolerance that nobody keeps": ({"body": "torch.cumsum(x * w, 1) * 100", "tolerance": 1e-9}, "too tight"),
    "one shape": ({"body": SOUND, "more": '[shapes]\nunlisted = false\nreason = "test"'}, "one shape"),
    "whole tiles": ({"body": SOUND, "rows": 64, "cols": 96, "more": FIXED}, "whole tiles"),
    "too small": ({"body": SOUND, "rows": 3, "cols": 5}, "too small"),
}


@pytest.mark.parametrize("name", OTHER)
def test_other_faults_are_found(name: str, tmp_path: Path) -> None:
    options, kind = OTHER[name]
    assert kind in kinds(write_task(tmp_path, **options))  # type: ignore[arg-type]


def test_shapes_that_are_too_large_are_made_smaller_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("team.tasks.vetting.sizes.MOST", 1 << 14)
    found = vet(write_task(tmp_path, "torch.softmax(x * w, 1) * cols", rows=80, cols=300))
    assert found.findings == []
    assert found.notes == ["only is too large to look at here; smaller shapes stand in: only at rows=20"]


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["kernelteam", "check", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


def test_the_command_says_each_fault_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sound, faulty = write_task(tmp_path / "sound", SOUND), write_task(tmp_path / "faulty", "w.abs() + 0 * x")
    assert run([str(sound)], monkeypatch) == 0
    assert "no findings" in capsys.readouterr().out
    assert run([str(faulty)], monkeypatch) == 1
    said = capsys.readouterr().out
    assert "A kernel that does not read 'x' would pass on workload only. Give it values that matter" in said
    assert "faulty: 1 finding\n" in said
    assert run([str(faulty), "--json"], monkeypatch) == 1
    assert {one["kind"] for one in json.loads(capsys.readouterr().out)["findings"]} == {"ignores"}
    assert run([str(tmp_path / "nowhere")], monkeypatch) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", example_names())
def test_the_examples_are_sound(name: str) -> None:
    assert vet(ROOT / "examples" / name).findings == []

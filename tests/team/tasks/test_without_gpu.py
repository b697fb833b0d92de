"""A task for a GPU on a machine without one: checked, built and packed here, judged elsewhere."""

import shutil
from pathlib import Path

import pytest

from team.cli import app
from team.devices import has_gpu
from team.errors import UserError
from team.tasks.vetting.building import vet_build
from team.tasks.vetting.finding import Vetted

pytestmark = pytest.mark.skipif(has_gpu(), reason="this is about a machine without a GPU")
EXAMPLES = Path(__file__).parents[3] / "examples"
with_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the path")
PROBLEM = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1) * x.shape[1]


rows = 100
cols = 300


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
"""


def made(folder: Path, language: str) -> Path:
    (folder / "problem.py").write_text(PROBLEM)
    words = ["init", str(folder / "problem.py"), "--folder", str(folder / "task"), "--language", language]
    app(words, standalone_mode=False)
    return folder / "task"


def test_check_says_in_a_sentence_that_nothing_was_launched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app(["check", str(made(tmp_path, "cuda"))], standalone_mode=False)
    said = capsys.readouterr().out
    assert said.count("there is no GPU here: nothing was launched") == 1
    assert "judge it where there is one with: kernelteam eval TASK" in said


def test_packing_needs_none(tmp_path: Path) -> None:
    task = made(tmp_path, "cuda")
    app(["export", str(task), "-o", str(tmp_path / "out.py")], standalone_mode=False)
    assert "class ModelNew" in (tmp_path / "out.py").read_text()


@with_nvcc
@pytest.mark.slow
def test_a_cuda_kernel_is_built_for_an_architecture_that_is_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = made(tmp_path, "cuda")
    status = app(["check", str(task), "--build-for", "90a"], standalone_mode=False)
    assert "the kernel builds for sm_90a (" in capsys.readouterr().out
    assert status == 1  # the problem has one shape, which is a finding
    source = task / "task.cu"
    source.write_text(source.read_text().replace("__global__ void", "__global__ wibble", 1))
    found = Vetted("task")
    vet_build(task, "sm_90a", found)
    assert [one.kind for one in found.findings] == ["does not build"]
    assert "wibble" in found.findings[0].what


@pytest.mark.slow
def test_a_triton_kernel_is_compiled_for_an_architecture_that_is_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    found = Vetted("task")
    vet_build(made(tmp_path, "triton"), "90a", found)
    assert found.findings == []
    assert "the kernel builds for sm_90a (triton" in found.notes[0]


def test_what_cannot_be_built_for_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no architecture of a GPU"):
        vet_build(EXAMPLES / "matmul_cuda", "H200", Vetted("x"))
    with pytest.raises(UserError, match="is for a CPU"):
        vet_build(EXAMPLES / "matmul_cpu", "90a", Vetted("x"))

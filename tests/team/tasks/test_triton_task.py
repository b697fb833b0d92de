"""Triton tasks as types: both descriptions, and one sentence for whatever is wrong with one."""

from pathlib import Path

import pytest

from team.devices import has_gpu
from team.errors import UserError
from team.scope import refuse_without_gpu
from team.tasks.spec import read_spec
from team.tasks.task import load_task
from team.tasks.triton import SetupTask, without_setup

TOML = 'name = "t"\ncontract = "triton"\ndevice = "cuda"\nsource = "k.py"\n'
ARGUMENTS = '[arguments]\nx = { shape = ["n"], dtype = "float16" }\ny = { shape = ["n"], role = "output" }\n'
WORKLOADS = '[[workloads]]\nname = "a"\ndims = { n = 8 }\nscalars = { eps = 0.5 }\n'
SMALL = '[[interpreted]]\nname = "small"\ndims = { n = 2 }\nscalars = { eps = 0.5 }\n'
RUN = "def run_kernel(x, y, n):\n    pass\n"
SETUP = """\
import torch


def setup(n, seed):
    generator = torch.Generator().manual_seed(seed)
    return {"inputs": {"x": torch.randn(n, 2, generator=generator), "y": torch.empty(n), "mode": "fast"},
            "outputs": ["y"]}


"""


def write(folder: Path, toml: str, source: str = RUN) -> Path:
    (folder / "task.toml").write_text(TOML + toml)
    (folder / "k.py").write_text(source)
    (folder / "reference.py").write_text("def reference(x, y, mode='slow'):\n    y.copy_(x.flatten()[: len(y)])\n")
    return folder


def test_arguments_describe_tensors_and_workloads_the_numbers(tmp_path: Path) -> None:
    task = load_task(write(tmp_path, ARGUMENTS + WORKLOADS + SMALL))
    assert str(task.signature) == "solve(float16* x, float32* y, int64 n, float64 eps)"
    assert [buffer.role for buffer in task.buffers] == ["input", "output"]
    assert task.numbers(task.workloads[0]) == {"n": 8, "eps": 0.5}
    assert [one.name for one in load_task(tmp_path, interpreted=True).workloads] == ["small"]


def test_setup_describes_shapes_values_and_makes_the_inputs(tmp_path: Path) -> None:
    task = load_task(write(tmp_path, WORKLOADS, SETUP + RUN))
    assert isinstance(task, SetupTask)
    workload = task.workloads[0]
    assert [task.shape(buffer, workload) for buffer in task.buffers] == [(8, 2), (8,)]
    assert task.numbers(workload) == {"n": 8, "eps": 0.5, "mode": "fast"}
    made = task.make_inputs(workload, 3)
    assert list(made) == ["x"]
    assert made["x"].equal(task.make_inputs(workload, 3)["x"])
    assert task.reference(workload, made)["y"].shape == (8,)
    assert task.under(task.spec.policy).shape(task.buffers[0], workload) == (8, 2)


WRONG = {
    "device": ("", ARGUMENTS + WORKLOADS, "for GPUs"),
    "no run_kernel": ("x = 1\n", ARGUMENTS + WORKLOADS, "no function run_kernel"),
    "not Python": ("def run_kernel(:\n", ARGUMENTS + WORKLOADS, "is not Python"),
    "dtype": (RUN, ARGUMENTS.replace("float16", "float15") + WORKLOADS, "unknown dtype"),
    "nothing described": (RUN, WORKLOADS, "Nothing says"),
    "setup raises": (RUN + "def setup(n):\n    raise ValueError('no')\n", WORKLOADS, "ValueError: no"),
    "no output": (RUN + "def setup(n):\n    return {'inputs': {'n': n}, 'outputs': ['y']}\n", WORKLOADS, "output 'y'"),
    "strange value": (RUN + "def setup(n):\n    return {'inputs': {'n': [n]}, 'outputs': []}\n", WORKLOADS, "a list"),
    "does not load": ("import nowhere_to_be_found\n" + RUN, WORKLOADS, "needs the module nowhere_to_be_found"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_sentence(name: str, tmp_path: Path) -> None:
    source, toml, says = WRONG[name]
    write(tmp_path, toml, source or RUN)
    if name == "device":
        (tmp_path / "task.toml").write_text((TOML + toml).replace('"cuda"', '"cpu"'))
    with pytest.raises(UserError, match=says):
        load_task(tmp_path)


def test_setup_is_blanked_out_line_for_line() -> None:
    text = SETUP + RUN
    bare = without_setup(text)
    assert "setup" not in bare
    assert len(bare.splitlines()) == len(text.splitlines())
    assert bare.endswith(RUN)
    assert without_setup("def setup(:\n") == "def setup(:\n"


@pytest.mark.skipif(has_gpu(), reason="there is a GPU")
def test_speed_needs_a_gpu(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Speed of Triton kernels needs a GPU"):
        refuse_without_gpu(read_spec(write(tmp_path, ARGUMENTS + WORKLOADS)))

"""``kernelteam init PROBLEM --kernel FILE``: a person's own kernel stands where a first one would be written."""

from pathlib import Path

import pytest
from gpu_mode_on_disk import write_problem as write_gpu_mode
from problems_on_disk import plain, write_problem

from protocol.messages import Outcome
from team.cli import init
from team.devices.cpu import cpu_devices
from team.errors import UserError
from team.judge.judge import Judge
from team.judge.request import Check
from team.tasks.formats.export import export
from team.tasks.task import load_task

DET = plain("torch.linalg.vector_norm(x, dim=1, ord=7) * 2", rows=24, cols=40)
NORMS = """\
#include <cmath>
extern "C" void solve(const float* x, float* out, int rows, int cols) {
    for (int row = 0; row < rows; row++) {
        double total = 0;
        for (int col = 0; col < cols; col++) total += std::pow(std::fabs((double)x[row * cols + col]), 7.0);
        out[row] = 2 * std::pow(total, 1.0 / 7.0);
    }
}
"""
SCALED = """\
#include <cuda_runtime.h>
__global__ void scaled(const float* x, float* y, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) y[at] = 2.0f * x[at];
}
extern "C" void solve(float* out, int cols, int rows, const float* x, cudaStream_t stream) {
    scaled<<<(rows * cols + 255) / 256, 256, 0, stream>>>(x, out, rows * cols);
}
"""
ROWS = "import triton\n\n\ndef run_kernel(x, out, rows):\n    pass\n"


def taken(folder: Path, name: str, text: str, problem: str = DET, **options: object) -> Path:
    (folder / name).write_text(text)
    init(write_problem(folder, problem), folder=folder / "task", own=folder / name, **options)  # type: ignore[arg-type]
    return folder / "task"


def test_a_kernel_of_an_operator_that_nobody_taught_the_first_one_becomes_a_task(tmp_path: Path) -> None:
    folder = taken(tmp_path, "norms.cpp", NORMS)
    task = load_task(folder)
    assert task.workloads[0].dims == {"rows": 24, "cols": 40}
    assert {name: one.shape for name, one in task.spec.arguments.items()} == {"x": ("rows", "cols"), "out": ("rows",)}
    assert "std::pow" in export(folder, tmp_path / "out.py").read_text()


@pytest.mark.slow
def test_the_judge_accepts_it(tmp_path: Path) -> None:
    folder = taken(tmp_path, "norms.cpp", NORMS)
    judge = Judge(cpu_devices(1)[0], tmp_path / "scratch")
    try:
        found = judge.check(Check(task=str(folder), tree=str(folder)))
        assert found.outcome is Outcome.MEASURED, found.detail
    finally:
        judge.close()


def test_a_cuda_kernel_keeps_its_own_order_of_parameters_and_its_stream(tmp_path: Path) -> None:
    folder = taken(tmp_path, "scaled.cu", SCALED, plain("2 * x"))
    task = load_task(folder)
    assert (task.spec.device, task.spec.contract) == ("cuda", "solve")
    assert [one.name for one in task.signature.parameters][:4] == ["out", "cols", "rows", "x"]
    assert task.spec.arguments["out"].shape == ("rows", "cols")


def test_a_triton_kernel_takes_the_sizes_that_it_names(tmp_path: Path) -> None:
    folder = taken(tmp_path, "rows.py", ROWS, plain("2 * x", shape="(rows, 40)"))
    assert load_task(folder).workloads[0].dims == {"rows": 24}


WRONG = {
    "another name": ("norms.cpp", NORMS.replace("float* out", "float* result").replace("out[", "result["), "'result'"),
    "no result": ("norms.cpp", NORMS.replace("float* out, ", "").replace("out[row] =", ""), "solve has no output"),
    "not its result": ("rows.py", ROWS.replace("x, out, rows", "x, rows"), "takes no 'out'"),
    "another type": ("norms.cpp", NORMS.replace("const float* x", "const double* x"), "'x' as float64"),
    "a float size": ("norms.cpp", NORMS.replace("int cols", "float cols"), "'cols' as float32"),
    "no solve": ("norms.cpp", "int f() { return 1; }\n", "solve"),
    "no entry": ("rows.py", "x = 1\n", "defines no function run_kernel"),
    "another suffix": ("norms.f90", "", "is no kernel source that is known"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_one_sentence_and_leaves_no_task(case: str, tmp_path: Path) -> None:
    name, text, says = WRONG[case]
    with pytest.raises(UserError, match=says):
        taken(tmp_path, name, text)
    assert not (tmp_path / "task").exists()


def test_it_is_refused_where_it_would_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "norms.cpp").write_text(NORMS)
    with pytest.raises(UserError, match="Leave out --kernel"):
        init(write_gpu_mode(tmp_path / "given"), own=tmp_path / "norms.cpp")
    with pytest.raises(UserError, match="is a kernel itself"):
        init(tmp_path / "norms.cpp", own=tmp_path / "norms.cpp")
    with pytest.raises(UserError, match="is not in cuda"):
        taken(tmp_path, "norms.cpp", NORMS, language="cuda")

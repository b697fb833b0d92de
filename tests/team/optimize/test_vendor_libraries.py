"""A baseline that uses CUTLASS or cuBLAS: the skill's flags reach nvcc's command line, and it builds with them."""

import shutil
from pathlib import Path

import pytest

from team.judge.build import Builder, Recipe
from team.judge.cuda.build import kernel_recipe
from team.judge.cuda.ptxas import remarks
from team.judge.failures import BuildFailed, Foreign
from team.judge.screening import screening_of
from team.optimize.baseline import prepare
from team.optimize.gates import Stopped
from team.optimize.options import Options
from team.tasks.skill import read_inputs
from team.tasks.spec import TaskSpec, read_spec

KERNEL = """\
#include <cutlass/tile.h>
#include <cuda_runtime.h>
__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = cutlass::twice(x[i]);
}
extern "C" void solve(const float* x, float* y, int n) { scale<<<(n + 255) / 256, 256>>>(x, y, n); }
"""
CUBLAS = "#include <cublas_v2.h>\n" + KERNEL.replace("#include <cutlass/tile.h>\n", "").replace(
    "cutlass::twice", "2.0f * "
)
HEADER = "#pragma once\nnamespace cutlass { __host__ __device__ inline float twice(float x) { return 2.0f * x; } }\n"
RECORDS = """\
#!/bin/sh
[ "$1" = --version ] && echo "release 0.0" && exit
printf '%s\\n' "$@" > ../asked
echo made > ../artifact; echo 'x: kernel.cu' > ../deps
cp ../asked "$(dirname "$0")/asked"
"""


@pytest.fixture(autouse=True)
def cutlass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's own checkout of CUTLASS, in a folder of theirs."""
    include = tmp_path / "checkout" / "include"
    for name in ("cutlass", "cute"):
        (include / name).mkdir(parents=True)
    (include / "cutlass" / "tile.h").write_text(HEADER)
    monkeypatch.setenv("CUTLASS_PATH", str(include.parent))
    monkeypatch.setattr("team.optimize.baseline.read_apart", read_inputs)
    return include


def spec_of(folder: Path, kernel: str) -> TaskSpec:
    (folder / "kernel.cu").write_text(kernel)
    (folder / "ref.py").write_text("def reference(x, y, n):\n    y[:n].copy_(2 * x[:n])\n")
    asked = Options(baseline=folder / "kernel.cu", ref=folder / "ref.py", dims={"n": 4096})
    run, _ = prepare(asked, {"hardware_attempts": 1, "gpus": []}, lambda _: None)
    return read_spec(run.task)


def recipe_of(spec: TaskSpec, kernel: str) -> Recipe:
    return kernel_recipe({"kernel.cu": kernel}, spec.source, "90a", spec.numerics, spec.build.flags, 120.0)


@pytest.mark.parametrize(
    "kernel", [KERNEL, CUBLAS, "#include <cublasLt.h>\n" + KERNEL], ids=["cutlass", "cublas", "both"]
)
def test_the_flags_reach_the_compilers_command_line(kernel: str, cutlass: Path, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, kernel)
    fake = tmp_path / "bin" / "nvcc"
    fake.parent.mkdir()
    fake.write_text(RECORDS)
    fake.chmod(0o755)
    Builder(tmp_path / "cache", tmp_path / "work", str(fake), confine=False).build(recipe_of(spec, kernel))
    asked = (fake.parent / "asked").read_text().splitlines()
    assert (f"-I{cutlass}" in asked) == ("cutlass" in kernel)
    assert ("-lcublas" in asked, "-lcublasLt" in asked) == (("cublas" in kernel),) * 2
    assert {"-O3", "-std=c++17", "-lineinfo", "-shared", "-gencode=arch=compute_90a,code=sm_90a"} <= set(asked)
    assert spec.screen.libraries


def test_a_plain_kernel_gets_none_of_them(tmp_path: Path) -> None:
    plain = spec_of(tmp_path, CUBLAS.replace("#include <cublas_v2.h>\n", ""))
    assert (plain.build.flags, plain.screen.libraries) == (None, False)


def test_without_its_headers_the_run_ends_at_the_preflight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("team.optimize.baseline.cutlass_include", lambda: None)
    with pytest.raises(Stopped, match=r"baseline_preflight_failed: .*Set CUTLASS_PATH"):
        spec_of(tmp_path, KERNEL)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_headers_in_a_folder_of_the_users_own_are_read_and_no_others(cutlass: Path, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, KERNEL)
    screening = screening_of(spec, {"kernel.cu": KERNEL})
    assert screening is not None
    screening.text({"kernel.cu": KERNEL})
    builder = Builder(tmp_path / "cache", tmp_path / "work", "nvcc", remarks)
    assert builder.build(recipe_of(spec, KERNEL)).path.is_file()
    (tmp_path / "secret.h").write_text("#define SECRET 1\n")
    looking = f'#include "{tmp_path}/secret.h"\n{KERNEL}'
    with pytest.raises((BuildFailed, Foreign)):
        builder.build(recipe_of(spec, looking))

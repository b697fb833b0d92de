"""What of the CUDA judge needs no GPU: builds, reports of the compiler, clocks, references of many launches."""

import shutil
from pathlib import Path

import pytest
import torch

from protocol.policy import Policy
from team.judge.arena import Arena, Lease, arrange
from team.judge.build import Builder
from team.judge.compiler import compile_jobs
from team.judge.cuda.build import CAPTURE, architecture, kernel_recipe, lent_signature, program_recipe
from team.judge.cuda.clocks import WallAudit, disagreement, slope_clause
from team.judge.cuda.ptxas import kernel_uses, remarks
from team.judge.cuda.references import References
from team.judge.inputs import InputSource
from team.judge.runner.process import Sample
from team.judge.shim import shim_recipe
from team.tasks.signature import parse_signature
from team.tasks.task import load_task

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*_cuda"))
POLICY = Policy()
PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z4workPKfPfi' for 'sm_90a'
ptxas info    : Function properties for _Z4workPKfPfi
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 4096 bytes smem
ptxas info    : Compiling entry function 'plain' for 'sm_90a'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
"""
SOURCE = """\
__global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
extern "C" void solve(const float* x, float* y, int n, cudaStream_t stream) {
    twice<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
    cudaStreamSynchronize(stream);
    cudaDeviceSynchronize();
}
"""


def test_the_compilers_report_is_read() -> None:
    work, plain = kernel_uses(PTXAS)
    assert (work.registers, work.shared, work.stack, work.spilled) == (40, 4096, 16, 20)
    assert (plain.name, plain.registers, plain.shared, plain.spilled) == ("plain", 10, 0, 0)
    assert any("40 registers" in line for line in remarks(PTXAS))


def test_a_stream_may_follow_the_tasks_parameters() -> None:
    streamed = parse_signature(SOURCE, "cuda")
    bare = streamed.without_stream()
    assert streamed.same_call(bare)
    assert bare.same_call(streamed)
    assert lent_signature(streamed) == lent_signature(bare)
    assert lent_signature(bare).parameters[-1].is_stream
    assert "void*, void*, int32_t, void*" in shim_recipe(lent_signature(bare)).files["shim.cpp"]


def test_the_flags_name_one_architecture_and_what_is_turned_off() -> None:
    recipe = kernel_recipe({"k.cu": SOURCE}, "k.cu", "90a", "reference", None, 60.0)
    assert architecture("90a") in recipe.flags
    assert "--use_fast_math" not in recipe.flags
    assert "--use_fast_math" in kernel_recipe({"k.cu": SOURCE}, "k.cu", "90a", "approximate", None, 60.0).flags
    assert CAPTURE in recipe.files
    assert len(recipe.remarks) == 2


def test_compilations_are_bounded() -> None:
    assert 1 <= compile_jobs(1000) <= 1000
    assert compile_jobs(1) == 1
    assert compile_jobs(1000, 3) == 3


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_nvcc_builds_a_kernel_once(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "cache", tmp_path / "work", "nvcc", remarks)
    recipe = kernel_recipe({"k.cu": SOURCE}, "k.cu", "90a", "reference", None, 120.0)
    built = builder.build(recipe)
    assert "release" in built.build.compiler
    assert any("registers" in line for line in built.build.remarks)
    assert not any("redefined" in line for line in built.build.remarks)
    assert builder.build(recipe).build.cached


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_the_runner_compiles(tmp_path: Path) -> None:
    assert Builder(tmp_path / "cache", tmp_path / "work", "nvcc", remarks).build(program_recipe("90a")).path.exists()


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_references_of_many_launches_are_those_of_each(folder: Path) -> None:
    task = load_task(folder)
    dims = {name: min(extent, 130) for name, extent in task.workloads[-1].dims.items()}
    workload = task.workloads[-1].model_copy(update={"name": "a small one", "dims": dims})
    task.spec = task.spec.model_copy(update={"workloads": (workload,)})  # the pool of inputs is for the largest
    inputs = InputSource(task).timed(workload, 3)
    stacked = References(task).of(workload, inputs, 3)
    for launch in range(3):
        shaped = {b.name: inputs[b.name][launch].view(task.shape(b, workload)) for b in task.inputs}
        single = task.reference(workload, shaped)
        got = {name: value[launch].to(torch.float32) for name, value in stacked.items()}
        assert task.compare(got, single).passes


def test_slots_are_aligned_as_device_memory_is() -> None:
    task = load_task(ROOT / "examples" / "softmax_cuda")
    source = InputSource(task)
    layout = arrange(task, task.workloads[-1], 3, source.dice, 256)
    assert all((layout.start + place.offset) % 256 == 0 for place in layout.places)
    assert layout.stride % 256 == 0
    arena = Arena(layout.end)
    lease = Lease(arena, layout)
    lease.clear()
    lease.poison(source.generator)
    assert lease.overrun() == ""
    assert lease.outputs(3)["output"].isnan().all()
    arena.close()


def sample(claimed: float, wall: float) -> Sample:
    return Sample(round(claimed), round(wall), 0)


def test_a_slope_tells_a_halved_clock_from_an_honest_one() -> None:
    honest = slope_clause(sample(2e5, 2.9e5), sample(3e6, 3.1e6), 15, 15e3, POLICY)
    forged = slope_clause(sample(1e5, 2.9e5), sample(1.5e6, 3.1e6), 15, 15e3, POLICY)
    harmless = slope_clause(sample(4e5, 2.9e5), sample(6e6, 3.1e6), 15, 15e3, POLICY)
    assert honest == ""
    assert "claim" in forged
    assert harmless == ""


def test_short_samples_are_held_against_the_bases() -> None:
    base, honest, forger = WallAudit(), WallAudit(), WallAudit()
    for number in range(16):
        base.add("w", sample(4e5, 4.8e5 + 1e3 * number))
        honest.add("w", sample(3e5, 3.8e5 + 1e3 * number))
        forger.add("w", sample(2e5, 4.8e5 + 1e3 * number))
    assert disagreement(base, honest, POLICY) == ("", "")
    assert disagreement(base, forger, POLICY)[0] == "w"

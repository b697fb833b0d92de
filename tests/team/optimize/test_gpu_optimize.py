"""The optimizer skill's own kinds of input on a GPU, through three iterations, with the built-in mind."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from optimizing import Ended, proposal, read, run_of

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.gpu, pytest.mark.timeout(400)]

GEMM = """\
#include <cuda_runtime.h>
__global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++) sum += A[row * K + k] * B[k * N + col];
        C[row * N + col] = sum;
    }
}
// extern "C" void solve(const double* A) { }
extern "C" void solve(const float* __restrict__ A, const float *B, float* C, int M, int N, int K) {
    dim3 block(16, 16);
    dim3 grid((N + block.x - 1) / block.x, (M + block.y - 1) / block.y);
    gemm<<<grid, block>>>(A, B, C, M, N, K);
}
"""
GEMM_REF = """\
import torch
atol = 1e-3
rtol = 1e-3
def reference(A, B, C, M, N, K):
    C[:M * N].view(M, N).copy_(torch.matmul(A[:M * K].view(M, K), B[:K * N].view(K, N)))
def workload_model(M, N, K):
    return {"flops": 2.0 * M * N * K, "bytes_min": 4.0 * (M * K + K * N + M * N)}
"""
SOFTMAX = """\
import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0) * cols
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row + at, mask=at < cols, other=float("-inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row + at, values / tl.sum(values, axis=0), mask=at < cols)


def setup(rows=1024, cols=1024, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, cols, generator=generator)
    return {"inputs": {"x": x, "y": torch.zeros(rows, cols), "rows": rows, "cols": cols}, "outputs": ["y"]}


def run_kernel(x, y, rows, cols):
    softmax[(rows,)](x, y, cols, BLOCK=4096, num_warps=1)
"""
SOFTMAX_REF = """\
import torch
def reference(x, y, rows, cols):
    y.copy_(torch.softmax(x, dim=-1))
def workload_model(rows, cols):
    return {"flops": 5.0 * rows * cols, "bytes_min": 8.0 * rows * cols}
"""
SCALE = """\
#include <cuda_runtime.h>
__global__ void scale(const float* x, float* y, int n, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float z = x[i];
    for (int t = 0; t < turns; t++) z = z * 1.0000001f;
    y[i] = turns > 64 ? 2.0f * x[i] + 0.0f * z : 2.0f * x[i];
}
extern "C" void solve(const float* x, float* y, int n) {
    HOW
}
"""
SCALE_REF = "def reference(x, y, n):\n    y[:n].copy_(2 * x[:n])\n"
HOW = {
    "slow": "scale<<<(n + 255) / 256, 256>>>(x, y, n, 4000);",
    "honest": "scale<<<(n + 255) / 256, 256>>>(x, y, n, 0);",
    "own_stream": "static cudaStream_t own = nullptr;\n"
    "    if (own == nullptr) cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);\n"
    "    scale<<<(n + 255) / 256, 256, 0, own>>>(x, y, n, 400000);",
    "too_many_threads": "scale<<<(n + 2047) / 2048, 2048>>>(x, y, n, 0);",
    "too_much_memory": "scale<<<(n + 255) / 256, 256, 1 << 20>>>(x, y, n, 0);",
}
"""``own_stream`` leaves its work to a stream that nobody waits for; the last two launches fail without a word."""
LAW = "[policy]\ncalibration_restarts = 8\n"
RUN = ("env.json", "state.json", "summary.md", "final.json", "baseline/bench.json", "baseline/ncu_top.json")
ITERATION = (
    "analysis.md", "attribution.json", "bench.json", "branch_results.json", "methods.json", "ncu_top.json",
    "outcome.json", "roofline.json", "sass_check.json", "branches/b1/bench.json",
)  # fmt: skip


def optimized(folder: Path, *words: str) -> Path:
    (folder / "law.toml").write_text(LAW)
    command = [sys.executable, "-m", "team.cli", "optimize", *words, "--iterations", "3", "--branches", "2"]
    command += ["--ref", "ref.py", "--campaign", "law.toml", "--ncu-num", "5"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=390, check=False)
    log.info("%s\n%s", " ".join(words), done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    run = run_of(folder)
    log.info("%s", (run / "summary.md").read_text())
    log.info(
        "ncu: %s", {k: v for k, v in read(run / "baseline" / "ncu_top.json").items() if k in ("degraded", "reason")}
    )
    assert [name for name in RUN if not (run / name).is_file()] == []
    for published in sorted(run.glob("iterv*")):
        assert [name for name in ITERATION if not (published / name).is_file()] == [], published
        log.info("%s %s", published.name, read(published / "sass_check.json"))
    return run


def test_a_gemm_with_solve_goes_through_three_iterations(tmp_path: Path) -> None:
    (tmp_path / "gemm.cu").write_text(GEMM)
    (tmp_path / "ref.py").write_text(GEMM_REF)
    state = read(optimized(tmp_path, "gemm.cu", "--M=1024", "--N=1024", "--K=1024") / "state.json")
    assert (state["run_status"], state["finished_iterations"]) == ("completed", 3)
    assert state["global_champion"]["iter"] >= 1
    assert state["final"]["full"]["low"] > 1.5
    assert state["workload_matrix"][-1]["dims"] == {"M": 1024, "N": 1024, "K": 1024}
    assert state["workload_matrix"][-1]["bytes"] == 3 * 4 * 1024**2


def test_defect_4_a_triton_kernel_goes_through_three_iterations(tmp_path: Path) -> None:
    (tmp_path / "softmax.py").write_text(SOFTMAX)
    (tmp_path / "ref.py").write_text(SOFTMAX_REF)
    state = read(optimized(tmp_path, "softmax.py", "--rows=2048", "--cols=4096") / "state.json")
    assert (state["run_status"], state["finished_iterations"]) == ("completed", 3)
    assert state["final"]["full"]["low"] > 1.0


def test_defects_8_and_19_work_beside_the_clock_and_a_launch_that_fails(tmp_path: Path) -> None:
    texts = {name: SCALE.replace("HOW", how) for name, how in HOW.items()}
    (tmp_path / "scale.cu").write_text(texts.pop("slow"))
    (tmp_path / "ref.py").write_text(SCALE_REF)
    idea = proposal("beside", *texts.values())
    for variant, name in zip(idea["variants"], texts, strict=True):
        variant |= {"parameters": {"text": name}, "files": {"scale.cu": texts[name]}}
    (tmp_path / "play.json").write_text(json.dumps({"proposals": [idea]}))
    (tmp_path / "law.toml").write_text(f"{LAW}looks = [8, 16]\nrace_rounds = 1\n")
    words = ["optimize", "scale.cu", "--ref", "ref.py", "--n=1048576", "--iterations", "1", "--campaign", "law.toml"]
    command = [sys.executable, "-m", "team.cli", *words, "--mind", "scripted:play.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=390, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ended = Ended(run_of(tmp_path), done.returncode, done.stdout)
    for name in texts:
        row = ended.branch(name)
        log.info("%s: %s %s", name, row["states"], row["error"])
        assert row["passed"] == (name == "honest"), row
    for name in ("too_many_threads", "too_much_memory"):
        assert "output 'y' is nan" in ended.branch(name)["error"]  # poison that no launch has overwritten
    assert read(ended.path / "state.json")["global_champion"]["iter"] == 1

"""Wall time of one experiment on a GPU, split into compiler, kernel and harness; beside the ``load_inline`` route.

usage: python scripts/bench_experiment.py [--task examples/rmsnorm_cuda] [--out benchmarks/results] [--skip-load-inline]
                                          [--calibration 24] [--pause 1.0] [--profile]

Each experiment is one change to the task's kernel, never compiled before, judged by a warm judge exactly as in a
campaign (build, check of every workload, paired timing until the law decides). The other route compiles the same source
with ``torch.utils.cpp_extension.load_inline`` in a fresh process, compares every workload once and times it with
``triton.testing.do_bench``: what a loop without this judge pays for one number. Between two experiments is a pause, as
an agent makes it that has to propose and to commit; ``--profile`` also writes where the judge's process spends an
experiment's time.
"""

import argparse
import cProfile
import json
import pstats
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from protocol.messages import Measurement, Noise
from team.devices import discover, open_device
from team.judge.client import Judge
from team.judge.judge import Judge as InProcess
from team.judge.request import Calibrate, Compare
from team.tasks.task import Task, load_task

RMSNORM_BY_BLOCK = """\
#include <cuda_runtime.h>

__global__ void rmsnorm(const float* x, const float* weight, float* y, int hidden, float eps) {
    __shared__ float part[THREADS];
    const float* row = x + static_cast<size_t>(blockIdx.x) * hidden;
    float* out = y + static_cast<size_t>(blockIdx.x) * hidden;
    float sum = 0.0f;
    for (int h = threadIdx.x; h < hidden; h += THREADS) sum += row[h] * row[h];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    float scale = rsqrtf(part[0] / hidden + eps);
    for (int h = threadIdx.x; h < hidden; h += THREADS) out[h] = row[h] * scale * weight[h];
}

extern "C" void solve(const float* x, const float* weight, float* y, int rows, int hidden, float eps) {
    rmsnorm<<<rows, THREADS>>>(x, weight, y, hidden, eps);
}
"""
INLINE = Path(__file__).with_name("load_inline_route.py")


def candidates(task: Task) -> dict[str, str]:
    """Changes by name: two that pay, two that do not, one that changes nothing."""
    source = (task.folder / task.spec.source).read_text()
    return {
        "block per row, 128": RMSNORM_BY_BLOCK.replace("THREADS", "128"),
        "block per row, 256": RMSNORM_BY_BLOCK.replace("THREADS", "256"),
        "32 threads": source.replace("threads = 64", "threads = 32"),
        "256 threads": source.replace("threads = 64", "threads = 256"),
        "a comment": source + "// the same\n",
    }


def split(seen: Measurement, wall: float) -> dict[str, float]:
    """Seconds by part: the compiler's own, kernels under the clock, and everything else."""
    compiler = seen.candidate_build.seconds if seen.candidate_build else 0.0  # every candidate's text is new
    kernel = seen.seconds.get("kernel", 0.0)
    parts = {"wall": wall, "compiler": compiler, "kernel": kernel, "harness": wall - compiler - kernel}
    return parts | {f"of which {name}": value for name, value in seen.seconds.items() if name != "kernel"}


def measure(task: Task, scratch: Path, restarts: int, pause_s: float) -> list[dict[str, Any]]:
    """One row per experiment."""
    device = discover(task.spec.device, 1)[0]
    rows: list[dict[str, Any]] = []
    policy = task.spec.policy.model_copy(update={"calibration_restarts": restarts})
    with Judge(device, scratch / "judge", policy) as judge:
        started = time.perf_counter()
        noise, _, found = judge.calibrate(Calibrate(task=str(task.folder), base=str(task.folder)))
        calibration = {"seconds": time.perf_counter() - started, "floor": noise.floor, "found": found["found"]}
        for name, text in candidates(task).items():
            request = comparison(task, scratch / "trees" / name.replace(" ", "-").replace(",", ""), text, noise)
            time.sleep(pause_s)
            started = time.perf_counter()
            seen = judge.compare(request)
            parts = split(seen, time.perf_counter() - started)
            rows.append({"change": name, "outcome": seen.outcome.value, "pairs": seen.pairs, "seconds": parts})
            print(f"{name:20} {seen.outcome.value:9} {seen.pairs:4} pairs  " + told(parts), flush=True)
        rows.append({"change": "(calibration)", **calibration})
    return rows


def comparison(task: Task, tree: Path, text: str, noise: Noise | None) -> Compare:
    """The request for one changed source, written to ``tree``."""
    tree.mkdir(parents=True)
    (tree / task.spec.source).write_text(text)
    return Compare(task=str(task.folder), base=str(task.folder), candidate=str(tree), noise=noise)


def profiled(task: Task, scratch: Path, listing: Path) -> None:
    """Judge two changes in this process under Python's profiler; the listing by cumulative and by own time."""
    judge = InProcess(open_device(discover(task.spec.device, 1)[0].id), scratch / "judge")
    profile = cProfile.Profile()
    for number, text in enumerate(list(candidates(task).values())[:3]):
        request = comparison(task, scratch / "profiled" / str(number), text + "// again\n", None)
        (judge.compare if number == 0 else partial(profile.runcall, judge.compare))(request)  # the first one warms up
    judge.close()
    with listing.open("w") as stream:
        for order in ("cumulative", "tottime"):
            pstats.Stats(profile, stream=stream).sort_stats(order).print_stats(60)


def told(parts: dict[str, float]) -> str:
    """Seconds on one line."""
    return "  ".join(f"{name} {value:.2f} s" for name, value in parts.items())


def inline_route(task: Task, text: str, scratch: Path) -> dict[str, float]:
    """Seconds of the other route, by part."""
    source = scratch / "inline.cu"
    source.write_text(text)
    command = [sys.executable, str(INLINE), str(task.folder.resolve()), str(source)]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    wall = time.perf_counter() - started
    if done.returncode != 0:
        print(done.stderr[-1500:])
        return {"wall": wall, "failed": 1.0}
    return {"wall": wall, **json.loads(done.stdout.splitlines()[-1])}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", type=Path, default=Path("examples/rmsnorm_cuda"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--skip-load-inline", action="store_true")
    parser.add_argument("--calibration", type=int, default=24, help="restarts of the A/A calibration")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two experiments")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    task = load_task(options.task.resolve())
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        rows = measure(task, Path(temporary), options.calibration, options.pause)
        inline = (
            {}
            if options.skip_load_inline
            else inline_route(task, candidates(task)["block per row, 128"], Path(temporary))
        )
    walls = [row["seconds"]["wall"] for row in rows if "outcome" in row]
    shares = [row["seconds"]["harness"] / row["seconds"]["wall"] for row in rows if "outcome" in row]
    summary = {"median wall s": median(walls), "worst wall s": max(walls), "median harness share": median(shares)}
    summary["pause s"] = options.pause
    if inline.get("wall") and not inline.get("failed"):
        summary["load_inline wall s"] = inline["wall"]
        summary["times faster"] = inline["wall"] / median(walls)
    print(json.dumps(summary))
    info = discover(task.spec.device, 1)[0].info().model_dump(mode="json")
    result = {"hardware": info, "task": task.spec.name, "experiments": rows, "load_inline": inline, "summary": summary}
    (options.out / "experiment-cuda.json").write_text(json.dumps(result, indent=1))
    if options.profile:
        with tempfile.TemporaryDirectory() as temporary:
            profiled(task, Path(temporary), options.out / "experiment-profile.txt")


if __name__ == "__main__":
    main()

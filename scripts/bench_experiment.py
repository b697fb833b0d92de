"""Wall time of one experiment on a GPU, split into compiler, kernel and harness; beside the ``load_inline`` route.

usage: python scripts/bench_experiment.py [--task examples/rmsnorm_cuda] [--out benchmarks/results] [--skip-load-inline]
                                          [--calibration 24] [--pause 1.0]

Each experiment is one change to the task's kernel, never compiled before, judged by a warm judge exactly as in a
campaign (build, check of every workload, paired timing until the law decides). The other route compiles the same source
with ``torch.utils.cpp_extension.load_inline`` in a fresh process, compares every workload once and times it with
``triton.testing.do_bench``: what a loop without this judge pays for one number. Between two experiments is a pause, as
an agent makes it that has to propose and to commit. Where each experiment's time went, stage by stage and process by
process, is written beside the results.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from protocol.messages import Measurement, Noise
from team.devices import discover
from team.judge.client import Judge
from team.judge.request import Calibrate, Compare
from team.judge.timeline import listing
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


def measure(task: Task, scratch: Path, restarts: int, pause_s: float, timelines: Path) -> list[dict[str, Any]]:
    """One row per experiment; what each did when goes to ``timelines``."""
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
            row = {"change": name, "outcome": seen.outcome.value, "pairs": seen.pairs, "discarded": seen.discarded}
            rows.append({**row, "seconds": parts})
            said = [f"{name}: {seen.outcome.value}, {parts['wall']:.3f} s", *listing(judge.stages())]
            with timelines.open("a") as stream:
                stream.write("\n".join([*said, "", ""]))
            counts = f"{seen.pairs:4} pairs {seen.discarded:3} thrown away"
            print(f"{name:20} {seen.outcome.value:9} {counts}  " + told(parts), flush=True)
        rows.append({"change": "(calibration)", **calibration})
    return rows


def comparison(task: Task, tree: Path, text: str, noise: Noise | None) -> Compare:
    """The request for one changed source, written to ``tree``."""
    tree.mkdir(parents=True)
    (tree / task.spec.source).write_text(text)
    return Compare(task=str(task.folder), base=str(task.folder), candidate=str(tree), noise=noise)


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
    options = parser.parse_args()
    task = load_task(options.task.resolve())
    options.out.mkdir(parents=True, exist_ok=True)
    kind = task.spec.device
    with tempfile.TemporaryDirectory() as temporary:
        timelines = options.out / f"experiment-{kind}-timeline.txt"
        timelines.unlink(missing_ok=True)
        rows = measure(task, Path(temporary), options.calibration, options.pause, timelines)
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
    (options.out / f"experiment-{kind}.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

"""Whether a stream keeps its rate through the whole arena that the judge lends to a runner, on one GPU.

    python scripts/large_pages.py [--launches 1 2 4 8]

A copy of 128 MiB is launched a few times in one graph, each time on a slot of its own, exactly as the judge times a
kernel: in a runner that opened the judge's memory. Once in an arena that ends within a large page, and once in one that
is a whole number of them, as the judge makes it. Prints microseconds a launch (median, least and most of some samples);
exits with 1 when in the judge's arena a launch among many takes more than 10 % longer than one alone.
``benchmarks/results/h200-large-pages.txt`` holds what an H200 said.
"""

import argparse
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from team.devices import discover  # noqa: E402
from team.devices.cuda import CudaDevice  # noqa: E402
from team.judge.cuda import arena  # noqa: E402
from team.judge.cuda.bench import CudaBench  # noqa: E402
from team.judge.cuda.card import Card  # noqa: E402
from team.judge.cuda.inputs import CudaInputs  # noqa: E402
from team.judge.kernels import KernelShop  # noqa: E402

ELEMENTS = 32 << 20  # of float32: 128 MiB read and as much written, more than any second-level cache holds
SAMPLES = 7
SLOWER = 1.10
PATIENCE_S = 5.0
KERNEL = """\
#include <cuda_runtime.h>
__global__ void copy(const float4* x, float4* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = x[i];
}
extern "C" void solve(const float* x, float* y, int n) {
    copy<<<(n / 4 + 255) / 256, 256>>>((const float4*)x, (float4*)y, n / 4);
}
"""
REFERENCE = "def reference(x, y, n):\n    y.copy_(x)\n"
TASK = f"""\
name = "stream"
device = "cuda"
source = "kernel.cu"
[arguments]
x = {{ shape = ["n"] }}
y = {{ shape = ["n"] }}
[tolerance]
default = {{ atol = 0.0, rtol = 0.0 }}
[[workloads]]
name = "{ELEMENTS}"
dims = {{ n = {ELEMENTS} }}
"""


def times(device: CudaDevice, folder: Path, counts: Sequence[int], granule: int) -> dict[int, list[float]]:
    """Microseconds of a launch, sorted, by how many there are in one graph; arenas are whole numbers of ``granule``."""
    task_folder, empty = folder / "task", folder / "empty"
    for new in (task_folder, empty):
        new.mkdir(parents=True)
    for name, text in (("kernel.cu", KERNEL), ("reference.py", REFERENCE), ("task.toml", TASK)):
        (task_folder / name).write_text(text)
    shop = KernelShop(device, folder / "scratch")
    bench = CudaBench(Card(device), shop.host, shop.native, empty)
    try:
        task = shop.task(task_folder)
        workload, source = task.workloads[0], CudaInputs(task)
        kernel = shop.kernel(task, task_folder, "base").artifact
        layouts = [bench.arrange(task, workload, count, random.Random(0)) for count in counts]
        with patch.object(arena, "LARGE_PAGE", granule), patch("team.judge.cuda.bench.ROOMY", 1.0):
            bench.provide(max(layout.end for layout in layouts) + 4096)
        found: dict[int, list[float]] = {}
        with bench.stand("base", task, kernel, 0) as stand:
            for layout in layouts:
                lease = stand.stage(1, layout, layout.launches)
                lease.fill(source.timed(workload, layout.launches))
                samples = [stand.go(1, PATIENCE_S).claimed_ns for _ in range(SAMPLES)]
                found[layout.launches] = sorted(ns / layout.launches / 1e3 for ns in samples)
        return found
    finally:
        bench.close()
        shop.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, nargs="+", default=(1, 2, 4, 8))
    asked = parser.parse_args()
    device = discover("cuda", 1)[0]
    assert isinstance(device, CudaDevice)
    device.pin()
    keeps = True
    with tempfile.TemporaryDirectory(prefix="kt-pages-") as name:
        for what, granule in (("ends within a large page", 4096), ("whole large pages", arena.LARGE_PAGE)):
            found = times(device, Path(name) / str(granule), asked.launches, granule)
            for count, us in found.items():
                rate = 8.0 * ELEMENTS / statistics.median(us) / 1e3
                print(f"{what:>24}, {count:2} launches: {statistics.median(us):6.1f} us", end=" ")
                print(f"[{us[0]:.1f}, {us[-1]:.1f}] a launch, {rate:.0f} GB/s")
            middle = [statistics.median(us) for us in found.values()]
            keeps = max(middle) < SLOWER * min(middle)
    return 0 if keeps else 1


if __name__ == "__main__":
    sys.exit(main())

"""Whether a kernel's time depends on which side of a pair runs first: an A/A run, told by order.

    python scripts/order_of_sides.py [--passes 24] [--sizes 262144 1048576 4194304]

For a kernel that computes (24 divisions an element) or hardly does (``--passes 1``), at three sizes: quartiles of the
times of whoever ran first and second in a pair, and the log ratio of each restart. Both sides are the same kernel, so
any difference is the judge's own; it exits with 1 when their medians lie more than 1 % apart.
``benchmarks/results/h200-order-of-sides.txt`` holds what an H200 said.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from protocol.messages import Restart  # noqa: E402
from protocol.samples import counts_of, of_workloads  # noqa: E402
from team.devices import discover  # noqa: E402
from team.judge.client import Judge  # noqa: E402
from team.judge.request import Calibrate  # noqa: E402

SIZES = (1 << 18, 1 << 20, 1 << 22)
APART = 0.01  # of the median, from which the order counts; floors of honest kernels are a tenth of it
KERNEL = """\
#include <cuda_runtime.h>
__global__ void steps(const float* x, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float v = fabsf(x[i]) + 1.0f;
    for (int k = 0; k < PASSES; ++k) v = __fdividef(v + 3.0f, v + 1.0f);
    y[i] = v + 1.0f;
}
extern "C" void solve(const float* x, float* y, int n) { steps<<<(n + 255) / 256, 256>>>(x, y, n); }
"""
REFERENCE = """\
def reference(x, y, n):
    v = x.abs() + 1.0
    for _ in range(PASSES):
        v = (v + 3.0) / (v + 1.0)
    y.copy_(v + 1.0)
"""
TASK = """\
name = "order"
device = "cuda"
source = "kernel.cu"
[arguments]
x = { shape = ["n"] }
y = { shape = ["n"] }
[tolerance]
default = { atol = 1e-5, rtol = 1e-3 }
"""


def write_task(folder: Path, passes: int, sizes: Sequence[int]) -> None:
    """The task's files, with one workload a size."""
    (folder / "kernel.cu").write_text(KERNEL.replace("PASSES", str(passes)))
    (folder / "reference.py").write_text(REFERENCE.replace("PASSES", str(passes)))
    workloads = "".join(f'[[workloads]]\nname = "{n}"\ndims = {{ n = {n} }}\n' for n in sizes)
    (folder / "task.toml").write_text(TASK + workloads)


def quartiles(times_ns: list[float]) -> list[float]:
    """Least, quartiles and most, in us."""
    return [round(t / 1e3, 2) for t in (min(times_ns), *statistics.quantiles(times_ns, n=4), max(times_ns))]


def tell(restarts: tuple[Restart, ...], sizes: Sequence[int]) -> bool:
    """A line for each size; whether the order of sides makes no difference."""
    alike = True
    for name, seen in of_workloads(restarts, counts_of(restarts, [str(n) for n in sizes])).items():
        pairs = [pair for restart in restarts for pair in restart.pairs[name]]
        first = [pair.candidate_ns if pair.candidate_first else pair.base_ns for pair in pairs]
        second = [pair.base_ns if pair.candidate_first else pair.candidate_ns for pair in pairs]
        values = [round(100 * float(value), 1) for value in seen.values]
        print(f"{name:>8} first {quartiles(first)} us, second {quartiles(second)} us, restarts {values} %")
        alike &= abs(statistics.median(second) / statistics.median(first) - 1.0) < APART
    return alike


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=24)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="elements")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kt-order-") as name:
        folder = Path(name)
        write_task(folder, asked.passes, asked.sizes)
        with Judge(discover("cuda", 1)[0], folder / "judge") as judge:
            noise, measured, _ = judge.calibrate(Calibrate(task=str(folder), base=str(folder)))
    sds = f"sd of restarts {noise.restart_sd:.4f}, of pairs {noise.pair_sd:.4f}"
    print(f"passes {asked.passes}: {sds}, floor {noise.floor:.4f}")
    return 0 if tell(measured.restarts, asked.sizes) else 1


if __name__ == "__main__":
    sys.exit(main())

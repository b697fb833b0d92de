"""A C++ and a CUDA champion of three methods, one of them useless, and each without one of them."""

from pathlib import Path

CPU_TOML = """\
name = "three"
device = "cpu"
source = "kernel.cpp"
[arguments]
x = { shape = ["n"] }
y = { shape = ["n"] }
[[workloads]]
name = "only"
dims = { n = 60000 }
"""
CPU_REFERENCE = "def reference(x, y, n):\n    y.copy_(2.0 * x)\n"
CPU = """\
static const int first_passes = {fewer_first};
static const int second_passes = {fewer_second};
static const int nobody_reads = {renumbered};
extern "C" void solve(const float* x, float* y, int n) {{
    for (int pass = 0; pass < first_passes; ++pass)
        for (int i = 0; i < n; ++i) y[i] = x[i] * 3.0f;
    for (int pass = 0; pass < second_passes; ++pass)
        for (int i = 0; i < n; ++i) y[i] = x[i] * 2.0f;
}}
"""
CPU_METHODS = {"fewer_first": ("9", "1"), "fewer_second": ("7", "1"), "renumbered": ("3", "4")}

CUDA_TOML = """\
name = "three"
device = "cuda"
source = "kernel.cu"
[arguments]
x = { shape = ["n"] }
y = { shape = ["n"] }
[tolerance]
default = { atol = 1e-5, rtol = 1e-3 }
[[workloads]]
name = "only"
dims = { n = 4194304 }
"""
CUDA_REFERENCE = """\
def reference(x, y, n):
    v = x.abs() + 1.0
    for _ in range(24):
        v = (v + 3.0) / (v + 1.0)
    y.copy_(v + 1.0)
"""
CUDA = """\
#include <cuda_runtime.h>
__device__ float step(float v) {{ return {divide}; }}
__global__ void {bounds}steps(const float* x, float* y, int n) {{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float v = fabsf(x[i]) + 1.0f;
    for (int k = 0; k < 24; ++k) v = step(v);
    y[i] = v{fused};
}}
{second}
extern "C" void solve(const float* x, float* y, int n) {{
    steps<<<(n + 255) / 256, 256>>>(x, y, n);
{launch}}}
"""
SECOND = "__global__ void add_one(float* y, int n) {\n    int i = blockIdx.x * 256 + threadIdx.x;\n" + (
    "    if (i < n) y[i] += 1.0f;\n}"
)
CUDA_METHODS = {
    "fma_and_fast_math": {"divide": ("(v + 3.0f) / (v + 1.0f)", "__fdividef(v + 3.0f, v + 1.0f)")},
    "kernel_fusion": {
        "fused": ("", " + 1.0f"),
        "second": (SECOND, ""),
        "launch": ("    add_one<<<(n + 255) / 256, 256>>>(y, n);\n", ""),
    },
    "launch_bounds": {"bounds": ("", "__launch_bounds__(256) ")},
}


def cpu_text(*without: str) -> str:
    """The C++ champion without these methods."""
    return CPU.format(**{name: old if name in without else new for name, (old, new) in CPU_METHODS.items()})


def cuda_text(*without: str) -> str:
    """The CUDA champion without these methods."""
    words: dict[str, str] = {}
    for method, places in CUDA_METHODS.items():
        words |= {name: old if method in without else new for name, (old, new) in places.items()}
    return CUDA.format(**words)


def write_task(folder: Path, toml: str, reference: str, source: str, text: str) -> Path:
    """A task folder."""
    folder.mkdir(parents=True)
    for name, content in (("task.toml", toml), ("reference.py", reference), (source, text)):
        (folder / name).write_text(content)
    return folder

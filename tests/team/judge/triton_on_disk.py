"""A small Triton task and kernels of known relation, written to a folder."""

from pathlib import Path

TOML = """
name = "scaled"
contract = "triton"
device = "cuda"
source = "scaled.py"
[arguments]
x = { shape = ["rows", "cols"] }
y = { shape = ["rows", "cols"], role = "output" }
[[workloads]]
name = "plain"
dims = { rows = 64, cols = 128 }
scalars = { factor = 2.0 }
[[workloads]]
name = "odd"
dims = { rows = 33, cols = 77 }
scalars = { factor = 0.5 }
[[interpreted]]
name = "small"
dims = { rows = 3, cols = 77 }
scalars = { factor = 0.5 }
"""
REFERENCE = "def reference(x, y, factor):\n    y.copy_(x * factor)\n"
HEAD = """\
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, y, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n, other=0.0) * factor, mask=at < n)


"""
PLAIN = """\
def run_kernel(x, y, rows, cols, factor):
    scale[(triton.cdiv(rows * cols, 128),)](x, y, rows * cols, factor, BLOCK=128)
"""
RETURNING = """\
def run_kernel(x, factor, **rest):
    assert x.is_cuda
    first, second = torch.empty_like(x), torch.zeros(x.shape, device=x.device)
    n = x.numel()
    scale[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, first, n, factor * 0.5, BLOCK=256)
    scale[(triton.cdiv(n, 256),)](first, second, n, 2.0, BLOCK=256)
    return second
"""
SETUP = """\
def setup(rows, cols, seed):
    x = torch.randn(rows, cols, generator=torch.Generator().manual_seed(seed))
    return {"inputs": {"x": x, "y": torch.empty_like(x), "n": rows * cols}, "outputs": ["y"]}


def run_kernel(x, y, n, factor=0.5):
    scale[(triton.cdiv(n, 128),)](x, y, n, factor, BLOCK=128)
"""


def write_task(folder: Path, body: str = PLAIN) -> Path:
    """A task folder whose kernel has ``body``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "task.toml").write_text(TOML)
    (folder / "reference.py").write_text(REFERENCE)
    (folder / "scaled.py").write_text(HEAD + body)
    return folder

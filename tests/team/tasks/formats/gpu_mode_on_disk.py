"""A problem in GPU MODE's format, written to a folder: rows times a weight each, in half precision."""

from pathlib import Path

CASES = """\
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
lang: "py"
description: "Scaled sums of rows."
config:
  main: "eval.py"
tests:
  - {"rows": 7, "cols": 33, "seed": 4242}
  - {"rows": 64, "cols": 64, "seed": 5236}
benchmarks:
  - {"rows": 256, "cols": 512, "seed": 31232}
  - {"rows": 100, "cols": 1000, "seed": 4052}
ranking_by: "geom"
"""
REFERENCE = """\
import torch
from task import input_t, output_t
from utils import close_to


def generate_input(rows: int, cols: int, seed: int) -> input_t:
    generator = torch.Generator(device="cuda").manual_seed(seed)
    values = torch.randn(rows, cols, device="cuda", dtype=torch.float32, generator=generator)
    weight = torch.randn(cols, device="cuda", dtype=torch.float32, generator=generator)
    output = torch.empty(rows, device="cuda", dtype=torch.float32)
    return values, weight, output


def ref_kernel(data: input_t) -> output_t:
    values, weight, output = data
    output[...] = (values * weight).sum(dim=1)
    return output


def check_implementation(data, output):
    return close_to(output, ref_kernel(data), rtol=1e-3, atol=1e-3)
"""
TASK = "import torch\n\ninput_t = tuple[torch.Tensor, torch.Tensor, torch.Tensor]\noutput_t = torch.Tensor\n"
UTILS = """\
import torch


def close_to(got, want, rtol, atol):
    if got.shape != want.shape:
        return False, "another shape"
    good = torch.allclose(got.float(), want.float(), rtol=rtol, atol=atol)
    return good, "" if good else "not close"
"""


def write_problem(folder: Path, cases: str = CASES, reference: str = REFERENCE) -> Path:
    """The problem's folder; ``utils.py`` lies beside it, as it does where people keep many problems."""
    place = folder / "weighted_rows"
    place.mkdir(parents=True)
    (place / "task.yml").write_text(cases)
    (place / "reference.py").write_text(reference)
    (place / "task.py").write_text(TASK)
    (folder / "utils.py").write_text(UTILS)
    return place

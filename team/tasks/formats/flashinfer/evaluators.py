"""Whether outputs are right where comparing them element by element would be wrong. Trusted, and private to the judge.

Every evaluator gets one launch: outputs, the reference's outputs, the inputs that the judge kept, and the extents. It
answers, for the outputs that it judges, their error as a share of what is allowed, or a clause that says what is wrong.
"""

from collections.abc import Callable, Mapping

import torch

from team.tasks.formats.flashinfer.sampling import sampled
from team.tasks.formats.flashinfer.schema import Definition
from team.tasks.formats.flashinfer.selection import selected

Tensors = Mapping[str, torch.Tensor]
Verdict = dict[str, float | str]
Evaluator = Callable[[Tensors, Tensors, Tensors, Mapping[str, float]], Verdict]

ROW_DISTANCE = 0.05  # of a row's length that a low-bit result may be away from its reference
MATCHED = 0.95  # share of a low-bit result's elements that must be within its tolerance, as flashinfer-bench asks
LOW_BIT_ATOL = LOW_BIT_RTOL = 1e-2  # of such an element: wrong only when it exceeds both, as there


def evaluator_of(definition: Definition) -> Evaluator | None:
    """The evaluator of a definition; None where elements are compared."""
    if definition.op_type == "sampling":
        return sampled
    if definition.op_type == "dsa_paged" and "topk_indices" in definition.outputs:
        return selected
    if definition.op_type == "moe":
        return low_bit
    return None


def low_bit(got: Tensors, want: Tensors, inputs: Tensors, numbers: Mapping[str, float]) -> Verdict:
    """Products of 8- and 4-bit values: most elements must match, and every row must lie near its reference.

    The share of matches alone would pass a kernel that leaves every twentieth row out, or that is arbitrarily wrong in
    every twentieth element; the distance of each row catches both.
    """
    return {name: _rows_near(name, value, want[name]) for name, value in got.items()}


def _rows_near(name: str, got: torch.Tensor, want: torch.Tensor) -> float | str:
    ours, theirs = got.double().view(-1, got.shape[-1]), want.to(got.dtype).double().view(-1, got.shape[-1])
    if not bool(ours.isfinite().all()):
        return f"output '{name}' has {int((~ours.isfinite()).sum())} elements that are no number"
    if not ours.numel():
        return 0.0
    off = (ours - theirs).abs()
    wrong = (off > LOW_BIT_ATOL) & (off > LOW_BIT_RTOL * theirs.abs())
    distance = off.norm(dim=-1) / theirs.norm(dim=-1).clamp(min=torch.finfo(torch.float32).tiny)
    return max(float(distance.max()) / ROW_DISTANCE, float(wrong.double().mean()) / (1.0 - MATCHED))

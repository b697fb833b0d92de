"""The least that one launch of a definition must do, for the floor below which no time is believed. Trusted.

Only what every right kernel reads or writes counts: not the pages, experts or tokens that the inputs may leave out.
"""

import math

import torch

from team.tasks.formats.flashinfer.inputs import Case
from team.tasks.formats.flashinfer.schema import TensorSpec

_DENSE = {"gemm", "rmsnorm"}  # op types that read all of their inputs


def least_work(case: Case) -> dict[str, float]:
    """``flops`` and ``bytes_min``."""
    definition = case.definition
    counted = list(definition.outputs.values())
    if definition.op_type in _DENSE:
        counted += definition.tensors.values()
    flops = 2.0 * case.axes["M"] * case.axes["N"] * case.axes["K"] if definition.op_type == "gemm" else 0.0
    return {"flops": flops, "bytes_min": sum(size_of(case, spec) for spec in counted)}


def size_of(case: Case, spec: TensorSpec) -> float:
    """Bytes of a tensor."""
    width = 0.5 if spec.dtype == "float4_e2m1" else getattr(torch, spec.dtype).itemsize
    return float(math.prod(case.extents(spec)) * width)

"""The report on a CUDA kernel: what ptxas says, and how far that carries."""

import shutil
from pathlib import Path

import pytest

from team.evidence.profile import profile

EXAMPLE = Path(__file__).parents[3] / "examples" / "reduction_cuda"


@pytest.mark.gpu
def test_registers_are_reported() -> None:
    report = profile(EXAMPLE, EXAMPLE, "abc")
    assert report.metrics["registers_per_thread"] > 0
    assert "row_sum" in report.remarks[0]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_the_report_says_how_far_it_carries() -> None:
    report = profile(EXAMPLE, EXAMPLE, "abc")
    assert report.tool.startswith("nvcc")
    assert "does not say what limits" in report.claim

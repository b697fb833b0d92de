"""On a GPU: Triton kernels are judged as CUDA kernels are; wrong ones, and those that stop working, are rejected."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_gallery_cuda import gains

from protocol.messages import Measurement, Outcome
from team.devices import discover
from team.judge.client import Judge
from team.judge.request import Check, Compare

EXAMPLES = Path(__file__).parents[2] / "examples"
TASK = EXAMPLES / "softmax_triton"
log = logging.getLogger(__name__)

pytestmark = pytest.mark.gpu

HEAD = """\
import torch
import triton
import triton.language as tl


@triton.jit
def softmax(input, output, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    values = tl.load(input + row + at, mask=at < cols, other=float("-inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(output + row + at, values / tl.sum(values, axis=0), mask=at < cols)


"""
BY_ROW = (
    HEAD
    + """\
def run_kernel(input, output, rows, cols):
    softmax[(rows,)](input, output, cols, BLOCK=triton.next_power_of_2(cols), num_warps=4)
"""
)
RETURNED = (
    HEAD
    + """\
def run_kernel(input, rows, cols, **rest):
    made = torch.zeros((rows, cols), device=input.device)
    softmax[(rows,)](input, made, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return made
"""
)
TOO_FEW = BY_ROW.replace("[(rows,)]", "[(rows - 1,)]")
TOO_MANY = BY_ROW.replace("[(rows,)]", "[(rows + 1,)]")
TIRED = (
    HEAD.replace("cols, BLOCK", "calls, cols, BLOCK").replace(
        "    values = tl.exp",
        "    if tl.atomic_add(calls, 1) > 4096 * 60:\n        return\n    values = tl.exp",
    )
    + """\
def run_kernel(input, output, rows, cols):
    calls = torch.empty((1,), dtype=torch.int32, device=input.device)
    softmax[(rows,)](input, output, calls, cols, BLOCK=triton.next_power_of_2(cols))
"""
)
ASTRAY = BY_ROW.replace("tl.store(output + row", "tl.store(output + (row << 40)")
REJECTED = {
    "too few": (TOO_FEW, {Outcome.INCORRECT}),
    "too many": (TOO_MANY, {Outcome.INCORRECT, Outcome.TAMPERED}),  # a row further may be an input of the next launch
    "tired": (TIRED, {Outcome.INCORRECT}),
    "astray": (ASTRAY, {Outcome.CRASHED}),
}


@pytest.fixture(scope="module")
def triton_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with Judge(discover("cuda", 1)[0], tmp_path_factory.mktemp("judge")) as warm:
        yield warm


@pytest.fixture
def judged(triton_judge: Judge, tmp_path: Path) -> Callable[[str], Measurement]:
    def compare(text: str) -> Measurement:
        (tmp_path / "softmax.py").write_text(text)
        seen = triton_judge.compare(Compare(task=str(TASK), base=str(TASK), candidate=str(tmp_path), noise=None))
        log.info("%s %s %s %s", seen.outcome.value, seen.detail, seen.launching, seen.seconds)
        return seen

    return compare


def test_a_better_triton_kernel_is_captured_and_faster(judged: Callable[[str], Measurement]) -> None:
    seen = judged(BY_ROW)
    assert seen.outcome is Outcome.MEASURED, seen.detail
    assert set(seen.launching.values()) == {"graph"}
    assert max(gains(seen)) > 0.05
    assert seen.candidate_build is not None
    assert any("registers" in line for line in seen.candidate_build.remarks)


def test_an_output_may_be_returned(judged: Callable[[str], Measurement]) -> None:
    seen = judged(RETURNED)
    assert seen.outcome is Outcome.MEASURED, seen.detail
    assert set(seen.launching.values()) == {"graph"}


@pytest.mark.parametrize("name", REJECTED)
def test_a_false_triton_kernel_is_rejected(name: str, judged: Callable[[str], Measurement]) -> None:
    text, outcomes = REJECTED[name]
    seen = judged(text)
    assert seen.outcome in outcomes, seen.detail


def test_a_task_that_setup_describes(triton_judge: Judge) -> None:
    folder = str(EXAMPLES / "matmul_triton")
    seen = triton_judge.check(Check(task=folder, tree=folder))
    assert seen.outcome is Outcome.MEASURED, seen.detail

"""Edits meet: one after another, beside directives, and merged by git from two branches."""

import subprocess
from pathlib import Path

import pytest
from kernels import MATMUL, ROW_SHAPES, SOFTMAX, SUM_WITH_DIRECTIVE, TOUCHED
from test_catalog_mind import briefing

from protocol.messages import Role
from roles.minds.candidates import candidates
from roles.techniques.cpp.hoist import HoistReciprocal
from roles.techniques.cpp.parallel import OmpParallel
from roles.techniques.cpp.split_accumulator import SplitAccumulator
from roles.techniques.cpp.store_once import StoreOnce
from roles.techniques.cpp.unroll import ContiguousUnroll

TWO_SUMS = """\
extern "C" void solve(const float* x, float* y, int rows, int cols) {
    for (int r = 0; r < rows; ++r) {
        float top = x[r * cols];
        for (int c = 0; c < cols; ++c) {
            top = x[r * cols + c] > top ? x[r * cols + c] : top;
        }
        y[r * 2] = top;
        float low = x[r * cols];
        for (int c = 0; c < cols; ++c) {
            low = x[r * cols + c] < low ? x[r * cols + c] : low;
        }
        y[r * 2 + 1] = low;
    }
}
"""


def merged(base: str, ours: str, theirs: str, folder: Path) -> str:
    """What git makes of two branches that changed one file."""
    paths = [folder / name for name in ("ours", "base", "theirs")]
    for path, text in zip(paths, (ours, base, theirs), strict=True):
        path.write_text(text)
    done = subprocess.run(["git", "merge-file", "-p", *map(str, paths)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("transform", [SplitAccumulator(), ContiguousUnroll()], ids=lambda each: type(each).__name__)
def test_the_same_edit_of_two_branches_merges(transform, workbench, tmp_path: Path) -> None:
    ours, theirs = (transform.apply(TWO_SUMS, site, {}) for site in transform.applies(TWO_SUMS)[:2])
    text = merged(TWO_SUMS, ours, theirs, tmp_path)
    assert workbench.worst_error(text, "row_extremes", ROW_SHAPES) <= 1.0


def test_a_directive_goes_with_its_loop(workbench) -> None:
    transform = SplitAccumulator()
    site = transform.applies(SUM_WITH_DIRECTIVE)[0]
    text = transform.apply(SUM_WITH_DIRECTIVE, site, {})
    assert "reduction(+ : sum)" not in text
    assert workbench.worst_error(text, "rmsnorm", ROW_SHAPES) <= 1.0, text


def test_a_directive_stays_with_a_loop_that_keeps_its_shape(workbench) -> None:
    transform = HoistReciprocal()
    text = transform.apply(SUM_WITH_DIRECTIVE, transform.applies(SUM_WITH_DIRECTIVE)[0], {})
    assert text.count("#pragma omp simd") == 2
    assert workbench.worst_error(text, "rmsnorm", ROW_SHAPES) <= 1.0, text


def test_a_hoisted_divisor_does_not_hide_the_repeated_call() -> None:
    hoist = HoistReciprocal()
    assert StoreOnce().applies(hoist.apply(SOFTMAX, hoist.applies(SOFTMAX)[0], {}))


@pytest.mark.parametrize("kernel", ["matmul", "softmax", "rmsnorm", "scale_shift"])
def test_parallel_rows_keep_the_result(kernel: str, workbench) -> None:
    source, problem, shapes = TOUCHED[kernel]
    transform = OmpParallel()
    text = transform.apply(source, transform.applies(source)[0], {})
    flags = ["-O1", "-fopenmp", "-fPIC", "-std=c++17"]
    assert workbench.worst_error(text, problem, shapes, flags) <= 1.0, text


def test_parallel_is_offered_only_with_more_than_one_core() -> None:
    def names(cores: int) -> set[str]:
        return {each.card.name for each in candidates(briefing(MATMUL, role=Role.EXPLOITER, cores=cores))}

    assert "omp_parallel" not in names(1)
    assert "omp_parallel" in names(2)

"""What nvcc makes of the transformed examples: instructions in the PTX, and no spills where ptxas is asked."""

import shutil

import pytest
from cuda_kernels import TOUCHED

from roles.techniques.cpp.syntax import parse
from roles.techniques.cuda.design import Family, defaults, written
from roles.techniques.cuda.matmul_tensor import MATMUL_TENSOR, MatmulTensor
from roles.techniques.cuda.matmul_tile import MATMUL_TILE, MatmulTile
from roles.techniques.cuda.row_groups import ROWS, RowGroups
from roles.techniques.cuda.shuffle import ShuffleReduction
from roles.techniques.cuda.transpose import TRANSPOSE, TransposeTile
from roles.techniques.cuda.vectorise import VectoriseElements
from roles.techniques.transform import TreeTransform

pytestmark = pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc on this machine")

SEEN = [
    (RowGroups(), "softmax", ("ld.global.nc.v4.f32", "st.global.v4.f32", "shfl.sync.bfly")),
    (VectoriseElements(), "elementwise", ("ld.global.nc.v4.f32", "st.global.v4.f32")),
    (TransposeTile(), "transpose", ("st.shared.f32", "bar.sync")),
    (ShuffleReduction(), "reduction", ("shfl.sync.bfly",)),
    (MatmulTile(), "dense", ("ld.shared.v4.f32", "fma.rn.f32")),
    (MatmulTensor(), "dense", ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",)),
]

DESIGNS = [
    (MATMUL_TILE, "matmul", {"staging": "async", "stages": 3, "width": 4}, ("cp.async.cg.shared.global", "16")),
    (ROWS, "softmax", {"load": "__ldcs", "store": "__stcs"}, ("ld.global.cs.v4.f32", "st.global.cs.v4.f32")),
    (
        MATMUL_TENSOR,
        "matmul",
        {"staging": "ahead", "stages": 3, "bm": 128, "shared": "dynamic", "small": 132},
        ("cp.async.cg.shared.global", "ld.shared.v2.f32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
    ),
    (TRANSPOSE, "transpose", {"odd": "shifted", "rows": 8}, ("transpose_shifted", "st.global.v4.f32")),
    (TRANSPOSE, "transpose", {"width": 4}, ("ld.global.nc.v4.f32", "st.global.v4.f32")),
]


def transformed(transform: TreeTransform, kernel: str) -> str:
    source = TOUCHED[kernel][0]
    return transform.apply(source, transform.applies(source)[0], {})


@pytest.mark.parametrize(("transform", "kernel", "instructions"), SEEN, ids=lambda each: type(each).__name__)
def test_instructions(transform: TreeTransform, kernel: str, instructions: tuple[str, ...], workbench) -> None:
    ptx = workbench.nvcc(transformed(transform, kernel), "-ptx")
    assert [each for each in instructions if each not in ptx] == []


@pytest.mark.parametrize(("family", "kernel", "setting", "instructions"), DESIGNS)
def test_instructions_of_options(
    family: Family, kernel: str, setting, instructions: tuple[str, ...], workbench
) -> None:
    name = next(iter(family.problems(parse(TOUCHED[kernel][0], "cuda"))))[0].name
    text = written(family, TOUCHED[kernel][0], name, {**defaults(family), **setting})
    assert text is not None
    ptx = workbench.nvcc(text, "-ptx")
    assert [each for each in instructions if each not in ptx] == []


@pytest.mark.slow
@pytest.mark.parametrize(("transform", "kernel"), [(MatmulTile(), "matmul"), (MatmulTensor(), "matmul")])
def test_sums_stay_in_registers(transform: TreeTransform, kernel: str, workbench) -> None:
    report = workbench.nvcc(transformed(transform, kernel), "-c")
    assert "0 bytes stack frame, 0 bytes spill stores" in report
    assert "warning" not in report

"""CUDA transforms: the same results at every site, in an emulator, on odd shapes; and what nvcc makes of them."""

import pytest
from cuda_kernels import TOUCHED

from roles.techniques.cpp.syntax import parse
from roles.techniques.cuda.annotations import CudaRestrict, CudaUnroll, LaunchBounds, ReadOnlyLoads
from roles.techniques.cuda.grid_stride import GridStride
from roles.techniques.cuda.knobs import BlockSize, CudaKnobs
from roles.techniques.cuda.matmul_tensor import MatmulTensor
from roles.techniques.cuda.matmul_tile import MatmulTile
from roles.techniques.cuda.row_groups import RowGroups
from roles.techniques.cuda.serial import CudaHoistCall, CudaHoistReciprocal, CudaStoreOnce
from roles.techniques.cuda.shuffle import ShuffleReduction
from roles.techniques.cuda.transpose import TransposeTile
from roles.techniques.cuda.vectorise import VectoriseElements
from roles.techniques.transform import TreeTransform

EXPECTED: dict[type[TreeTransform], set[str]] = {
    RowGroups: {"softmax", "softmax_pointers", "rmsnorm", "layernorm", "extremes", "reduction", "reduction_halves"},
    VectoriseElements: {"elementwise", "scale_shift"},
    TransposeTile: {"transpose", "transpose_writes"},
    MatmulTile: {"matmul", "matmul_transposed", "dense"},
    MatmulTensor: {"matmul", "matmul_transposed", "dense"},
    ShuffleReduction: {"reduction", "reduction_halves"},
    BlockSize: {"softmax", "rmsnorm", "layernorm", "elementwise", "transpose", "matmul"},
    GridStride: {"elementwise"},
    CudaRestrict: set(TOUCHED),
    LaunchBounds: set(TOUCHED) - {"softmax_pointers"},
    CudaUnroll: {
        "softmax",
        "softmax_pointers",
        "rmsnorm",
        "layernorm",
        "extremes",
        "matmul",
        "matmul_transposed",
        "dense",
    },
    ReadOnlyLoads: set(TOUCHED),
    CudaStoreOnce: {"softmax"},
    CudaHoistReciprocal: {"softmax"},
    CudaHoistCall: set(),
}
STRUCTURAL = (RowGroups, VectoriseElements, TransposeTile, MatmulTile, MatmulTensor, ShuffleReduction)
PAIRS = [
    (kind, kernel)
    for kind, kernels in EXPECTED.items()
    for kernel in sorted(kernels)[: None if kind in STRUCTURAL else 1]
]


@pytest.mark.parametrize("kernel", ["softmax_pointers", "reduction", "reduction_halves", "matmul"])
def test_the_emulator_runs_the_original(kernel: str, workbench) -> None:
    source, problem, shapes = TOUCHED[kernel]
    assert workbench.cuda_error(source, problem, [shape for shape in shapes if shape[0]]) <= 1.0


@pytest.mark.parametrize("kind", EXPECTED, ids=lambda kind: kind.__name__)
def test_applies_to(kind: type[TreeTransform]) -> None:
    found = {kernel for kernel, (source, *_) in TOUCHED.items() if kind().applies(source)}
    assert found == EXPECTED[kind]


@pytest.mark.parametrize(("kind", "kernel"), PAIRS)
def test_result_is_kept(kind: type[TreeTransform], kernel: str, workbench) -> None:
    source, problem, shapes = TOUCHED[kernel]
    transform = kind()
    site = transform.applies(source)[0]
    space = transform.space(site)
    last = {name: values[-1] for name, values in space.items()}
    for setting in ({}, last) if kind not in STRUCTURAL else ({},):
        text = transform.apply(source, site, setting)
        assert not parse(text, "cuda").broken
        assert workbench.cuda_error(text, problem, shapes) <= 1.0, text


@pytest.mark.parametrize(
    ("first", "then", "kernel"),
    [
        (CudaRestrict, RowGroups, "rmsnorm"),
        (CudaHoistReciprocal, RowGroups, "softmax"),
        (CudaStoreOnce, RowGroups, "softmax"),
        (CudaUnroll, MatmulTile, "matmul"),
        (LaunchBounds, TransposeTile, "transpose"),
        (GridStride, VectoriseElements, "elementwise"),
        (RowGroups, CudaKnobs, "softmax"),
        (MatmulTile, CudaKnobs, "matmul"),
    ],
)
def test_edits_follow_each_other(first: type[TreeTransform], then: type[TreeTransform], kernel: str, workbench) -> None:
    text, problem, shapes = TOUCHED[kernel]
    for transform in (first(), then()):
        site = transform.applies(text)[0]
        last = {name: values[-1] for name, values in transform.space(site).items()}
        text = transform.apply(text, site, last if site.sound(last) else {})
    assert workbench.cuda_error(text, problem, shapes) <= 1.0, text

"""CUDA transforms: the same results at every site, in an emulator, on odd shapes; and what nvcc makes of them."""

import pytest
from cuda_kernels import TOUCHED

from roles.techniques.cuda.knobs import BlockSize
from roles.techniques.cuda.matmul_tensor import MatmulTensor
from roles.techniques.cuda.matmul_tile import MatmulTile
from roles.techniques.cuda.row_groups import RowGroups
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
}
PAIRS = [(kind, kernel) for kind, kernels in EXPECTED.items() for kernel in sorted(kernels)]


@pytest.mark.parametrize("kernel", TOUCHED)
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
    for setting in ({}, {name: values[-1] for name, values in space.items()}):
        text = transform.apply(source, site, setting)
        assert workbench.cuda_error(text, problem, shapes) <= 1.0, text

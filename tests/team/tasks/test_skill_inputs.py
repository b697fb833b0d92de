"""The optimizer skill's inputs as a task: what its own parsers get wrong, sizes, references that check nothing."""

from pathlib import Path
from typing import Any

import pytest
import torch

from team.errors import UserError
from team.tasks.apart import read_apart
from team.tasks.signature import Parameter, SignatureError, parse_signature
from team.tasks.sizes import needs_of
from team.tasks.skill import CAP, read_inputs
from team.tasks.skill_folder import make_task
from team.tasks.skill_inputs import Read, SkillInputs
from team.tasks.spec import REACH, Workload
from team.tasks.task import load_task

GEMM = """\
#include "tile.h"
extern "C" void solve(const float* __restrict__ A, const float *B, float* C, int M, int N, int K) {
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0.0f;
            for (int k = 0; k < K; k++) sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
}
"""
IN_PLACE = "import torch\ndef reference(A, B, C, M, N, K):\n    C.view(M, N).copy_(A.view(M, K) @ B.view(K, N))\n"
RETURNS = "import torch\natol = 1e-2\nrtol = 1e-3\ndef reference(A, B, M, N, K, **_):\n"
RETURNS += "    return (A[:M*K].view(M, K) @ B[:K*N].view(K, N)).flatten()\n"
DIMS = {"M": 48, "N": 32, "K": 32}


def inputs(folder: Path, ref: str = IN_PLACE, kernel: str = GEMM, **more: Any) -> SkillInputs:
    folder.mkdir(exist_ok=True)
    (folder / "gemm.cpp").write_text(kernel)
    (folder / "tile.h").write_text('#include "inner.h"\n')
    (folder / "inner.h").write_text("#define TILE 4\n")
    (folder / "ref.py").write_text(ref)
    return SkillInputs(folder / "gemm.cpp", folder / "ref.py", **{"dims": DIMS, **more})


def made(read: Read, tmp_path: Path) -> Any:
    spec = make_task(read, tmp_path / "task", [Workload(name="large", dims=dict(read.inputs.dims))])
    assert spec.name == "gemm"
    return load_task(tmp_path / "task")


# ------------------------------------------------ section 1.1: what the skill's parsers get wrong


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("float *A", ("A", "float32", True, False)),
        ("float* __restrict__ A", ("A", "float32", True, False)),
        ("float* o, const float* __restrict__ A", ("A", "float32", True, True)),
        ("half* A", ("A", "float16", True, False)),
        ("__nv_bfloat16* A", ("A", "bfloat16", True, False)),
        ("__nv_fp8_e4m3* A", ("A", "float8_e4m3fn", True, False)),
        ("bool* A", ("A", "bool", True, False)),
        ("float* o, float alpha", ("alpha", "float32", False, False)),
        ("float* o, double alpha", ("alpha", "float64", False, False)),
        ("float* o, int64_t N", ("N", "int64", False, False)),
        ("float* o, long long N", ("N", "int64", False, False)),
        ("float* o, size_t N", ("N", "uint64", False, False)),
        ("float* const_scale", ("const_scale", "float32", True, False)),
        ("float* o, /* rows, not columns */ int N", ("N", "int32", False, False)),
    ],
)
def test_v_parser_defect(listed: str, expected: tuple[str, str, bool, bool]) -> None:
    last = parse_signature(f'extern "C" void solve({listed}) {{ }}', "cuda").parameters[-1]
    assert last == Parameter(*expected)


def test_v_two_restrict_parameters_do_not_collide() -> None:
    found = parse_signature('extern "C" void solve(float* __restrict__ A, float* __restrict__ B, int n) { }', "cuda")
    assert [parameter.name for parameter in found.parameters] == ["A", "B", "n"]


def test_v_a_commented_out_solve_above_the_real_one_and_a_prototype_do_not_win() -> None:
    source = '// extern "C" void solve(double* old, int n) { }\nextern "C" void solve(float* y, int n);\n'
    source += 'extern "C" void solve(float* y, int n) { }\n'
    assert parse_signature(source, "cuda").parameters[0].dtype == "float32"


def test_a_void_pointer_is_one_sentence() -> None:
    with pytest.raises(SignatureError, match="void"):
        parse_signature('extern "C" void solve(void* x, int n) { }', "cuda")


# ------------------------------------------------ sizes


def needs(listed: str, reference: Any, dims: dict[str, int]) -> dict[str, tuple[str, str]]:
    signature = parse_signature(f'extern "C" void solve({listed}) {{ }}', "cuda")
    found = needs_of(lambda given: reference(**given), signature, dims, {})
    return {name: (need.extent, need.role) for name, need in found.items()}


def attention(Q: Any, K: Any, V: Any, O: Any, B: int, H: int, S: int, D: int) -> None:  # noqa: E741
    q, k, v = (one.view(B, H, S, D) for one in (Q, K, V))
    O.view(B, H, S, D).copy_(torch.softmax(q @ k.transpose(-1, -2), -1) @ v)


def test_defect_5_an_attention_gets_all_of_its_elements() -> None:
    listed = "const half* Q, const half* K, const half* V, half* O, int B, int H, int S, int D"
    found = needs(listed, attention, {"B": 8, "H": 32, "S": 4096, "D": 128})
    assert {extent for extent, _ in found.values()} == {"B*H*S*D"}
    assert found["O"] == ("B*H*S*D", "output")


@pytest.mark.parametrize(
    "reference",
    [
        lambda A, B, C, M, N, K: C.view(M, N).copy_(A.view(M, K) @ B.view(K, N)),
        lambda A, B, C, M, N, K: C[: M * N].copy_((A[: M * K].view(M, K) @ B[: K * N].view(K, N)).flatten()),
        lambda A, B, C, M, N, K: (torch.reshape(A, (M, K)) @ B.reshape((K, N))).flatten(),
    ],
)
def test_a_gemm_of_equal_dims_is_still_told_apart(reference: Any) -> None:
    listed = "const float* A, const float* B, float* C, int M, int N, int K"
    found = needs(listed, reference, {"M": 64, "N": 64, "K": 64})
    assert found == {"A": ("M*K", "input"), "B": ("N*K", "input"), "C": ("M*N", "output")}


def test_an_accumulating_output_is_given_contents_and_a_reduction_needs_one_element() -> None:
    def scaled(x: Any, y: Any, n: int) -> None:
        y[:n] += x[:n]

    assert needs("const float* x, float* y, int n", scaled, {"n": 99})["y"] == ("n", "inout")

    def total(x: Any, y: Any, n: int) -> None:
        y[0] = x[:n].sum()

    assert needs("const float* x, float* y, int n", total, {"n": 99}) == {"x": ("n", "input"), "y": ("1", "output")}


def test_a_reference_that_wants_whole_tiles_is_tried_with_tiles() -> None:
    def tiled(A: Any, B: Any, C: Any, M: int, N: int, K: int) -> None:
        assert M % 16 == N % 16 == K % 16 == 0
        C.view(M, N).copy_(A.view(M, K) @ B.view(K, N))

    found = needs("const float* A, const float* B, float* C, int M, int N, int K", tiled, {"M": 64, "N": 64, "K": 64})
    assert found["C"] == ("M*N", "output")


def test_a_reference_that_takes_no_flat_buffers_gets_the_shapes_that_the_kernel_indexes(tmp_path: Path) -> None:
    shaped = "import torch\ndef reference(A, B, C, M, N, K):\n    torch.matmul(A, B, out=C)\n"
    assert made(read_inputs(inputs(tmp_path / "a", shaped)), tmp_path).spec.arguments["A"].shape == ("M", "K")


def test_ptr_size_holds_for_every_pointer_and_shapes_come_first(tmp_path: Path) -> None:
    read = read_inputs(inputs(tmp_path / "a", ptr_size=4096, shapes={"C": ["M", "N"]}))
    assert read.extents == {"A": ("4096",), "B": ("4096",), "C": ("M", "N")}
    assert read.bytes_of(DIMS) == 4 * (4096 + 4096 + 48 * 32)


def test_a_size_that_nothing_tells_is_the_product_of_all_dims_and_is_said(tmp_path: Path) -> None:
    kernel = 'extern "C" void solve(const float* x, float* y, int n, int m) { for (int i = 0; i < n; i++) y[0] += *x; }'
    ref = "def reference(x, y, n, m):\n    y.copy_(x)\n"
    read = read_inputs(inputs(tmp_path / "a", ref, kernel, dims={"n": 10, "m": 20}))
    assert read.extents["x"] == ("n*m",)
    assert any("nothing says how long 'x' is" in note for note in read.notes)
    big = read_inputs(inputs(tmp_path / "b", ref, kernel, dims={"n": 1 << 20, "m": 1 << 20}))
    assert big.extents["x"] == (str(CAP),)


# ------------------------------------------------ the task


@pytest.mark.parametrize("ref", [IN_PLACE, RETURNS])
def test_the_task_computes_what_the_reference_says(ref: str, tmp_path: Path) -> None:
    read = read_inputs(inputs(tmp_path / "a", ref))
    task = made(read, tmp_path)
    workload = task.workloads[0]
    given = task.make_inputs(workload, 3)
    assert {name: tuple(value.shape) for name, value in given.items()} == {"A": (48 * 32,), "B": (32 * 32,)}
    want = task.reference(workload, given)["C"]
    assert torch.allclose(want.view(48, 32), given["A"].view(48, 32) @ given["B"].view(32, 32))
    assert (tmp_path / "task" / "inner.h").is_file()


def test_tolerances_of_the_reference_come_before_those_of_the_command(tmp_path: Path) -> None:
    assert made(read_inputs(inputs(tmp_path / "a", RETURNS, atol=1.0)), tmp_path).spec.tolerance_of("C").atol == 1e-2
    assert read_inputs(inputs(tmp_path / "b", IN_PLACE, atol=0.5)).tolerance["default"] == (0.5, 1e-3)
    per_output = IN_PLACE + "tolerances = {'C': (1e-3, 0.0)}\n"
    assert read_inputs(inputs(tmp_path / "c", per_output)).tolerance["C"] == (1e-3, 0.0)


def test_defect_9_a_reference_that_writes_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="neither writes nor returns 'C'"):
        read_inputs(inputs(tmp_path / "a", "def reference(A, B, C, M, N, K):\n    return None\n"))


def test_scratch_that_the_reference_does_not_fill_is_named(tmp_path: Path) -> None:
    kernel = GEMM.replace("float* C,", "float* C, float* scratch,")
    ref = IN_PLACE.replace("A, B, C,", "A, B, C, scratch,")
    with pytest.raises(UserError, match="'scratch'"):
        read_inputs(inputs(tmp_path / "a", ref, kernel))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dims": {"M": 4}}, "--N=SIZE --K=SIZE"),
        ({"shapes": {"Z": ["M"]}}, "no pointer 'Z'"),
        ({"kernel": Path("no.cu")}, "no kernel file"),
        ({"reference": Path("no.py")}, "no reference file"),
    ],
)
def test_wrong_input_is_one_sentence(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    good = inputs(tmp_path / "a")
    with pytest.raises(UserError, match=said):
        read_inputs(SkillInputs(**{**good.__dict__, **change}))


def test_inputs_read_in_a_process_of_their_own_are_the_same(tmp_path: Path) -> None:
    assert read_apart(inputs(tmp_path / "a")).extents == read_inputs(inputs(tmp_path / "a")).extents
    with pytest.raises(UserError, match="ended the process"):
        read_apart(inputs(tmp_path / "c", "import os\nos._exit(3)\n"))


@pytest.mark.slow  # another process that loads torch
def test_faults_of_inputs_read_in_a_process_of_their_own_are_the_same(tmp_path: Path) -> None:
    with pytest.raises(SignatureError, match="void"):
        read_apart(inputs(tmp_path / "b", kernel='extern "C" void solve(void* x) { }'))


def test_what_solve_does_not_take_is_noted(tmp_path: Path) -> None:
    assert read_inputs(inputs(tmp_path / "a", dims={**DIMS, "Z": 3})).notes[0] == "solve takes no Z: not used"


# ------------------------------------------------ integers: indices, factors, masks


def test_defect_11_a_table_that_is_looked_up_is_as_long_as_the_kernel_says_and_not_as_the_indices_reach() -> None:
    def looked_up(table: Any, at: Any, y: Any, V: int, n: int) -> None:
        y[:n].copy_(table[at[:n].long()])

    found = needs("const float* table, const int* at, float* y, int V, int n", looked_up, {"V": 500, "n": 99})
    assert found == {"table": ("", "input"), "at": ("n", "input"), "y": ("n", "output")}

    def viewed(table: Any, at: Any, y: Any, V: int, n: int) -> None:
        y[: 4 * n].view(n, 4).copy_(table.view(V, 4)[at[:n].long()])

    assert needs("const float* table, const int* at, float* y, int V, int n", viewed, {"V": 500, "n": 99}) == {
        "table": ("4*V", "input"), "at": ("n", "input"), "y": ("4*n", "output"),
    }  # fmt: skip


def test_integers_that_are_factors_or_masks_hide_no_size() -> None:
    def scaled(x: Any, k: Any, mask: Any, y: Any, n: int, m: int) -> None:
        y[:n].copy_(x[:n] * k[:n] * mask[:m].sum())

    listed = "const float* x, const long* k, const unsigned char* mask, float* y, int n, int m"
    found = needs(listed, scaled, {"n": 99, "m": 7})
    assert {name: extent for name, (extent, _) in found.items()} == {"x": "n", "k": "n", "mask": "m", "y": "n"}


def test_defect_11_integers_are_in_range_on_every_shape_that_is_checked(tmp_path: Path) -> None:
    kernel = GEMM.replace("const float *B", "const int *B")
    read = read_inputs(inputs(tmp_path / "a", kernel=kernel, dims={"M": 64, "N": 48, "K": 80}))
    assert made(read, tmp_path).spec.arguments["B"].high == 48 - REACH
    (tmp_path / "small").mkdir()
    read = read_inputs(inputs(tmp_path / "b", kernel=kernel, dims={"M": 64, "N": 3, "K": 80}))
    assert made(read, tmp_path / "small").spec.arguments["B"].high == 3

"""Tasks: inputs, references, comparison, and that everything wrong with a task is one sentence with a remedy."""

import math
from pathlib import Path

import pytest
import torch

from team.errors import UserError
from team.tasks.comparison import deviation
from team.tasks.spec import Tolerance
from team.tasks.task import Task, load_task

EXAMPLES = Path(__file__).parents[3] / "examples"

TOML = """
name = "t"
source = "k.cpp"
[arguments]
x = { shape = ["n", "2*m"] }
y = { shape = ["n"] }
[[workloads]]
name = "w"
dims = { n = 3, m = 2 }
scalars = { eps = 0.5 }
"""
KERNEL = 'extern "C" void solve(const float* x, float* y, int n, int m, float eps) { }'
REFERENCE = "def reference(x, y, eps):\n    y.copy_(x.sum(-1) + eps)\n"


def write(folder: Path, toml: str = TOML, kernel: str = KERNEL, reference: str = REFERENCE) -> Task:
    (folder / "task.toml").write_text(toml)
    (folder / "k.cpp").write_text(kernel)
    (folder / "reference.py").write_text(reference)
    return load_task(folder)


@pytest.mark.parametrize("name", ["matmul_cpu", "softmax_cpu", "rmsnorm_cpu"])
def test_examples_agree_with_themselves(name: str) -> None:
    task = load_task(EXAMPLES / name)
    for workload in task.workloads:
        inputs = task.make_inputs(workload, seed=7)
        exact = task.reference(workload, inputs, double=True)
        assert all(value.dtype == torch.float64 for value in exact.values())
        assert task.compare(task.reference(workload, inputs), exact).passes
        assert task.floor(workload)["flops"] > 0


def test_shapes_products_and_in_place_reference(tmp_path: Path) -> None:
    task = write(tmp_path)
    workload = task.workloads[0]
    inputs = task.make_inputs(workload, seed=1)
    assert inputs["x"].shape == (3, 4)
    torch.testing.assert_close(task.reference(workload, inputs)["y"], inputs["x"].sum(-1) + 0.5)
    assert task.floor(workload) == {}


@pytest.mark.parametrize(
    "body", ["return x.sum(-1) + eps", "return {'y': x.sum(-1) + eps}", "return (x.sum(-1) + eps,)"]
)
def test_reference_may_return(tmp_path: Path, body: str) -> None:
    task = write(tmp_path, reference=f"def reference(x, eps):\n    {body}\n")
    assert task.reference(task.workloads[0], task.make_inputs(task.workloads[0], 1))["y"].shape == (3,)


def test_seeds_decide_inputs(tmp_path: Path) -> None:
    task = write(tmp_path)
    first, again, other = (task.make_inputs(task.workloads[0], seed)["x"] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_own_make_inputs(tmp_path: Path) -> None:
    own = "import torch\ndef make_inputs(n, m, eps, seed):\n    return {'x': torch.full((n, 2 * m), float(seed))}\n"
    task = write(tmp_path, reference=own + REFERENCE)
    assert task.make_inputs(task.workloads[0], 5)["x"].eq(5).all()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"toml": TOML.replace('y = { shape = ["n"] }', "")}, "no shape for the pointer 'y'"),
        ({"toml": TOML.replace('shape = ["n"]', 'shape = ["q"]')}, "'q'"),
        ({"toml": TOML.replace('shape = ["n"]', "shape = [0]")}, "empty"),
        ({"toml": TOML.replace("[arguments]", '[arguments]\nz = { shape = ["n"] }')}, "'z'"),
        ({"toml": TOML.replace("n = 3, ", "")}, "'n'"),
        ({"toml": TOML.replace("eps = 0.5", "")}, "'eps'"),
        ({"toml": TOML.replace('x = { shape = ["n", "2*m"] }', 'x = { shape = ["n"], role = "output" }')}, "const"),
        ({"toml": TOML + "known_broken = true\n"}, "known_broken"),
        ({"toml": TOML.replace("scalars =", "known_broken = true\nscalars =")}, "known_broken"),
        ({"kernel": "int main() { }"}, "no definition"),
        ({"reference": "x = 1"}, "reference"),
        ({"reference": "raise RuntimeError('boom')"}, "boom"),
        ({"reference": "def reference(:"}, "SyntaxError"),
    ],
)
def test_loading_refusals(tmp_path: Path, change: dict[str, str], says: str) -> None:
    with pytest.raises(UserError) as caught:
        write(tmp_path, **change)
    assert says in caught.value.what
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("def reference(x, y, q):\n    pass\n", "'q'"),
        ("def reference(x, y):\n    raise ValueError('bad shape')\n", "bad shape"),
        ("def reference(x):\n    return x\n", "shape (3,)"),
        ("def reference(x):\n    return 3\n", "shape (3,)"),
    ],
)
def test_reference_refusals(tmp_path: Path, reference: str, says: str) -> None:
    task = write(tmp_path, reference=reference)
    with pytest.raises(UserError, match="reference") as caught:
        task.reference(task.workloads[0], task.make_inputs(task.workloads[0], 1))
    assert says in caught.value.what


def share(got: list[float], want: list[float], dtype: torch.dtype = torch.float32, slack: float = 0.0) -> float:
    tolerance = Tolerance(atol=0.1, rtol=0.0)
    wanted = torch.tensor(want, dtype=torch.float64)
    return deviation("y", torch.tensor(got, dtype=dtype), wanted, dtype, tolerance, slack).worst


def test_comparison_is_a_share_of_the_tolerance() -> None:
    assert share([1.05], [1.0]) == pytest.approx(0.5, rel=1e-5)
    assert share([1.2], [1.0]) == pytest.approx(2.0, rel=1e-5)
    assert share([1.2], [1.0], slack=0.3) == pytest.approx(0.5, rel=1e-5)


def test_special_values_are_no_wildcards() -> None:
    inf, nan = math.inf, math.nan
    assert share([nan], [1.0]) == inf
    assert share([inf], [1.0]) == inf
    assert share([1.0], [nan]) == inf
    assert share([-inf], [inf]) == inf
    assert share([nan, inf, 1.0], [nan, inf, 1.0]) == 0.0
    assert share([nan, inf, 1.05], [nan, inf, 1.0]) == pytest.approx(0.5, rel=1e-5)
    assert share([inf], [1e300]) == 0.0  # the reference, rounded to single precision, is infinite


@pytest.mark.parametrize("off", [0.0, 0.5, 0.999, 1.001, 3.0, math.nan, math.inf])
@pytest.mark.parametrize("size", [0.0, 1.0, -1e4, math.inf, math.nan])
def test_a_bound_passes_what_the_exact_share_passes(off: float, size: float) -> None:
    tolerance = Tolerance(atol=1e-3, rtol=1e-2)
    want = torch.tensor([0.25, size])
    for scale in (tolerance.atol, tolerance.atol + tolerance.rtol * abs(size)):
        got = want + torch.tensor([0.0, off * scale])
        exact, bounded = (deviation("y", got, want, torch.float32, tolerance, bounded=b) for b in (False, True))
        assert exact.passes == bounded.passes
        assert not bounded.worst < exact.worst


def test_wrong_dtype_or_shape_fails() -> None:
    one = torch.ones(3)
    assert deviation("y", one.double(), one, torch.float32, Tolerance()).worst == math.inf
    assert deviation("y", torch.ones(1), one, torch.float32, Tolerance()).worst == math.inf


def test_integers_and_booleans_are_exact() -> None:
    want = torch.tensor([1, 2])
    assert deviation("y", want.clone(), want, torch.int64, Tolerance(atol=9.0)).passes
    off = deviation("y", want + 1, want, torch.int64, Tolerance(atol=9.0))
    assert off.worst == math.inf
    assert "2 of 2 elements" in off.detail

"""The first kernel of a function: right for every operator that it knows, in C++ and in Triton; sizes get names."""

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from operators import CASES, function_of

from team.errors import UserError
from team.tasks.first_kernel.names import safe_name
from team.tasks.first_kernel.writing import Function, first_kernel, small_dims


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Every case in one shared object: one compiler run for all."""
    folder = tmp_path_factory.mktemp("library")
    text = ["#include <math.h>\n#include <vector>"]
    for place, name in enumerate(CASES):
        written = first_kernel(lambda _, name=name: function_of(name)[0], {}, "cpp", name).text
        lines = [line for line in written.splitlines() if not line.startswith("#include")]
        text.append("\n".join(lines).replace("void solve(", f"void solve{place}("))
    (folder / "all.cpp").write_text("\n".join(text))
    command = ["g++", "-O0", "-shared", "-fPIC", "-std=c++17", "-o", str(folder / "all.so"), str(folder / "all.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[:2000]
    return ctypes.CDLL(str(folder / "all.so"))


@pytest.mark.parametrize("name", CASES)
def test_the_loops_compute_what_torch_computes(name: str, library: ctypes.CDLL) -> None:
    function, arguments, wanted = function_of(name)
    kernel = first_kernel(lambda _: function, {}, "cpp", name)
    given = [arguments[one.name].contiguous() for one in kernel.inputs]
    got = [torch.full_like(one, 77) for one in wanted]
    entry: Any = getattr(library, f"solve{list(CASES).index(name)}")
    entry(*(ctypes.c_void_p(one.data_ptr()) for one in (*given, *got)))
    for ours, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-3 if ours.dtype is torch.half else 2e-5, rtol=1e-4)


_CHECKED = """
import sys
sys.path.insert(0, {here!r})
import torch
from operators import function_of
from team.tasks.first_kernel.writing import first_kernel
for place, name in enumerate({names!r}):
    function, arguments, wanted = function_of(name)
    kernel = first_kernel(lambda _: function, {{}}, "triton", name)
    path = f"{folder}/k{{place}}.py"
    open(path, "w").write(kernel.text)
    scope = {{}}
    import importlib.util
    spec = importlib.util.spec_from_file_location(f"k{{place}}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    got = [torch.full_like(one, 77) for one in wanted]
    given = {{one.name: arguments[one.name].contiguous() for one in kernel.inputs}}
    module.run_kernel(**given, **dict(zip(function.results, got)))
    for ours, theirs in zip(got, wanted):
        torch.testing.assert_close(ours, theirs, atol=2e-3 if ours.dtype is torch.half else 2e-5, rtol=1e-4, msg=name)
print("all right")
"""


@pytest.mark.slow
def test_triton_computes_what_torch_computes(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    script = _CHECKED.format(here=str(Path(__file__).parent), names=list(CASES), folder=str(tmp_path))
    environment = {
        "TRITON_INTERPRET": "1",
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(Path.cwd()),
    }
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
    assert done.stdout.strip() == "all right", done.stderr[-2000:]


def _linear(sizes: dict[str, int]) -> Function:
    rows, features = sizes["rows"], sizes["features"]
    x, weight = torch.empty(rows, features, device="meta"), torch.empty(9, features, device="meta")
    return Function(lambda x, weight: torch.softmax(x @ weight.T, 1), {"x": x, "weight": weight}, ["out"])


def test_sizes_become_dims_where_they_explain_every_number() -> None:
    sizes = {"rows": 9, "features": 18, "nobody": 18}
    kernel = first_kernel(lambda changes: _linear({**sizes, **changes}), sizes, "cpp", "said")
    assert kernel.dims == {"rows": 9, "features": 18}
    assert kernel.shapes == {"x": ("rows", "features"), "weight": ("9", "features"), "out": ("rows", "9")}
    assert "float* out, int rows, int features)" in kernel.text
    assert "for (int r0 = 0; r0 < features; r0++)" in kernel.text
    assert "⟦" not in kernel.text
    assert "⟪" not in kernel.text


def test_a_size_that_no_product_explains_stays_a_number() -> None:
    def padded(changes: dict[str, int]) -> Function:
        x = torch.empty(changes.get("width", 8), device="meta")
        return Function(lambda x: torch.nn.functional.pad(x, (0, 3)) * 2, {"x": x}, ["out"])

    kernel = first_kernel(padded, {"width": 8}, "triton", "said")
    assert kernel.dims == {}
    assert "11" in kernel.text


def test_where_a_persons_code_fails_its_size_stays_a_number_and_the_reason_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def picky(changes: dict[str, int]) -> Function:
        if changes:
            raise ZeroDivisionError("eight or nothing")
        x = torch.empty(8, device="meta")
        return Function(lambda x: x * 2, {"x": x}, ["out"])

    with caplog.at_level("INFO"):
        kernel = first_kernel(picky, {"width": 8}, "cpp", "said")
    assert kernel.dims == {}
    assert "eight or nothing" in caplog.text


def test_what_cannot_be_written_is_one_sentence() -> None:
    x = torch.empty(4, 4, device="meta")
    function = Function(torch.linalg.det, {"x": x}, ["out"])
    with pytest.raises(UserError, match="nobody taught it the operator"):
        first_kernel(lambda _: function, {}, "cpp", "said")


def test_names_are_free_in_every_language() -> None:
    assert safe_name("layer.0.weight", ()) == "layer_0_weight"
    assert safe_name("in", ()) == safe_name("in", ["x"]) == "in_"
    assert safe_name("i0", ()) == "i0_"
    assert safe_name("float", ["float_"]) == "float_2"


def test_small_dims_are_as_small_as_asked_and_as_the_function_allows() -> None:
    def elements(dims: dict[str, int]) -> int | None:
        return dims["a"] * dims["b"] if dims["b"] % 4 == 0 else None

    assert small_dims({"a": 64, "b": 12}, elements, 40) == {"a": 2, "b": 12}

"""The real package flashinfer-bench: it reads, builds and runs what we write, and reads the data set as we do.

It is no dependency, since it brings a torch of its own: it is put into a folder, as for ``flashinfer confirm``.
"""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from bench_package import installed
from bound_solutions import GATHER, RETURNING, on_disk, told
from trace_data import trace_root

from team.cli import app
from team.devices import has_gpu
from team.errors import UserError
from team.tasks.formats.entry import import_foreign
from team.tasks.formats.flashinfer.dataset import read_dataset, read_definition
from team.tasks.formats.flashinfer.importing import import_problem
from team.tasks.formats.flashinfer.official import scratch_dataset
from team.tasks.formats.flashinfer.packing import pack
from team.tasks.formats.flashinfer.schema import Workload

pytestmark = pytest.mark.slow
NAME = "rmsnorm_h128"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("flashinfer-bench"))


@pytest.fixture
def theirs(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Its data layer and its builders, in this process."""
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.setenv("PATH", os.pathsep.join([str(package / "bin"), os.environ["PATH"]]))
    monkeypatch.setenv("FIB_CACHE_PATH", str(tmp_path / "cache"))
    found = importlib.import_module("flashinfer_bench.data")
    importlib.import_module("flashinfer_bench.compile")
    return found


def builders() -> Any:
    return sys.modules["flashinfer_bench.compile"].BuilderRegistry.get_instance()


def test_both_read_the_same_definitions(theirs: Any) -> None:
    found, ours = theirs.TraceSet.from_path(str(trace_root())), read_dataset(trace_root())
    assert set(found.definitions) == set(ours.definitions)
    for name, one in found.definitions.items():
        for their, our in ((one.inputs, ours.definitions[name].inputs), (one.outputs, ours.definitions[name].outputs)):
            assert [(key, spec.dtype.value) for key, spec in their.items()] == [(k, s.dtype) for k, s in our.items()]
        assert len(found.workloads.get(name, [])) == len(ours.workloads.get(name, ()))


def test_a_packed_solution_is_one_of_theirs(theirs: Any, tmp_path: Path) -> None:
    folder = import_problem(trace_root() / "definitions" / "rmsnorm" / f"{NAME}.json", tmp_path / "task").folder
    solution, definition = pack(folder, folder), read_dataset(trace_root()).definitions[NAME]
    workload = Workload(uuid="w", axes={"batch_size": 3})
    scratch_dataset(definition, [workload], solution, None, tmp_path / "scratch")
    found = theirs.TraceSet.from_path(str(tmp_path / "scratch"))
    assert found.get_solution(solution.name).spec.destination_passing_style is True
    assert found.workloads[NAME][0].workload.axes == {"batch_size": 3}
    reference = builders().build_reference(found.definitions[NAME])
    assert reference(torch.ones(3, 128, dtype=torch.bfloat16), torch.ones(128, dtype=torch.bfloat16)).shape == (3, 128)


@pytest.mark.parametrize("returning", [False, True])
def test_an_exported_solution_in_cpp_is_built_and_called_by_the_package(
    returning: bool, theirs: Any, tmp_path: Path
) -> None:
    solution = told(RETURNING if returning else GATHER, destination_passing_style=not returning)
    task, _ = import_foreign(on_disk(tmp_path / "data", solution), tmp_path / "task", "triton", "fp32", {})
    packed, definition = pack(task, task), read_definition(task / "definition.json")
    scratch_dataset(definition, [Workload(uuid="w", axes={"M": 4})], packed, None, tmp_path / "scratch")
    found = theirs.TraceSet.from_path(str(tmp_path / "scratch"))
    built = builders().build(found.definitions["axpy_n"], found.get_solution(packed.name))
    x, places = torch.arange(32.0).view(4, 8), torch.tensor([3, 0, 9, 1], dtype=torch.int32)
    (y,) = [built.call_value_returning(x, 2.0, places)]
    assert torch.equal(y, 2 * x[places.long().clamp(max=3)])


@pytest.mark.skipif(has_gpu(), reason="this is about a machine without a GPU")
def test_without_a_gpu_the_package_itself_says_so(package: Path, tmp_path: Path) -> None:
    path = on_disk(tmp_path / "data", told())
    task, _ = import_foreign(path, tmp_path / "task", "triton", "fp32", {})
    with pytest.raises(UserError, match=r"flashinfer-bench found no GPU '0' here\. Ask it on a machine with one"):
        app(["flashinfer", "confirm", str(task), "--package", str(package)], standalone_mode=False)
    with pytest.raises(
        UserError, match=r"There is no flashinfer-bench in .*Install it: pip install --no-deps --target"
    ):
        app(["flashinfer", "confirm", str(task), "--package", str(tmp_path)], standalone_mode=False)

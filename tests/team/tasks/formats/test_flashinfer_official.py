"""Where the package flashinfer-bench is installed: it reads what we write, and reads the data set as we do."""

from pathlib import Path

import pytest
import torch
from trace_data import trace_root

from team.tasks.formats.flashinfer.dataset import read_dataset
from team.tasks.formats.flashinfer.importing import import_problem
from team.tasks.formats.flashinfer.official import scratch_dataset
from team.tasks.formats.flashinfer.packing import pack
from team.tasks.formats.flashinfer.schema import Workload

theirs = pytest.importorskip("flashinfer_bench.data")
NAME = "rmsnorm_h128"


def test_both_read_the_same_definitions() -> None:
    found, ours = theirs.TraceSet.from_path(str(trace_root())), read_dataset(trace_root())
    assert set(found.definitions) == set(ours.definitions)
    for name, one in found.definitions.items():
        for their, our in ((one.inputs, ours.definitions[name].inputs), (one.outputs, ours.definitions[name].outputs)):
            assert [(key, spec.dtype.value) for key, spec in their.items()] == [(k, s.dtype) for k, s in our.items()]
        assert len(found.workloads.get(name, [])) == len(ours.workloads.get(name, ()))


def test_a_packed_solution_is_one_of_theirs(tmp_path: Path) -> None:
    folder = import_problem(trace_root() / "definitions" / "rmsnorm" / f"{NAME}.json", tmp_path / "task").folder
    solution, definition = pack(folder, folder), read_dataset(trace_root()).definitions[NAME]
    workload = Workload(uuid="w", axes={"batch_size": 3})
    scratch_dataset(definition, [workload], solution, None, tmp_path / "scratch")
    found = theirs.TraceSet.from_path(str(tmp_path / "scratch"))
    assert found.get_solution(solution.name).spec.destination_passing_style is True
    assert found.workloads[NAME][0].workload.axes == {"batch_size": 3}
    reference = (
        pytest.importorskip("flashinfer_bench.compile")
        .BuilderRegistry.get_instance()
        .build_reference(found.definitions[NAME])
    )
    assert reference(torch.ones(3, 128, dtype=torch.bfloat16), torch.ones(128, dtype=torch.bfloat16)).shape == (3, 128)

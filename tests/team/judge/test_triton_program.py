"""The judge's own host code around Triton kernels: plans are checked, and the calls that are generated are right."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from team.judge.build import Builder, Recipe
from team.judge.triton.plan import Plan
from team.judge.triton.program import program_recipe
from team.tasks.signature import Parameter, Signature
from team.tasks.spec import Workload

HERE = Path(__file__).parent
IMAGE = b"\x7fELF" + bytes(range(9))
SIGNATURE = Signature(
    (
        Parameter("x", "float32", pointer=True, const=True),
        Parameter("y", "float32", pointer=True, const=False),
        Parameter("rows", "int64", pointer=False, const=False),
        Parameter("factor", "float64", pointer=False, const=False),
    )
)
WORKLOADS = [
    Workload(name="a", dims={"rows": 4}, scalars={"factor": 0.1}),
    Workload(name="b", dims={"rows": 4}, scalars={"factor": 2.0}),
]
CALL = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.solve.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int64, ctypes.c_double, ctypes.c_void_p]
for factor in (0.1, 0.1, 2.0):
    library.solve(0x1000, 0x2000, 4, factor, 2)
ctypes.CDLL(None).fflush(None)
library.solve(0x1000, 0x2000, 5, 2.0, 2)
"""


def launch(**changes: Any) -> dict[str, Any]:
    word = (7).to_bytes(8, "little")
    arguments = [{"place": ["buffer", 0, 16]}, {"place": ["scratch", 0, 0]}, {"word": word}]
    return {"kind": "launch", "kernel": 0, "grid": [3, 2, 1], "warps": 4, "arguments": arguments, **changes}


def plan(steps: list[dict[str, Any]], **changes: Any) -> Plan:
    first = {"name": "a", "scratch": [4096], "steps": steps}
    second = {
        "name": "b",
        "steps": [{"kind": "copy", "target": ["buffer", 1, 0], "source": ["buffer", 0, 0], "size": 8}],
    }
    kernels = [{"name": "k", "image": IMAGE, "shared": 100_000}]
    return Plan.model_validate({"kernels": kernels, "workloads": [first, second], **changes})


def test_what_is_generated_calls_the_driver_as_planned(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "cache", tmp_path / "work")
    stub = Recipe({"s.cpp": (HERE / "stub_cuda.cpp").read_text()}, "s.cpp", ("-fPIC", "-shared"))
    (tmp_path / "libcuda.so.1").write_bytes(builder.build(stub).verified_bytes())
    fill = {"kind": "fill", "target": ["scratch", 0, 32], "size": 64, "word": b"\x00\x3c"}
    made = plan([fill, launch(), launch(ctas=2, cooperative=True)]).check(["a", "b"], 2)
    program = builder.build(program_recipe(made, SIGNATURE, WORKLOADS))
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", CALL, str(program.path)], capture_output=True, text=True, env=environment, check=False
    )
    plain = "launch 3,2,1 of 128, 100000 B, stream 0x2 1010 10000 7"
    wide = "launch 6,2,1 of 128, 100000 B, stream 0x2, #2=1, #4=2, #5=1 1010 10000 7"
    once = ["allocate 4096", "fill2 10020 15360 32", "function k", "attribute 8 100000", plain, wide]
    again = ["fill2 10020 15360 32", plain, wide]
    assert done.stdout.splitlines() == [*once, *again, "copy 2000 1000 8"]
    assert done.returncode == 75  # no workload has 5 rows


@pytest.mark.parametrize(
    "step",
    [
        launch(kernel=-1),
        launch(grid=[0, 1, 1]),
        launch(warps=33),
        launch(arguments=[{"word": b"short"}]),
        launch(arguments=[{}]),
        launch(arguments=[{"place": ["elsewhere", 0, 0]}]),
        launch(arguments=[{"place": ["buffer", 0, -1]}]),
        {"kind": "fill", "target": ["buffer", 0, 0], "size": 6, "word": b"abcd"},
        {"kind": "run", "command": "true"},
    ],
)
def test_a_plan_with_a_false_step_is_refused(step: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        plan([step])


def test_a_plan_names_only_what_is_there() -> None:
    for bad in (
        launch(kernel=1),
        launch(arguments=[{"place": ["buffer", 2, 0]}]),
        launch(arguments=[{"place": ["scratch", 1, 0]}]),
    ):
        with pytest.raises(ValueError, match="not there"):
            plan([bad]).check(["a", "b"], 2)
    with pytest.raises(ValueError, match="other workloads"):
        plan([]).check(["a"], 2)
    with pytest.raises(ValidationError, match="machine code"):
        plan([], kernels=[{"name": 'k"); system("', "image": IMAGE, "shared": 0}])
    with pytest.raises(ValidationError, match="allocates"):
        plan([], workloads=[{"name": "a", "scratch": [8 << 30, 1], "steps": []}])


def test_the_declarations_are_those_of_cuda_h(tmp_path: Path) -> None:
    triton = pytest.importorskip("triton")
    include = Path(triton.__file__).parent / "backends" / "nvidia" / "include"
    generated = program_recipe(plan([]), SIGNATURE, WORKLOADS).files["solve.cpp"]
    checks = """
#include <cuda.h>
#include <cstddef>
static_assert(sizeof(Attribute) == sizeof(CUlaunchAttribute) && sizeof(Config) == sizeof(CUlaunchConfig));
static_assert(offsetof(Attribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(offsetof(Config, block) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(Config, shared) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(Config, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(Config, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(Config, count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(kCooperative == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && kCluster == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
static_assert(kClusterPolicy == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
static_assert(CU_CLUSTER_SCHEDULING_POLICY_SPREAD == 1);
static_assert(kMaxShared == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(kWideClusters == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
static_assert(sizeof(CUdeviceptr) == sizeof(uint64_t));
"""
    source = tmp_path / "s.cpp"
    source.write_text(generated + checks)
    command = ["g++", "-std=c++17", "-fsyntax-only", "-I", str(include), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ctypes.sizeof(ctypes.c_void_p) == 8

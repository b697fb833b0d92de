"""The usual route to one number, for comparison: ``load_inline``, one look at the output, ``do_bench``.

usage: python scripts/load_inline_route.py TASK_FOLDER SOURCE.cu        (see bench_experiment.py)
The last line is a JSON map of seconds by part. Only for kernels of the form (const float* ..., float* y, ints, floats).
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

started = time.perf_counter()

import torch  # noqa: E402
from torch.utils.cpp_extension import load_inline  # noqa: E402

from team.tasks.task import Task, load_task  # noqa: E402

_TYPES = {"int32": "int64_t", "int64": "int64_t", "float32": "double", "float64": "double"}


def wrapper(task: Task) -> tuple[str, str]:
    """C++ that unpacks tensors and calls ``solve``: declaration and definition."""
    formal, actual, native = [], [], []
    for parameter in task.signature.parameters:
        if parameter.pointer:
            formal.append(f"torch::Tensor {parameter.name}")
            actual.append(f"{parameter.name}.data_ptr<float>()")
            native.append(("const float*" if parameter.const else "float*") + f" {parameter.name}")
        else:
            formal.append(f"{_TYPES[parameter.dtype]} {parameter.name}")
            actual.append(parameter.name)
            native.append(f"{'int' if parameter.dtype == 'int32' else 'float'} {parameter.name}")
    head = f"void run({', '.join(formal)})"
    text = f'#include <torch/extension.h>\nextern "C" void solve({", ".join(native)});\n'
    return head + ";", text + head + " { solve(" + ", ".join(actual) + "); }"


def main() -> None:
    """Compile, compare, time."""
    task, source = load_task(Path(sys.argv[1])), Path(sys.argv[2]).read_text()
    imported = time.perf_counter()
    _, definition = wrapper(task)
    build = Path(sys.argv[2]).parent / "extension"
    build.mkdir()
    module: Any = load_inline(
        "route", [definition], [source], functions=["run"], build_directory=str(build), with_cuda=True
    )
    compiled = time.perf_counter()
    from triton.testing import do_bench

    for workload in task.workloads:
        inputs = {name: value.cuda() for name, value in task.make_inputs(workload, 1).items()}
        outputs = {b.name: torch.empty(task.shape(b, workload), device="cuda") for b in task.outputs}
        numbers = {**workload.dims, **workload.scalars}
        arguments = [{**inputs, **outputs, **numbers}[p.name] for p in task.signature.parameters]
        module.run(*arguments)
        want = task.reference(workload, inputs)
        assert task.compare(outputs, want).passes, workload.name
        do_bench(lambda values=arguments: module.run(*values), return_mode="median")
    ended = time.perf_counter()
    parts = {"import": imported - started, "compile": compiled - imported, "check and time": ended - compiled}
    print(json.dumps(parts))


if __name__ == "__main__":
    main()

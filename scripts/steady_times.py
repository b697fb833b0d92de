"""Times of a task's kernels in steady state, beside a copy of as many bytes on the same card in the same minute.

    python scripts/steady_times.py TASK TREE [TREE ...] [--bytes '{"workload": bytes}']

For every workload and tree: launches in a row between two events, the best of some rounds, divided by their number; the
same for a device-to-device copy that reads and writes half of the workload's bytes each. What is larger than the
second-level cache is therefore moved to and from memory every time. Nothing is checked here: that is the judge's.
Prints JSON.
"""

import argparse
import ctypes
import inspect
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from team.tasks.spec import Workload  # noqa: E402
from team.tasks.task import Task, load_task  # noqa: E402

ROUNDS = 7
ROUND_MS = 12.0


def steady_us(work: Callable[[], object]) -> float:
    """Microseconds of one call, many in a row."""

    def round_ms(count: int) -> float:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(count):
            work()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) / count

    count = max(3, min(500, round(ROUND_MS / max(1e-3, round_ms(3)))))
    return 1e3 * min(round_ms(count) for _ in range(ROUNDS))


def call_of(task: Task, tree: Path, folder: Path) -> Callable[[dict[str, Any]], Callable[[], object]]:
    """From the values of the parameters to one call of the kernel in ``tree``."""
    source = tree / task.spec.source
    if task.spec.contract == "triton":
        found = spec_from_file_location(f"kernel_{folder.name}", source)
        assert found is not None
        assert found.loader is not None
        module = module_from_spec(found)
        found.loader.exec_module(module)
        names = list(inspect.signature(module.run_kernel).parameters)
        return lambda values: lambda: module.run_kernel(*(values[name] for name in names))
    folder.mkdir()
    library = folder / "kernel.so"
    major, minor = torch.cuda.get_device_capability()
    target = f"{major}{minor}{'a' if major == 9 else ''}"
    build = ["nvcc", "-O3", "-std=c++17", f"-gencode=arch=compute_{target},code=sm_{target}"]
    subprocess.run([*build, "-Xcompiler", "-fPIC", "-shared", "-o", str(library), str(source)], check=True)
    solve = ctypes.CDLL(str(library)).solve
    solve.restype = None
    kinds = {"float32": ctypes.c_float, "float64": ctypes.c_double, "int64": ctypes.c_int64, "int32": ctypes.c_int32}

    def bound(values: dict[str, Any]) -> Callable[[], object]:
        given = [
            ctypes.c_void_p(values[one.name].data_ptr()) if one.pointer else kinds[one.dtype](values[one.name])
            for one in task.signature.parameters
        ]
        return lambda: solve(*given)

    return bound


def values_of(task: Task, workload: Workload) -> dict[str, Any]:
    """Random inputs, empty outputs, and the numbers."""
    tensors = {
        each.name: torch.randn(task.shape(each, workload), device="cuda").to(each.dtype) for each in task.buffers
    }
    return {**task.numbers(workload), **tensors}


def copy_us(moved: float) -> float:
    """A copy that reads half of the bytes and writes the other half."""
    source = torch.empty(int(moved / 2), dtype=torch.uint8, device="cuda").random_(0, 255)
    target = torch.empty_like(source)
    return steady_us(lambda: target.copy_(source))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", type=Path)
    parser.add_argument("trees", type=Path, nargs="+")
    parser.add_argument("--bytes", type=json.loads, default={})
    asked = parser.parse_args()
    task = load_task(asked.task)
    told: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="kt-steady-") as name:
        kernels = [call_of(task, tree, Path(name) / str(number)) for number, tree in enumerate(asked.trees)]
        for workload in task.workloads:
            values = values_of(task, workload)
            times = [round(steady_us(kernel(values)), 2) for kernel in kernels]
            moved = asked.bytes.get(workload.name)
            told[workload.name] = {"us": times}
            if moved:
                copied = copy_us(moved)
                rates = {"GB/s": [round(moved / us / 1e3) for us in times], "copy GB/s": round(moved / copied / 1e3)}
                told[workload.name] |= rates | {"share of the copy": [round(copied / us, 3) for us in times]}
    print(json.dumps(told))


if __name__ == "__main__":
    main()

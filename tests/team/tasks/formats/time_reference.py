"""Milliseconds of definitions' own references on the GPU, by task and workload: in a process of its own, told in JSON.

usage: python time_reference.py TASK_FOLDER ...
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from team.tasks.task import load_reference, load_task

CALLS = 13


def times(folder: Path) -> dict[str, list[float]]:
    """Call ``run`` as the benchmark does, in the declared dtypes; times of events, the first call left out."""
    task, run = load_task(folder), load_reference(folder / "reference.py").run
    found: dict[str, list[float]] = {}
    for workload in task.workloads:
        given = {**task.make_inputs(workload, 11), **workload.scalars}
        found[workload.name] = [_once(run, given) for _ in range(CALLS)][1:]
    return found


def _once(run: Callable[..., Any], given: dict[str, Any]) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run(**given)
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def main() -> None:
    torch.cuda.init()
    torch.empty(1, device="cuda")  # now make_inputs draws on the GPU
    print(json.dumps({folder: times(Path(folder)) for folder in sys.argv[1:]}))  # noqa: T201


if __name__ == "__main__":
    main()

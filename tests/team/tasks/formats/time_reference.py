"""Milliseconds of a definition's own reference on the GPU, by workload: a process of its own, JSON on its output.

usage: python time_reference.py TASK_FOLDER
"""

import json
import statistics
import sys
from pathlib import Path

import torch

from team.tasks.task import load_reference, load_task

CALLS = 7


def main() -> None:
    """Call ``run`` as the benchmark does, in the declared dtypes, and take the median of events."""
    torch.cuda.init()
    torch.empty(1, device="cuda")
    folder = Path(sys.argv[1])
    task, run = load_task(folder), load_reference(folder / "reference.py").run
    found: dict[str, float] = {}
    for workload in task.workloads:
        given = {**task.make_inputs(workload, 11), **workload.scalars}
        times: list[float] = []
        for _ in range(CALLS):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            run(**given)
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end))
        found[workload.name] = statistics.median(times[1:])
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()

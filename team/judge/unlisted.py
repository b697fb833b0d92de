"""Shapes that the task does not list, drawn afresh: a kernel must be right for its operator, not for a list. Trusted.

They differ from the smallest listed workload in every dim that an extent is made of, by a little: one less, one more,
or a prime nearby, so that tails and odd strides occur. A task may keep dims as they are, ask for multiples, or say why
it wants none at all.
"""

import random

from team.tasks.spec import REACH, Workload
from team.tasks.task import Task

COUNT = 2  # shapes per evaluation


def unlisted_workloads(task: Task, dice: random.Random) -> tuple[Workload, ...]:
    """Workloads that the task does not list; empty where it opts out or has nothing to vary."""
    rules = task.spec.shapes
    if not rules.unlisted:
        return ()
    model = smallest(task)
    dims = [name for name in model.dims if name in task.varying and name not in rules.fixed]
    known = {name: {workload.dims.get(name) for workload in task.spec.workloads} for name in dims}
    found: list[Workload] = []
    for number in range(COUNT if dims else 0):
        moved = {name: _near(model.dims[name], rules.multiples.get(name, 1), known[name], dice) for name in dims}
        label = " ".join(f"{name}={value}" for name, value in moved.items())
        found.append(
            model.model_copy(update={"name": f"unlisted {number + 1} ({label})", "dims": {**model.dims, **moved}})
        )
    return tuple(found)


def smallest(task: Task) -> Workload:
    """The listed workload with the fewest elements in all its buffers."""
    return min(task.workloads, key=lambda workload: sum(_elements(task, workload)))


def _elements(task: Task, workload: Workload) -> list[int]:
    sizes: list[int] = []
    for buffer in task.buffers:
        size = 1
        for extent in task.shape(buffer, workload):
            size *= extent
        sizes.append(size)
    return sizes


def _near(value: int, multiple: int, known: set[int | None], dice: random.Random) -> int:
    """An extent near ``value`` that is a multiple of ``multiple`` and not listed, if there is one."""
    if multiple > 1:
        steps = [(value // multiple + step) * multiple for step in (-1, 1, 2)]
        wanted = [step for step in steps if step >= multiple]
    else:
        primes = [one for one in range(max(2, value - REACH), value + REACH) if _is_prime(one)]
        wanted = [one for one in (value - 1, value + 1) if one >= 1] + primes[-3:]
    fresh = [one for one in wanted if one not in known]
    return dice.choice(fresh) if fresh else value


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % factor for factor in range(2, int(number**0.5) + 1))

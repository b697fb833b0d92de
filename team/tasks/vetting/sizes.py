"""On which shapes a task is looked at here, and what its shapes cannot show. Trusted; runs no candidate."""

from collections.abc import Sequence
from math import prod

from team.tasks.spec import Workload
from team.tasks.task import Task
from team.tasks.vetting.finding import Vetted

MOST = 1 << 23  # elements of all buffers that one launch may have to be looked at as it is
TILE = 32  # a kernel that works in whole tiles of this size must meet one that is not whole
FEWEST = 8  # no dim is made smaller than this
LEAST_BYTES = {"cuda": 1 << 20, "cpu": 1 << 12}  # below, a launch takes as long as launching does


def elements(task: Task, workload: Workload) -> int:
    """Elements of all buffers."""
    return sum(prod(task.shape(buffer, workload)) for buffer in task.buffers)


def vetted_workloads(task: Task, vetted: Vetted) -> list[Workload]:
    """The workloads to look at: as they are where they are small, shrunk ones in the place of the others."""
    small = [one for one in task.workloads if elements(task, one) <= MOST]
    large = [one for one in task.workloads if one not in small]
    if not large:
        return small
    shrunk = [made for one in large if (made := _shrunk(task, one))] or list(task.spec.interpreted)
    names = ", ".join(one.name for one in large)
    if shrunk:
        said = "; ".join(one.name for one in shrunk)
        vetted.notes.append(f"{names} is too large to look at here; smaller shapes stand in: {said}")
    else:
        vetted.notes.append(f"{names} is too large to look at here, and nothing of it can be made smaller")
    return small + shrunk


def _shrunk(task: Task, workload: Workload) -> Workload | None:
    """The workload with smaller dims; None where it stays too large.

    Those that outputs begin with are halved first: what a result is made of decides which wrong answers pass.
    """
    made = workload
    for name in _order(task, workload):
        while elements(task, made) > MOST and (size := _half(task, made, name)):
            dims = {**made.dims, name: size}
            changed = ", ".join(f"{one}={dims[one]}" for one in dims if dims[one] != workload.dims[one])
            made = made.model_copy(update={"name": f"{workload.name} at {changed}", "dims": dims})
    return made if elements(task, made) <= MOST else None


def _order(task: Task, workload: Workload) -> list[str]:
    """Dims that may change: those by which an output's extents are named, from the left, then the others."""
    words = [word.strip() for one in task.outputs for extent in one.extents for word in str(extent).split("*")]
    free = [name for name in workload.dims if name in task.varying and name not in task.spec.shapes.fixed]
    return sorted(free, key=lambda name: words.index(name) if name in words else len(words))


def _half(task: Task, workload: Workload, name: str) -> int:
    """Half of a dim, as the task permits it; 0 where it cannot be made smaller."""
    step = task.spec.shapes.multiples.get(name, 1)
    size = workload.dims[name] // 2 // step * step
    return size if size >= max(FEWEST, step) else 0


def vet_shapes(task: Task, vetted: Vetted) -> None:
    """Shapes that hide work: all of them whole tiles, a single one, or too small to measure."""
    if not _is_varied(task):
        _vet_tiles(task, vetted)
        if len(task.all_workloads) == 1:
            vetted.add(
                "one shape",
                f"There is one workload, {task.workloads[0].name}, and none is drawn: a kernel for it alone passes.",
                "Add a [[workloads]] with other dims, for instance odd ones.",
            )
    for workload in task.workloads:
        moved = sum(prod(task.shape(one, workload)) * one.dtype.itemsize for one in task.buffers)
        least, device = LEAST_BYTES[task.spec.device], task.spec.device.upper().replace("CUDA", "GPU")
        if moved < least:
            vetted.add(
                "too small",
                f"Workload {workload.name} moves {moved} bytes: on a {device} launching takes longer.",
                f"Give it dims that make at least {least} bytes, or a small weight.",
            )


def _is_varied(task: Task) -> bool:
    """Whether the judge also checks shapes that the task does not list, on every machine."""
    rules = task.spec.shapes
    free = [name for name in task.workloads[0].dims if name in task.varying and name not in rules.fixed]
    return task.spec.contract == "solve" and rules.unlisted and any(rules.multiples.get(one, 1) % TILE for one in free)


def _vet_tiles(task: Task, vetted: Vetted) -> None:
    extents = [
        extent for one in task.all_workloads for buffer in task.buffers for extent in _large(task.shape(buffer, one))
    ]
    if extents and not any(extent % TILE for extent in extents):
        vetted.add(
            "whole tiles",
            f"Every extent of {TILE} or more is a multiple of {TILE}: a kernel that skips a tail passes.",
            "Add a [[workloads]] whose dims are odd.",
        )


def _large(shape: Sequence[int]) -> list[int]:
    return [extent for extent in shape if extent >= TILE]

"""Reference results of many launches at once, in the judge's own context. Trusted.

The reference is written for one launch; ``torch.vmap`` runs it on all launches of a block in the same few kernels.
Where it cannot be vectorised (or does not give what the plain call gives), launches are computed one by one.
"""

import torch

from team.errors import UserError
from team.tasks.spec import Workload
from team.tasks.task import Task, Tensors


class References:
    """Computes references for one task; remembers on which workloads vectorising works."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._vectorised: dict[str, bool] = {}

    def of(self, workload: Workload, inputs: Tensors, launches: int) -> Tensors:
        """Stacked outputs of the first ``launches`` launches: (launches, *shape) each."""
        given = {
            buffer.name: inputs[buffer.name][:launches].view(launches, *self._task.shape(buffer, workload))
            for buffer in self._task.inputs
        }
        if workload.name not in self._vectorised:
            self._vectorised[workload.name] = launches > 1 and self._agrees(workload, given)
        if self._vectorised[workload.name]:
            return self._together(workload, given)
        return self._one_by_one(workload, given, launches)

    def _together(self, workload: Workload, given: Tensors) -> Tensors:
        return torch.vmap(lambda one: self._task.reference(workload, one))(given)

    def _one_by_one(self, workload: Workload, given: Tensors, launches: int) -> Tensors:
        each = [
            self._task.reference(workload, {name: value[launch] for name, value in given.items()})
            for launch in range(launches)
        ]
        return {buffer.name: torch.stack([one[buffer.name] for one in each]) for buffer in self._task.outputs}

    def _agrees(self, workload: Workload, given: Tensors) -> bool:
        """Whether vectorising gives the plain call's results on the first two launches."""
        two = {name: value[:2] for name, value in given.items()}
        try:
            found = self._together(workload, two)
        except (UserError, RuntimeError):
            return False
        plain = self._one_by_one(workload, two, 2)
        narrow = {
            buffer.name: found[buffer.name].to(buffer.dtype) if found[buffer.name].shape == value.shape else None
            for buffer in self._task.outputs
            for value in (plain[buffer.name],)
        }
        if any(value is None for value in narrow.values()):
            return False
        return self._task.compare({k: v for k, v in narrow.items() if v is not None}, plain).passes

"""Fresh, unpredictable inputs for every launch, made on the GPU. Trusted and private to the judge's context.

One launch's input is a window of a random pool times a random scale: the pool is drawn from the operating system's
entropy, and windows of one block start a random step apart, so a block costs one kernel however many launches it has.
"""

import torch

from team.judge.inputs import InputSource
from team.tasks.spec import Workload
from team.tasks.task import Buffer, Task, Tensors

MAX_STEP = 1 << 12  # elements between the windows of neighbouring launches


class CudaInputs(InputSource):
    """Makes private inputs on the current GPU for one evaluation of one task."""

    def __init__(self, task: Task, device: str = "cuda") -> None:
        super().__init__(task)
        seed = self.generator.initial_seed()
        self.generator = torch.Generator(device=device).manual_seed(seed)

    def timed(self, workload: Workload, launches: int) -> Tensors:
        """Inputs of ``launches`` launches by name, each of shape (launches, elements), on the GPU."""
        return {name: value.to(self.generator.device) for name, value in super().timed(workload, launches).items()}

    def _placed(self, value: torch.Tensor) -> torch.Tensor:
        return value.to(self.generator.device)

    def _slices(self, buffer: Buffer, workload: Workload, launches: int) -> torch.Tensor:
        argument = self._task.spec.arguments[buffer.name]
        elements = torch.Size(self._task.shape(buffer, workload)).numel()
        step = self.dice.randrange(1, MAX_STEP)
        pool = self._pool(buffer.dtype, argument, elements + step * launches)
        start = self.dice.randrange(len(pool) - elements - step * (launches - 1))
        windows = pool[start:].as_strided((launches, elements), (step, 1), start)
        if pool.dtype == torch.float32:
            scales = torch.tensor([self._scale(argument.values) for _ in range(launches)])
            return (windows * scales.to(windows.device).unsqueeze(1)).to(buffer.dtype)
        order = torch.randperm(launches, generator=self.generator, device=windows.device)
        return windows[order].to(buffer.dtype)

"""Fresh, unpredictable inputs for every launch, cheap enough to make while a measurement runs. Trusted and private.

A pool of random values is drawn once per evaluation from the operating system's entropy. One launch's input is a slice
of it at a random offset, times a random scale and sign where the kind allows that: nothing to predict, nothing worth
caching, and a copy is all it costs. A task with a ``make_inputs`` of its own gets a fresh seed instead.
"""

import os
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import torch

from team.tasks.spec import Argument, Workload
from team.tasks.task import Buffer, Task, Tensors
from team.tasks.values import draw

SLACK = 1 << 16  # elements that the pool is longer than the largest input, so that slices differ
Profile = Literal["normal", "large", "tiny", "zeros", "constant", "lowered", "spiked"]
_SCALE = {"large": 1e3, "tiny": 1e-3}
LOWERED = 300.0  # how far below zero: maxima that start at zero, and variances as differences of squares, fail there
BESIDE = 8  # threads that make inputs
MANY = 1 << 22  # elements from which it is worth starting them
SPIKED = 64  # one element in so many stands out, so that sums must not lose the rest


@dataclass(frozen=True)
class _Kind:
    dtype: torch.dtype
    values: str
    low: int
    high: int


class InputSource:
    """Makes private inputs for one evaluation of one task."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.dice = random.Random(os.urandom(32))
        self.generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(7), "little"))
        self._pools: dict[_Kind, torch.Tensor] = {}

    def timed(self, workload: Workload, launches: int) -> Tensors:
        """Inputs of ``launches`` launches by name, each of shape (launches, elements)."""
        if self._task.makes_inputs:
            made = self._made(workload, [self.dice.getrandbits(48) for _ in range(launches)])
            return {name: torch.stack([one[name] for one in made]) for name in made[0]}
        return {buffer.name: self._slices(buffer, workload, launches) for buffer in self._task.inputs}

    def profiled(self, workload: Workload, profile: Profile) -> Tensors | None:
        """One launch's inputs under a value profile, shaped (1, elements); None when it does not apply."""
        if self._task.makes_inputs:
            return self.timed(workload, 1) if profile == "normal" else None
        inputs = {buffer.name: self._draw(buffer, workload) for buffer in self._task.inputs}
        if profile != "normal":
            changed = [self._reshape(name, value, profile) for name, value in inputs.items()]
            if not any(changed):
                return None
        return inputs

    def _made(self, workload: Workload, seeds: Sequence[int]) -> list[Tensors]:
        """What the task's own ``make_inputs`` makes of these seeds, flat. Where there is much to make, side by side: it
        draws on the host, and a sample of many launches took a second and a half."""

        def make(seed: int) -> Tensors:
            made = self._task.make_inputs(workload, seed)
            return {name: self._placed(value.flatten()) for name, value in made.items()}

        first = make(seeds[0])
        beside = min(len(os.sched_getaffinity(0)) - 1, BESIDE)
        if beside < 2 or len(seeds) * sum(value.numel() for value in first.values()) < MANY:
            return [first, *map(make, seeds[1:])]
        with ThreadPoolExecutor(beside) as hands:
            return [first, *hands.map(make, seeds[1:])]

    def _placed(self, value: torch.Tensor) -> torch.Tensor:
        """One input where the judge keeps it."""
        return value

    def _draw(self, buffer: Buffer, workload: Workload) -> torch.Tensor:
        argument = self._task.spec.arguments[buffer.name]
        shape = (1, torch.Size(self._task.shape(buffer, workload)).numel())
        return draw(argument.values, argument.low, argument.high, shape, buffer.dtype, self.generator)

    def _reshape(self, name: str, value: torch.Tensor, profile: Profile) -> bool:
        """Bend one float input to the profile in place, within what its kind allows; whether it changed."""
        kind = self._task.spec.arguments[name].values
        if not value.dtype.is_floating_point or kind == "integers":
            return False
        if profile == "constant":
            value.copy_(value[0, 0].clone())
        elif profile == "zeros" and kind != "positive":
            value.zero_()
        elif profile == "lowered" and kind == "normal":
            value.sub_(LOWERED)
        elif profile == "spiked" and kind in ("normal", "positive"):
            value[:, self.dice.randrange(SPIKED) :: SPIKED] *= _SCALE["large"]
        elif profile == "tiny" or (profile == "large" and kind in ("normal", "positive")):
            value.copy_(value.float() * _SCALE[profile])
        else:
            return False
        return bool(value.isfinite().all())

    def _slices(self, buffer: Buffer, workload: Workload, launches: int) -> torch.Tensor:
        argument = self._task.spec.arguments[buffer.name]
        elements = torch.Size(self._task.shape(buffer, workload)).numel()
        pool = self._pool(buffer.dtype, argument, elements)
        result = torch.empty((launches, elements), dtype=buffer.dtype)
        for row in result:
            start = self.dice.randrange(len(pool) - elements)
            piece = pool[start : start + elements]
            if pool.dtype == torch.float32:
                self._scaled(piece, self._scale(argument.values), row)
            else:
                row.copy_(piece)
        return result

    def _scaled(self, piece: torch.Tensor, factor: float, row: torch.Tensor) -> None:
        if row.dtype == torch.float32:
            torch.mul(piece, factor, out=row)
        else:
            row.copy_(piece * factor)

    def _scale(self, values: str) -> float:
        """A factor that keeps the kind: any sign for normal, at most 1 for uniform, positive for positive."""
        if values == "uniform":
            return self.dice.uniform(0.5, 1.0)
        size = self.dice.uniform(0.5, 2.0)
        return -size if values == "normal" and self.dice.random() < 0.5 else size

    def _pool(self, dtype: torch.dtype, argument: Argument, elements: int) -> torch.Tensor:
        """Values of one kind, float32 for the floats, at least ``elements + SLACK`` long."""
        scaled = dtype.is_floating_point and argument.values != "integers"
        held = torch.float32 if scaled else dtype
        kind = _Kind(held, argument.values, argument.low, argument.high)
        pool = self._pools.get(kind)
        if pool is None or len(pool) < elements + SLACK:
            shape = (elements + SLACK,)
            pool = draw(argument.values, argument.low, argument.high, shape, held, self.generator)
            self._pools[kind] = pool
        return pool


def shaped(task: Task, workload: Workload, inputs: Tensors, launch: int) -> Tensors:
    """One launch's inputs in the shapes that the reference expects."""
    buffers = {buffer.name: buffer for buffer in task.inputs}
    return {name: value[launch].view(task.shape(buffers[name], workload)) for name, value in inputs.items()}

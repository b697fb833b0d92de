"""What the judge asks of an imported problem: inputs, weights, results, the least work. Used by its ``reference.py``.

Weights are arguments like any other input: named after ``state_dict``, others for every seed, never matched by the
order in which random numbers are drawn. Those that a fresh model has all alike (ones of a norm, zeros of a bias) are
given values, or a kernel that leaves them out would pass.
"""

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from threading import Lock
from typing import Any

import torch

from team.tasks.formats.kernelbench.problem import Built, Precision, Problem, read_problem, result_names

_SPREAD = 0.25  # how far a weight that is alike everywhere is moved, of itself
_FROM_ZERO = 0.1  # standard deviation of weights that are zero
_RANDOM = Lock()  # get_inputs draws from torch's one generator, and the judge asks from several threads


class Judged:
    """One problem as the functions of a reference module."""

    def __init__(
        self,
        path: Path,
        precision: Precision = "fp32",
        sizes: Mapping[str, int] | None = None,
        training: bool = True,
        unread: Sequence[str] = (),
    ) -> None:
        self.problem: Problem = read_problem(path, precision, sizes, training)
        self._unread = frozenset(unread)
        self._models: dict[tuple[tuple[str, int], ...], Built] = {}

    def reference(self, **given: Any) -> dict[str, torch.Tensor]:
        """The model's own results on the given inputs and weights, computed in their dtype."""
        built = self._built(given)
        results = built.call({name: value for name, value in given.items() if isinstance(value, torch.Tensor)})
        return dict(zip(result_names(len(results), list(built.tensors())), results, strict=True))

    def make_inputs(self, seed: int, **dims: Any) -> dict[str, torch.Tensor]:
        """Inputs from the problem's own ``get_inputs`` under this seed, and weights in another order for every seed."""
        sizes = self._sizes(dims)
        built = self._built(dims)
        with _RANDOM, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            inputs = self.problem.inputs(sizes)
        generator = torch.Generator().manual_seed(seed)
        state, parameters = built.state(), dict(built.model.named_parameters())
        tensors = {name: inputs[place] for name, place in built.places.items()}
        for name, key in built.states.items():
            weight = _told_apart(state[key].detach(), generator)
            tensors[name] = _reordered(weight, generator) if key in parameters else weight
        return {name: value.contiguous() for name, value in tensors.items()}

    def workload_model(self, **dims: Any) -> dict[str, float]:
        """Floor of one launch: every input and result moves once, and a result takes an operation an element.

        Tables of which integers choose rows are not counted, nor is arithmetic: a chain of operators may be cut short.
        """
        built = self.problem.built(self._sizes(dims))
        with torch.no_grad():
            results = built.call(built.tensors())
        tensors = {name: one for name, one in built.tensors().items() if name not in self._unread}
        looked_up = any(not one.is_floating_point() for name, one in tensors.items() if name in built.places)
        read = [one for name, one in tensors.items() if name in built.places or not looked_up]
        moved = sum(one.nbytes for one in read if one.dim()) + sum(one.nbytes for one in results)
        return {"flops": float(sum(prod(one.shape) for one in results)), "bytes_min": float(moved)}

    def _sizes(self, given: Mapping[str, Any]) -> dict[str, int]:
        return {name: given[name] for name in self.problem.constants if name in given}

    def _built(self, given: Mapping[str, Any]) -> Built:
        """The model for some sizes, made once; its weights are not used."""
        sizes = self._sizes(given)
        key = tuple(sizes.items())
        if key not in self._models:
            with _RANDOM, torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                self._models[key] = self.problem.built(sizes, "cpu")
        return self._models[key]


def _told_apart(weight: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A weight whose elements differ; positive ones stay positive."""
    if not weight.is_floating_point() or weight.numel() == 0 or bool((weight != weight.flatten()[0]).any()):
        return weight
    first = float(weight.flatten()[0])
    if first == 0.0:
        return (torch.randn(weight.shape, generator=generator) * _FROM_ZERO).to(weight.dtype)
    away = 2.0 * torch.rand(weight.shape, generator=generator) - 1.0
    return (first * (1.0 + _SPREAD * away)).to(weight.dtype)


def _reordered(weight: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A parameter as another seed might have drawn it, for the price of a copy: shifted by a random way and scaled.

    A fresh model for every launch would take the judge longer than all else. Buffers, which may be masks, stay.
    """
    if not weight.is_floating_point() or weight.numel() < 2:
        return weight
    shift = int(torch.randint(weight.numel(), (), generator=generator))
    factor = 1.0 + _SPREAD * (2.0 * float(torch.rand((), generator=generator)) - 1.0)
    return (weight.flatten().roll(shift) * factor).view(weight.shape)

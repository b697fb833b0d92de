"""What the judge asks of an imported GPU MODE problem: inputs, results, the least work."""

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import torch

from team.tasks.formats.gpu_mode.problem import Data, Problem
from team.tasks.formats.kernelbench.problem import result_names


class Judged:
    """One problem as the functions of a reference module; ``fixed`` are arguments that no workload changes."""

    def __init__(self, folder: Path, fixed: Mapping[str, Any] | None = None, unread: Sequence[str] = ()) -> None:
        self.problem = Problem(folder)
        self.fixed = dict(fixed or {})
        self._unread = frozenset(unread)
        self._wanted = {name for case in self.problem.cases("benchmarks") for name in case}
        self._forms: dict[tuple[tuple[str, Any], ...], Data] = {}

    def reference(self, **given: Any) -> dict[str, torch.Tensor]:
        """The reference's results on the given tensors."""
        form = self._form(given)
        results = self.problem.results(form.filled({name: given[name] for name in form.names if name in given}))
        return dict(zip(result_names(len(results), form.names), results, strict=True))

    def make_inputs(self, seed: int, **dims: Any) -> dict[str, torch.Tensor]:
        """The tensors of ``generate_input`` for this seed."""
        made = self.problem.data(self._case(dims), seed).named()
        return {name: value.contiguous() for name, value in made.items() if name not in self._unread}

    def workload_model(self, **dims: Any) -> dict[str, float]:
        """Floor of one launch: every input and result moves once, and a result takes an operation an element.

        Inputs of which integers choose parts are not counted.
        """
        data = self._form(dims)
        results = self.problem.results(data.filled({}))
        read = {name: one for name, one in data.named().items() if name not in self._unread}
        chosen = any(not one.is_floating_point() for one in read.values()) and len(read) > 1
        moved = sum(one.nbytes for one in results) + (0 if chosen else sum(one.nbytes for one in read.values()))
        return {"flops": float(sum(prod(one.shape) for one in results)), "bytes_min": float(moved)}

    def _case(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.fixed, **{name: value for name, value in given.items() if name in self._wanted}}

    def _form(self, given: Mapping[str, Any]) -> Data:
        """Data of some case, made once: its form, and what stands in it beside the tensors that are given."""
        case = self._case(given)
        key = tuple(sorted(case.items()))
        if key not in self._forms:
            self._forms[key] = self.problem.data(case, 0)
        return self._forms[key]

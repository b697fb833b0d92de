"""Answers that are wrong on purpose: what a kernel gives that does not do its work. Each must fail the comparison.

Everything is made with the reference alone: of no answer, of answers to other inputs, and of answers to inputs from
which something was taken away.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from team.tasks.spec import Workload
from team.tasks.task import Task, Tensors

STEP = 32  # a step along a dim is a share of it as large as this, or one element
Kind = Literal["zeros", "constant", "copy", "replay", "ignores", "step", "rounded"]


@dataclass(frozen=True)
class Wrong:
    """One wrong answer and how a kernel would come to it, as a clause after 'a kernel that'."""

    kind: Kind
    does: str
    answer: Tensors
    of: str = ""  # the input that it makes too little of


@dataclass(frozen=True)
class Case:
    """One workload with inputs, the right results for them, and other inputs with theirs."""

    task: Task
    workload: Workload
    inputs: Tensors
    want: Tensors
    others: Tensors
    elsewhere: Tensors

    def answered(self, changed: Tensors) -> Tensors:
        """What the reference gives when some inputs are others."""
        return stored(self.task, self.task.reference(self.workload, {**self.inputs, **changed}, double=True))

    def passes(self, answer: Tensors) -> bool:
        """Whether the task would take this answer for the right one."""
        got = stored(self.task, answer)
        return self.task.compare_launch(self.workload, self.inputs, got, self.want).passes


def stored(task: Task, answer: Tensors) -> Tensors:
    """Results as a kernel stores them: in the outputs' dtypes."""
    return {buffer.name: answer[buffer.name].to(buffer.dtype) for buffer in task.outputs}


def case_of(task: Task, workload: Workload, seed: int) -> Case:
    """Inputs for two seeds and the results of both in double precision."""
    inputs, others = task.make_inputs(workload, seed), task.make_inputs(workload, seed + 1)
    want = task.reference(workload, inputs, double=True)
    return Case(task, workload, inputs, want, others, task.reference(workload, others, double=True))


def wrong_answers(case: Case) -> Iterator[Wrong]:
    """All of them, those that cost nothing first."""
    yield Wrong("zeros", "writes zeros", {name: torch.zeros_like(value) for name, value in case.want.items()})
    yield Wrong("constant", "writes one number, the outputs' mean, everywhere", _constant(case))
    yield from _copies(case)
    yield Wrong("replay", "gives the answer to other inputs again", case.elsewhere)
    yield from _rounded(case)
    yield from _ignorant(case)
    yield from _shortened(case)


def _constant(case: Case) -> Tensors:
    made: Tensors = {}
    for name, value in case.want.items():
        finite = value[value.isfinite()] if value.is_floating_point() else value
        middle = finite.double().mean() if finite.numel() else torch.zeros(())
        made[name] = torch.full_like(value, middle.round().item() if not value.is_floating_point() else middle.item())
    return made


def _copies(case: Case) -> Iterator[Wrong]:
    """An input in the place of every output, where one has as many elements as all outputs have."""
    sizes = {value.numel() for value in case.want.values()}
    for name, value in case.inputs.items():
        if sizes == {value.numel()}:
            answer = {key: value.view(want.shape).to(want.dtype) for key, want in case.want.items()}
            yield Wrong("copy", f"copies '{name}'", answer)


def _ignorant(case: Case) -> Iterator[Wrong]:
    """Each input replaced by another one of its kind."""
    for name, value in case.inputs.items():
        other = case.others[name]
        if len(case.inputs) > 1 and not torch.equal(value, other):
            yield Wrong("ignores", f"does not read '{name}'", case.answered({name: other}), name)


def _shortened(case: Case) -> Iterator[Wrong]:
    """The last step of each dim of each float input left out, where the first is not missed either."""
    for name, value in case.inputs.items():
        for dim, size in enumerate(value.shape):
            if value.is_floating_point() and size > 1:
                step = max(1, size // STEP)
                does = f"leaves out the last {step} of {size} steps along dim {dim} of '{name}'"
                if case.passes(_without(case, name, dim, 0, step)):
                    yield Wrong("step", does, _without(case, name, dim, size - step, step), name)


def _without(case: Case, name: str, dim: int, start: int, step: int) -> Tensors:
    shorter = case.inputs[name].clone()
    shorter.narrow(dim, start, step).zero_()
    return case.answered({name: shorter})


_NARROWER = {
    torch.float64: torch.float32,
    torch.float32: torch.bfloat16,
    torch.float16: torch.float8_e4m3fn,
    torch.bfloat16: torch.float8_e4m3fn,
}


def _rounded(case: Case) -> Iterator[Wrong]:
    """Floating-point inputs and outputs in the next narrower type."""
    dtypes = {buffer.dtype for buffer in case.task.outputs if buffer.dtype in _NARROWER}
    if not dtypes or not any(value.dtype in _NARROWER for value in case.inputs.values()):
        return
    widest = max(dtypes, key=lambda one: one.itemsize)
    narrow = _NARROWER[widest]
    changed = {
        name: value.to(narrow).to(value.dtype) for name, value in case.inputs.items() if value.dtype in _NARROWER
    }
    answer = case.answered(changed)
    rounded = {
        name: value.to(narrow).to(value.dtype) if value.dtype in _NARROWER else value for name, value in answer.items()
    }
    yield Wrong("rounded", f"computes in {str(narrow).removeprefix('torch.')}", rounded)

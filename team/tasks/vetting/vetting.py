"""Looking at a task: its reference, its tolerances, its shapes, its floor. Runs on a CPU; executes no candidate."""

import time
from collections.abc import Mapping
from pathlib import Path

import torch

from team.devices import has_gpu
from team.tasks.spec import Workload
from team.tasks.task import Task, load_task
from team.tasks.vetting.finding import Vetted
from team.tasks.vetting.sizes import vet_shapes, vetted_workloads
from team.tasks.vetting.wrong import Case, Kind, case_of, stored, wrong_answers

SECONDS = 60.0  # for the wrong answers of all workloads together
SEED = 20  # any; the judge draws its own
CLOSE = 0.5  # share of the tolerance that the reference itself may use up in single precision

NOTHING_LAUNCHED = (
    "there is no GPU here: nothing was launched, so whether the kernel is right and how fast it is was not checked; "
    "judge it where there is one with: kernelteam eval TASK"
)
_REMEDIES: dict[Kind, str] = {
    "zeros": "Scale the inputs so that the results are larger than the tolerance, or lower atol.",
    "constant": "Give inputs whose results differ from each other by more than the tolerance, or lower it.",
    "copy": "Give inputs on which the operator changes something, for instance of both signs.",
    "replay": "Let the results depend on the inputs by more than the tolerance, or lower it.",
    "ignores": "Give it values that matter, or take it off the arguments.",
    "step": "Lower the tolerance, or give inputs with a mean of zero.",
    "rounded": "Lower the tolerance, or say that this precision is meant by giving the tensors that dtype.",
}


def vet(folder: Path) -> Vetted:
    """Everything that is found wrong with the task in ``folder``; what keeps it from loading is a ``UserError``."""
    task = load_task(folder)
    vetted = Vetted(task.spec.name)
    vet_shapes(task, vetted)
    until = time.monotonic() + SECONDS
    for one in (task, task.held_out()) if task.spec.held_out else (task,):
        for workload in vetted_workloads(one, vetted):
            _vet_floor(one, workload, vetted)
            _vet_workload(one, workload, vetted, until)
    if held_out := len(task.spec.held_out):
        vetted.notes.append(f"held-out shapes, which landings and submissions are held to: {held_out}")
    if task.spec.device == "cuda" and not has_gpu():
        vetted.notes.append(NOTHING_LAUNCHED)
    return vetted


def _vet_workload(task: Task, workload: Workload, vetted: Vetted, until: float) -> None:
    case = case_of(task, workload, SEED)
    if not _is_repeatable(case, vetted):
        return
    _vet_finite(case, vetted)
    _vet_reachable(case, vetted)
    _vet_answers(case, vetted, until)


def _is_repeatable(case: Case, vetted: Vetted) -> bool:
    """Whether a seed gives the same inputs and inputs give the same results, twice."""
    task, workload = case.task, case.workload
    if not _same(task.make_inputs(workload, SEED), case.inputs):
        vetted.add(
            "inputs differ",
            f"make_inputs gives other inputs for the same seed on workload {workload.name}.",
            "Draw from torch.Generator().manual_seed(seed) alone.",
        )
        return False
    again = task.reference(workload, case.inputs, double=True)
    if not _same(again, case.want) and not (task.compares and case.passes(again)):
        vetted.add(
            "not deterministic",
            f"The reference gives other results for the same inputs on workload {workload.name}.",
            "Take the randomness out of it, or pass it in as an input.",
        )
        return False
    return True


def _same(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    return all(torch.equal(_bits(one[name]), _bits(other[name])) for name in one)


def _bits(values: torch.Tensor) -> torch.Tensor:
    return values.contiguous().view(torch.uint8)


def _vet_finite(case: Case, vetted: Vetted) -> None:
    """Results that the output's dtype cannot hold, or that are no numbers."""
    for name, value in stored(case.task, case.want).items():
        if value.is_floating_point() and not bool(value.float().isfinite().all()):
            share = 1.0 - float(value.float().isfinite().double().mean())
            vetted.add(
                "not finite",
                f"{share:.0%} of output '{name}' is inf or NaN on workload {case.workload.name}, which says nothing "
                "about how a kernel came to it.",
                "Scale the inputs, or give the output a wider dtype.",
            )


def _vet_reachable(case: Case, vetted: Vetted) -> None:
    """A tolerance that the reference itself does not keep when it computes as a kernel does."""
    single = stored(case.task, case.task.reference(case.workload, case.inputs))
    found = case.task.compare_launch(case.workload, case.inputs, single, case.want)
    if not found.worst <= CLOSE:
        vetted.add(
            "too tight",
            f"The reference's own rounding takes {found.worst:.2g} times the tolerance of output '{found.output}' on "
            f"workload {case.workload.name}, so right kernels would be refused.",
            "Raise the tolerance of that output.",
        )


def _vet_answers(case: Case, vetted: Vetted, until: float) -> None:
    """Every wrong answer that would be taken for the right one. What follows from another is not said again."""
    said: set[Kind] = set()
    unread: set[str] = set()
    for wrong in wrong_answers(case):
        if time.monotonic() > until:
            vetted.notes.append(
                f"not all wrong answers were tried on workload {case.workload.name}: {SECONDS:g} s are over"
            )
            return
        if (said & {"zeros", "constant"} and wrong.kind != "rounded") or not case.passes(wrong.answer):
            continue
        if wrong.kind in ("ignores", "step") and ("replay" in said or wrong.of in unread):
            continue
        said.add(wrong.kind)
        unread |= {wrong.of} if wrong.kind == "ignores" else set()
        vetted.add(
            wrong.kind,
            f"A kernel that {wrong.does} would pass on workload {case.workload.name}.",
            _REMEDIES[wrong.kind],
        )


def _vet_floor(task: Task, workload: Workload, vetted: Vetted) -> None:
    floor = task.floor(workload)
    if not any(value > 0 for value in floor.values()):
        vetted.add(
            "no floor",
            "Nothing says how fast a launch can be at best, so impossible times are not recognised.",
            "Define workload_model(**dims) -> {'flops': ..., 'bytes_min': ...} beside the reference.",
        )

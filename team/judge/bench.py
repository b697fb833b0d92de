"""Where kernels stand while they are checked or timed: one device's arenas, and runners started on them. Trusted."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch

from protocol.messages import Outcome
from team.devices.cpu import CpuDevice
from team.devices.cuda import CudaDevice
from team.judge.arena import Arena, Layout, Lease, arrange, pointer_mask
from team.judge.artifact import Artifact
from team.judge.build import Builder
from team.judge.failures import Failed, RunnerEnded, RunnerFaulted, RunnerLied, RunnerRaised, RunnerSilent, Side
from team.judge.runner.process import START_S, RunnerProcess, Sample, program_recipe
from team.judge.shim import shim_recipe
from team.tasks.spec import Workload
from team.tasks.task import Task, Tensors

IDLE_SET = 0  # a staged set that launches nothing
SETS = 1024  # sets that one kernel may have staged; those of its siblings come after them
T = TypeVar("T")
Errors = Mapping[str, float]
"""Output -> its largest error as a share of its tolerance."""


@dataclass
class Stand:
    """One side on the bench: its runner, its arena, and what it is to be called when it fails.

    ``place`` is its kernel's among those that the runner holds, from 0; most hold one.
    """

    side: Side
    runner: RunnerProcess
    arena: Arena
    task: Task
    workload: str = ""
    ended: bool = False
    place: int = 0

    def guarded(self, act: Callable[[], T]) -> T:
        """Do something with the runner; whatever it does wrong becomes ``Failed`` with this side's name."""
        try:
            return act()
        except RunnerEnded as error:
            self.ended = True
            raise Failed(self.side, Outcome.CRASHED, f"its process {error}", self.workload) from error
        except (RunnerFaulted, RunnerRaised) as error:
            self.ended = True
            raise Failed(self.side, Outcome.CRASHED, f"its process {error}", self.workload) from error
        except RunnerSilent as error:
            raise Failed(self.side, Outcome.TIMEOUT, f"it {error} and was killed", self.workload) from error
        except RunnerLied as error:
            raise Failed(self.side, Outcome.TAMPERED, f"its process {error}", self.workload) from error

    def stage(self, number: int, layout: Layout, launches: int) -> Lease:
        """Tell the runner about ``launches`` launches; the buffers are filled later, while it stands still."""
        signature = self.task.signature
        body = {
            "op": "stage",
            "set": self.own(number),
            "kernel": self.place,
            "launches": launches,
            "columns": len(signature.parameters),
            "pointers": pointer_mask(signature),
            "words": layout.words(signature, launches),
        }
        self.guarded(lambda: self.runner.ask(body, START_S))
        return Lease(self.arena, layout)

    def go(self, number: int, deadline_s: float) -> Sample:
        """Launch a staged set."""
        return self.guarded(lambda: self.runner.go(self.own(number), deadline_s))

    def own(self, number: int) -> int:
        """What the runner calls this side's set of that number."""
        return number + SETS * self.place

    def inspect(
        self, lease: Lease, inputs: Tensors, wants: list[Tensors], ease: dict[str, float] | None = None
    ) -> Errors:
        """Check every launch's outputs, the guard bands and the inputs; errors as shares of their tolerances."""
        want = {buffer.name: torch.stack([one[buffer.name] for one in wants]) for buffer in self.task.outputs}
        return self.inspect_all(lease, inputs, want, len(wants), ease)

    def inspect_some(self, lease: Lease, inputs: Tensors, wants: dict[int, Tensors]) -> None:
        """As ``inspect``, for the launches that ``wants`` names; every guard band is looked at all the same."""
        rows = list(wants)
        for trace, outcome in ((lease.damage(inputs, rows), Outcome.TAMPERED), (lease.overrun(), Outcome.INCORRECT)):
            if trace:
                raise Failed(self.side, outcome, trace, self.workload)
        got = {name: value[rows] for name, value in lease.outputs(max(rows) + 1).items()}
        want = {buffer.name: torch.stack([one[buffer.name] for one in wants.values()]) for buffer in self.task.outputs}
        kept = {name: value[rows] for name, value in inputs.items()} if self.task.compares else inputs
        if not self.task.compare_launches(lease.workload, kept, got, want, bounded=True).passes:
            said = self._first_wrong(lease.workload, kept, got, want, len(rows), None)
            raise Failed(self.side, Outcome.INCORRECT, said, self.workload)

    def inspect_all(
        self,
        lease: Lease,
        inputs: Tensors,
        want: Tensors,
        launches: int,
        ease: dict[str, float] | None = None,
        bounded: bool = False,
    ) -> Errors:
        """As ``inspect``, with the wanted outputs of all launches stacked: (launches, *shape).

        ``bounded``: whether they are right is all that matters, not how wrong they are.
        """
        for trace, outcome in ((lease.damage(inputs), Outcome.TAMPERED), (lease.overrun(), Outcome.INCORRECT)):
            if trace:
                raise Failed(self.side, outcome, trace, self.workload)
        got = lease.outputs(launches)
        found = self.task.compare_launches(lease.workload, inputs, got, want, ease, bounded)
        if not found.passes:
            said = self._first_wrong(lease.workload, inputs, got, want, launches, ease)
            raise Failed(self.side, Outcome.INCORRECT, said, self.workload)
        return found.errors

    def _first_wrong(
        self,
        workload: Workload,
        inputs: Tensors,
        got: Tensors,
        want: Tensors,
        launches: int,
        ease: dict[str, float] | None,
    ) -> str:
        """One clause about the first launch that is wrong."""
        for launch in range(launches):
            given, ours, theirs = (
                {name: value[launch : launch + 1] for name, value in side.items()} for side in (inputs, got, want)
            )
            found = self.task.compare_launches(workload, given, ours, theirs, ease)
            if not found.passes:
                return f"launch {launch + 1} of {launches}: {found.detail}" if launches > 1 else found.detail
        return "an output is wrong"


class Bench:
    """One device's runners and arenas. Arenas grow when a task needs more and are kept between requests.

    ``layers`` names the sandbox layers of the last runner, separated by spaces.
    """

    def __init__(self, device: CpuDevice | CudaDevice, builder: Builder, folder: Path) -> None:
        self.device = device
        self._builder = builder
        self._folder = folder
        self._program: Artifact | None = None
        self._arenas: list[Arena] = []
        self.layers = ""
        folder.mkdir(parents=True, exist_ok=True)

    def provide(self, size: int) -> int:
        """Two arenas of at least ``size`` bytes each; the bytes that each now has. No runner may be alive."""
        if not self._arenas or self._arenas[0].size < size:
            self.close()
            self._arenas = [self._arena(size), self._arena(size)]
        return self._arenas[0].size

    def _arena(self, size: int) -> Arena:
        return Arena(size)

    def takes_any_shape(self, task: Task) -> bool:
        """Whether a built kernel can be launched on shapes that the task does not list.

        A Triton kernel's launches are traced for the listed ones when it is built for a GPU.
        """
        return task.spec.contract == "solve"

    def prepare(self, runners: int) -> None:
        """Make ready for this many runners; nothing to do where one starts in a moment."""

    def rest(self) -> None:
        """Between two requests: make ready for the next; nothing to do where runners start in a moment."""

    def hush(self) -> None:
        """Begin nothing more that could disturb a measurement; nothing to do where nothing is made ready."""

    def arrange(self, task: Task, workload: Workload, launches: int, dice: random.Random) -> Layout:
        """Where the buffers of ``launches`` launches lie."""
        return arrange(task, workload, launches, dice)

    def settle(self, ready: int = 0) -> None:
        """Let nothing stir that was being made ready; nothing to do where nothing is."""

    def close(self) -> None:
        """Give the arenas back."""
        for arena in self._arenas:
            arena.close()
        self._arenas = []

    @contextmanager
    def stand(self, side: Side, task: Task, kernel: Artifact, arena: int) -> Iterator[Stand]:
        """A fresh runner with ``kernel`` loaded, on arena 0 or 1; killed at the end."""
        with self._runner(task, (kernel,), arena) as runner:
            stand = Stand(side, runner, self._arenas[arena], task)
            self.layers = stand.guarded(runner.load)
            stand.stage(IDLE_SET, Layout(task.workloads[0], 0, 0, 0, ()), 0)
            yield stand

    @contextmanager
    def lineup(self, task: Task, base: Artifact, variants: Sequence[Artifact]) -> Iterator[Sequence[Stand]]:
        """A fresh runner with the base and several variants of one author, killed at the end: the base's stand, then
        theirs in order. ``team.judge.sift`` says what may share a process, and why."""
        with self._runner(task, (base, *variants), 0) as runner:
            sides: list[Side] = ["base", *("candidate" for _ in variants)]
            lent = self._arenas[0]
            stands = [Stand(side, runner, lent, task, place=place) for place, side in enumerate(sides)]
            self.layers = stands[0].guarded(runner.load)
            yield stands

    def _runner(self, task: Task, kernels: Sequence[Artifact], arena: int) -> RunnerProcess:
        if self._program is None:
            self._program = self._builder.build(program_recipe())
        shim, cores = self._builder.build(shim_recipe(task.signature)), self.device.kernel_cores
        lent = self._arenas[arena].descriptor
        return RunnerProcess(self._program, shim, kernels, lent, cores, self._folder)


def random_sides(dice: random.Random) -> tuple[int, int]:
    """Which arena is the base's and which the candidate's, drawn anew for every restart."""
    first = dice.randrange(2)
    return first, 1 - first


def quiet_torch() -> None:
    """One thread for the judge's own arithmetic, so that it never spreads onto the kernel's cores."""
    torch.set_num_threads(1)

"""Where CUDA kernels stand: arenas in device memory, runners with a context each, started ahead. Trusted."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from protocol.messages import Outcome
from team.devices.cuda import CudaDevice
from team.errors import UserError
from team.judge.arena import Arena, Layout, Lease, arrange, pointer_mask
from team.judge.artifact import Artifact
from team.judge.bench import Bench, Stand, T
from team.judge.build import Builder
from team.judge.cuda.build import lent_signature, program_recipe
from team.judge.cuda.card import Card
from team.judge.cuda.pool import Pool
from team.judge.cuda.process import REGIMES, CudaRunner, Regime, Staged
from team.judge.failures import Failed, RunnerEnded, RunnerFaulted, Side
from team.judge.runner.process import Sample
from team.judge.shim import shim_recipe
from team.judge.timeline import TIMELINE
from team.tasks.signature import Signature
from team.tasks.spec import Workload
from team.tasks.task import Task

ALIGNMENT = 256  # bytes; what cudaMalloc guarantees
CAPTURED = Staged("graph", "", 0)
STAGE_S = {"base": 60.0, "candidate": 6.0}  # seconds to warm up, capture and instantiate a set
MAX_RETIRED = 24  # runners that have served and wait to be taken down
LEAST = 2  # runners that wait where memory is short
ROOMY = 1.25  # times the memory that is asked for: a faster kernel soon asks for a little more
FREE_SHARE = 0.5  # of the device memory, below which they are taken down at once


@dataclass
class CudaStand(Stand):
    """One side on a GPU: also what it takes to start the same kernel again in a fresh process."""

    bench: "CudaBench" = field(kw_only=True)
    shim: Artifact = field(kw_only=True)
    kernels: tuple[Artifact, ...] = field(kw_only=True)
    staged: Staged = CAPTURED

    @property
    def process(self) -> CudaRunner:
        """The runner, as what it is."""
        assert isinstance(self.runner, CudaRunner)
        return self.runner

    def guarded(self, act: Callable[[], T]) -> T:
        """As on the CPU; besides, a kernel that never ends is killed and the GPU seen to work again."""
        try:
            return super().guarded(act)
        except Failed as failed:
            if failed.outcome is Outcome.TIMEOUT:
                self.runner.close()
                self.bench.card.prove_alive()
            raise

    def stage(self, number: int, layout: Layout, launches: int, regime: Regime = "graph") -> Lease:
        """Capture ``launches`` launches; a kernel that ends its process over it gets another, launched plainly."""
        lease = Lease(self.arena, layout)
        lease.clear()
        try:
            self.staged = self._stage(number, layout, launches, regime)
        except Failed as failed:
            if regime != "graph" or failed.outcome is not Outcome.CRASHED or len(self.kernels) > 1:
                raise
            self._start_again()
            plain = self._stage(number, layout, launches, "gated")
            self.staged = Staged(plain.regime, f"captured, {failed.detail}", plain.nodes)
        return lease

    def go(self, number: int, deadline_s: float) -> Sample:
        """Launch a staged set once, from a cold L2."""
        return self.replay(number, 1, deadline_s)

    def replay(self, number: int, replays: int, deadline_s: float) -> Sample:
        """Launch a staged set several times in a row."""
        self.bench.calm()
        with TIMELINE.stage("launches"):
            sample = self.guarded(lambda: self.process.replay(self.own(number), replays, deadline_s))
        with TIMELINE.stage("stillness"):
            computes = self.bench.somebody_computes()
        if computes:
            raise Failed(
                self.side, Outcome.TAMPERED, "something that it started runs on after its answer", self.workload
            )
        return sample

    def walk(self, number: int, deadline_s: float) -> Sample:
        """Launch a staged set from the host."""
        self.bench.calm()
        with TIMELINE.stage("walk"):
            return self.guarded(lambda: self.process.walk(self.own(number), deadline_s))

    def load(self) -> str:
        """Load the kernels; the sandbox's active layers."""
        with TIMELINE.stage("load", f"{self.side} {self.runner.pid}"):
            return self.guarded(lambda: self.process.hold(self.shim, self.kernels))

    def _stage(self, number: int, layout: Layout, launches: int, regime: Regime) -> Staged:
        signature = self.bench.call_of(self.task)
        body = {
            "op": "stage",
            "set": self.own(number),
            "kernel": self.place,
            "launches": launches,
            "columns": len(signature.parameters),
            "pointers": pointer_mask(signature),
            "streams": 1 << len(signature.parameters) - 1,
            "words": layout.words(signature, launches),
            "regime": REGIMES.index(regime),
        }
        self.bench.calm()
        with TIMELINE.stage("stage launches"):
            return self.guarded(lambda: self.process.stage(body, STAGE_S[self.side]))

    def _start_again(self) -> None:
        self.runner.close()
        self.runner = self.bench.runner(self.arena)
        self.load()


class CudaBench(Bench):
    """One GPU's runners and arenas. Spares are started ahead, and none is being started while anything is timed."""

    device: CudaDevice

    def __init__(self, card: Card, host: Builder, native: Builder, folder: Path) -> None:
        super().__init__(card.device, host, folder)
        self.card = card
        self._native = native
        self._keep_uid = False
        self._building = Lock()
        self.pool = Pool(self._spawn, self._furnish)

    def prepare(self, runners: int) -> None:
        """Make this many ready, and take down those that have served, while something else is done: the first of them
        waits for the runner's own program, which is built beside the first kernels."""
        self.pool.work(runners if self.card.free_share() > FREE_SHARE else LEAST)

    def rest(self) -> None:
        """Between two requests: go on with that, while nobody waits for it."""
        self.pool.work()

    def hush(self) -> None:
        """See ``Bench``; the step in hand ends while the candidate is checked."""
        self.pool.hush()

    def settle(self, ready: int = 0) -> None:
        """Wait until nothing of the pool stirs: it would disturb a measurement. ``ready`` spares wait then."""
        with TIMELINE.stage("settle pool"):
            self.pool.stand_still(ready)
            if self._crowded():
                self.pool.reap()

    def calm(self) -> None:
        """An idle card with a cold L2: what every exchange that launches begins with."""
        with TIMELINE.stage("drain"):
            self.card.drain()
        with TIMELINE.stage("calm"):
            self.card.calm()

    def arrange(self, task: Task, workload: Workload, launches: int, dice: random.Random) -> Layout:
        """Where the buffers of ``launches`` launches lie."""
        return arrange(task, workload, launches, dice, ALIGNMENT)

    def call_of(self, task: Task) -> Signature:
        """How the shim calls the task's kernels."""
        return lent_signature(task.signature)

    def somebody_computes(self) -> bool:
        """Whether another process keeps the card busy."""
        if not self.card.held_up():
            return False
        self.settle()  # contexts that are being made or taken down hold the card up, too
        self.pool.reap()
        return self.card.held_up()

    def _crowded(self) -> bool:
        """Whether the retired hold too much: there are many, some were killed, or memory is short."""
        retired = self.pool.retired
        gone = any(not runner.frozen for runner in retired)
        return gone or len(retired) >= MAX_RETIRED or self.card.free_share() < FREE_SHARE

    def provide(self, size: int) -> int:
        """One arena of at least ``size`` bytes, lent to both sides in turn; the bytes that it has."""
        if not self._arenas or self._arenas[0].size < size:
            with self.pool.alone():  # nobody may have the former one open when it is given back
                self.pool.take_down_retired()
                former, self._arenas = self._arenas, [self._arena(int(ROOMY * size))]
                self.pool.furnish_again()
                for arena in former:
                    arena.close()
        return self._arenas[0].size

    def _furnish(self, runner: CudaRunner) -> None:
        """Wait for a runner's context and let it open the arena that there is."""
        runner.await_ready()
        if self._arenas:
            with TIMELINE.stage("open", f"runner {runner.pid}"):
                runner.open(self._arenas[0])

    def close(self) -> None:
        """Give the arenas back and end the spares."""
        self.pool.close()
        super().close()

    def runner(self, arena: Arena) -> CudaRunner:
        """A ready runner that has opened ``arena``. Where another uid may not open it, runners keep the judge's."""
        self._program_built()
        runner = self._with_context()
        try:
            runner.open(arena)
        except (RunnerFaulted, RunnerEnded) as error:
            runner.close()
            if self.pool.retired:  # one of them may hold all of the card's memory
                self.pool.reap()
            elif self._keep_uid:
                raise self._unusable(error) from error
            else:
                self._drop_spares()
            return self.runner(arena)
        return runner

    def _with_context(self) -> CudaRunner:
        """A runner that has its context; those that found no memory for one, because a kernel held it, are replaced."""
        for left in range(self.pool.spares + 1, -1, -1):
            runner = self.pool.take()
            try:
                runner.await_ready()
                return runner
            except (RunnerFaulted, RunnerEnded) as error:
                runner.close()
                self.pool.reap()
                if not left:
                    raise self._unusable(error) from error
        raise AssertionError("unreachable")

    def _unusable(self, error: Exception) -> UserError:
        return UserError(f"A runner cannot use GPU {self.device.id}: {error}.", "See: kernelteam doctor")

    @contextmanager
    def stand(self, side: Side, task: Task, kernel: Artifact, arena: int) -> Iterator[CudaStand]:
        """A fresh runner with ``kernel`` loaded, on the one arena; killed at the end."""
        with self._stands(task, (side,), (kernel,)) as stands:
            yield stands[0]

    @contextmanager
    def lineup(self, task: Task, base: Artifact, variants: Sequence[Artifact]) -> Iterator[Sequence[CudaStand]]:
        """See ``Bench.lineup``."""
        with self._stands(task, ("base", *("candidate" for _ in variants)), (base, *variants)) as stands:
            yield stands

    @contextmanager
    def _stands(
        self, task: Task, sides: Sequence[Side], kernels: tuple[Artifact, ...]
    ) -> Iterator[Sequence[CudaStand]]:
        """Stands of kernels that one fresh runner holds."""
        lent, shim = self._arenas[0], self._builder.build(shim_recipe(self.call_of(task)))
        runner = self.runner(lent)
        stands = [
            CudaStand(side, runner, lent, task, place=place, bench=self, shim=shim, kernels=kernels)
            for place, side in enumerate(sides)
        ]
        try:
            self.layers = stands[0].load()
            yield stands
        finally:
            self.pool.retire(stands[0].process)
            if self.card.free_share() < FREE_SHARE:
                self.pool.reap()

    def _arena(self, size: int) -> Arena:
        return self.card.lend(size)

    def _spawn(self) -> CudaRunner:
        return CudaRunner(self._program_built(), self.device, self._keep_uid, self._folder)

    def _program_built(self) -> Artifact:
        with self._building:  # the pool's thread and whoever asks for a runner meanwhile need the same one
            if self._program is None:
                self._program = self._native.build(program_recipe(self.device.target))
            return self._program

    def _drop_spares(self) -> None:
        """Replace the spares by processes that keep the judge's uid."""
        self._keep_uid = True
        with self.pool.alone():
            self.pool.drop_spares()

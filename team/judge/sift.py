"""Many variants of one change screened in few processes: each checked, then timed beside the base. Trusted.

A race gives every variant fresh processes in every round; on a GPU a context takes longer than all that is wanted of
most variants. Here up to ``GROUP`` variants and the base share one process. Each is checked on every workload against
the float64 reference, then timed in laps (``team.judge.laps``); half of a group goes on after the first laps. The
fastest of all groups, the finalists, meet in one more process, so that the last word compares what was measured
together.

Why they may share a process: the variants of an experiment have one author, so one of them can only cheat for the
others, by slowing the base, by answering from what a sibling left in memory, or by killing it. None of that is believed
any further: a screening picks whom to measure, feeds the sampler, and names the runners-up that exploiters may
start from. Whatever is picked, or made of a runner-up, is checked in full and compared with the base by the law in
processes of its own, where no sibling is: what lived off one is slow there, and what was fast because it was wrong is
INCORRECT (``tests/team/judge/test_sift.py`` has such a pair). The judge's answers are no more within reach than in any
runner: what is lent are inputs and slots for outputs. Nobody else's variants are ever loaded beside these, and the base
is another copy of it than the one that the comparison loads.

A variant whose process dies takes its siblings along: they go on in another one without it, and it gets a second chance
alone, as somebody else may have wrecked the process. A wrong answer has no such excuse: it is out.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import log

from protocol.messages import Outcome
from team.judge.artifact import Artifact
from team.judge.bench import Stand
from team.judge.check import Record
from team.judge.failures import Failed
from team.judge.ground import Ground
from team.judge.kernels import Kernel
from team.judge.laps import Laps, Sifted, Standing
from team.judge.timeline import TIMELINE
from team.tasks.task import Task

GROUP = 32  # variants that share a process: a context for each would cost more than all the rest
LOADED = 48 << 20  # bytes of kernels in one process; they travel in one message
LAPS = 2  # of a group before its slower half leaves, and again of those that are left
FINAL_LAPS = 8  # of the finalists
SLOW = 3.0  # times the fastest of its group by the check's own clock: not worth a lap


class _Broken(Exception):
    """The process is not to be used any more. ``by`` did it; None when that cannot be said."""

    def __init__(self, by: Sifted | None, failed: Failed) -> None:
        super().__init__(failed.sentence)
        self.by = by
        self.failed = failed


class Sift:
    """Screens variants of one base. ``record`` is the base's check; ``still_wanted`` raises when nobody waits."""

    def __init__(
        self, ground: Ground, task: Task, base: Kernel, record: Record, still_wanted: Callable[[], None]
    ) -> None:
        self._bench = ground.bench
        self._task = task
        self._base = base.artifact
        self._still_wanted = still_wanted
        self._laps = Laps(ground, task, record)

    def sift(self, ones: Sequence[Sifted]) -> None:
        """Check and time all of them; the finalists once more, together."""
        for group in _grouped(ones, LOADED - _size(self._base)):
            self._measure(group, LAPS, halve=True)
        running = sorted((one for one in ones if one.failed is None), key=self._gain, reverse=True)
        finalists = running[: self._task.spec.policy.finalists]
        if len(finalists) > 1:
            self._measure(finalists, FINAL_LAPS, halve=False)

    def _measure(self, group: Sequence[Sifted], laps: int, halve: bool) -> None:
        """One group, in as many processes as it takes."""
        waiting = list(group)
        while waiting:
            self._still_wanted()
            together = [one for one in waiting if not one.suspect] or waiting[:1]
            try:
                self._together(together, laps, halve)
            except _Broken as broken:
                _blame(together, broken)
            else:
                waiting = [one for one in waiting if one not in together]
            waiting = [one for one in waiting if one.failed is None]

    def _together(self, group: Sequence[Sifted], laps: int, halve: bool) -> None:
        """Check those that nobody has checked yet and time all, in one process; raises ``_Broken``."""
        self._bench.settle(1)
        self._bench.provide(self._laps.room)
        with TIMELINE.stage("sift", f"{len(group)} variants"), self._lined_up(group) as (base, standing):
            running = self._checked(standing)
            self._laps.stage(base)
            running = [each for each in running if _guarded(each[0], lambda: self._laps.stage(each[1]))]  # noqa: B023
            for turn in range(2 if halve else 1):
                for lap in range(laps):
                    self._laps.lap(base, running, turn + lap, _guarded)
                running = [each for each in running if each[0].failed is None]
                running = sorted(running, key=lambda each: self._gain(each[0]), reverse=True)
                running = running[: -(-len(running) // 2)]

    def _checked(self, standing: Sequence[Standing]) -> list[Standing]:
        """Those that are right and that the check's clock does not show far behind; the latter keep what it showed."""
        right: list[Standing] = []
        for one, stand in standing:

            def check(one: Sifted = one, stand: Stand = stand) -> None:
                self._laps.check(one, stand)

            if one.checks or _guarded(one, check):
                right.append((one, stand))
                one.pairs = self._laps.glanced(one)
        least = max((self._gain(one) for one, _ in right), default=0.0) - log(SLOW)
        near = [each for each in right if self._gain(each[0]) >= least]
        for one, _ in near:
            one.pairs = {}
        return near

    def _gain(self, one: Sifted) -> float:
        return self._laps.gain(one.pairs)

    @contextmanager
    def _lined_up(self, group: Sequence[Sifted]) -> Iterator[tuple[Stand, list[Standing]]]:
        try:
            with self._bench.lineup(self._task, self._base, [one.kernel.artifact for one in group]) as (base, *stands):
                yield base, list(zip(group, stands, strict=True))
        except Failed as failed:  # a loader that refused one of them, or a base that died of its guests
            raise _Broken(None, failed) from failed


def _guarded(one: Sifted, act: Callable[[], None]) -> bool:
    """Do something with a variant; False when it was wrong and is out, ``_Broken`` when the process suffered."""
    try:
        act()
    except Failed as failed:
        if failed.side == "base" or failed.outcome is not Outcome.INCORRECT:
            raise _Broken(one if failed.side == "candidate" else None, failed) from failed
        one.failed = failed
    return one.failed is None


def _blame(together: Sequence[Sifted], broken: _Broken) -> None:
    """Whoever was alone in a process that broke is out. Of several, one that crashed is a suspect and is tried alone,
    as are all of them when nobody can be named; for anything else there is no excuse."""
    failed = broken.failed
    if len(together) == 1:
        together[0].failed = Failed("candidate", failed.outcome, failed.detail, failed.workload)
    elif broken.by is None:
        for one in together:
            one.suspect = True
    elif failed.outcome is Outcome.CRASHED:
        broken.by.suspect = True
    else:
        broken.by.failed = failed


def _grouped(ones: Sequence[Sifted], room: int) -> Iterator[list[Sifted]]:
    """In order, as many together as ``GROUP`` and ``room`` (bytes) allow, but one in any case."""
    group, size = list[Sifted](), 0
    for one in ones:
        more = _size(one.kernel.artifact)
        if group and (len(group) == GROUP or size + more > room):
            yield group
            group, size = [], 0
        group.append(one)
        size += more
    if group:
        yield group


def _size(artifact: Artifact) -> int:
    return artifact.path.stat().st_size

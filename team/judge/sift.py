"""Many variants of one change screened in few processes: each checked, then timed beside the base. Trusted.

A race gives every variant fresh processes in every round; on a GPU a context takes longer than all that is wanted of
most variants. Here up to ``GROUP`` variants and the base share one process. Each is checked on every workload against
the float64 reference; then laps follow: the base and every variant once, in a random order, on fresh inputs, with
outputs poisoned before each and launches of each compared with the reference, drawn by lot after they ran. Half of a
group goes on after the first laps. The fastest of all groups, the finalists, meet in one more process, so that the last
word compares what was measured together.

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

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import log

from protocol.messages import Measurement, Outcome, Pair, Restart, WorkloadCheck
from protocol.samples import normalised
from team.judge.arena import Layout, Lease
from team.judge.bench import Stand
from team.judge.build import Artifact
from team.judge.check import PLAIN_LAUNCHES, Deadlines, Record
from team.judge.evidence import Evidence
from team.judge.failures import Failed
from team.judge.ground import Ground
from team.judge.inputs import shaped
from team.judge.kernels import Kernel
from team.judge.pairs import CHECKED
from team.judge.timeline import TIMELINE
from team.tasks.spec import Workload
from team.tasks.task import Task, Tensors

GROUP = 32  # variants that share a process: a context for each would cost more than all the rest
LOADED = 48 << 20  # bytes of kernels in one process; they travel in one message
LAPS = 2  # of a group before its slower half leaves, and again of those that are left
FINAL_LAPS = 8  # of the finalists
SLOW = 3.0  # times the fastest of its group by the check's own clock: not worth a lap
HEADROOM = 2.0  # times the launches that the base's speed asks for, since variants are there to be faster
CHECK_SET, TIMED_SET = 1, 2


@dataclass
class Sifted:
    """One variant: its build, what was seen of it, and why it is out."""

    kernel: Kernel
    evidence: Evidence
    checks: dict[str, WorkloadCheck] = field(default_factory=dict[str, WorkloadCheck])
    launch_ns: dict[str, float] = field(default_factory=dict[str, float])
    pairs: dict[str, list[Pair]] = field(default_factory=dict[str, list[Pair]])
    failed: Failed | None = None
    suspect: bool = False

    @property
    def checked(self) -> bool:
        """Whether it was right on every workload."""
        return bool(self.checks)

    @property
    def measured(self) -> Measurement:
        """Its last word: what was seen of it last, or why it is out."""
        self.evidence.checks = tuple(self.checks.values())
        if self.failed is not None:
            return self.evidence.measurement(self.failed.outcome, self.failed.sentence, self.failed.workload)
        self.evidence.restarts = [Restart(pairs={name: tuple(pairs) for name, pairs in self.pairs.items()})]
        return self.evidence.measurement(Outcome.MEASURED)


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
        self._ground = ground
        self._task = task
        self._base = base.artifact
        self._record = record
        self._still_wanted = still_wanted
        self._policy = task.spec.policy
        self._source = ground.inputs(task)
        self._weights = normalised({one.name: one.weight for one in task.workloads})
        counts = {one.name: self._launches(one) for one in task.workloads}
        arrange, dice = ground.bench.arrange, self._source.dice
        self._check_layouts = [arrange(task, one, PLAIN_LAUNCHES, dice) for one in task.all_workloads]
        self._layouts = [arrange(task, one, counts[one.name], dice) for one in task.workloads]

    def _launches(self, workload: Workload) -> int:
        first = self._ground.first_launches(self._task, self._record)[workload.name]
        return max(1, min(int(HEADROOM * first), self._ground.room(self._task, workload)))

    def sift(self, ones: Sequence[Sifted]) -> None:
        """Check and time all of them; the finalists once more, together."""
        for group in _grouped(ones, LOADED - _size(self._base)):
            self._measure(group, LAPS, halve=True)
        running = sorted((one for one in ones if one.failed is None), key=self._gain, reverse=True)
        finalists = running[: self._policy.finalists]
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
                self._blame(together, broken)
            else:
                waiting = [one for one in waiting if one not in together]
            waiting = [one for one in waiting if one.failed is None]

    def _blame(self, together: Sequence[Sifted], broken: _Broken) -> None:
        """Whoever broke a process is out when it was alone there or took part in no accident, else a suspect."""
        if broken.by is None or len(together) == 1:
            for one in together:
                one.suspect = True
                if len(together) == 1:
                    one.failed = Failed(
                        "candidate", broken.failed.outcome, broken.failed.detail, broken.failed.workload
                    )
        elif broken.failed.outcome is Outcome.CRASHED:
            broken.by.suspect = True
        else:
            broken.by.failed = broken.failed

    def _together(self, group: Sequence[Sifted], laps: int, halve: bool) -> None:
        """Check those that nobody has checked yet and time all, in one process; raises ``_Broken``."""
        bench = self._ground.bench
        bench.settle(1)
        bench.provide(max(layout.end for layout in (*self._check_layouts, *self._layouts)))
        for one in group:
            one.pairs = {}
        with TIMELINE.stage("sift", f"{len(group)} variants"), self._lined_up(group) as (base, stands):
            running = [(one, stand) for one, stand in zip(group, stands, strict=True) if self._may_race(one, stand)]
            running = self._worth_timing(running)
            lanes = {stand.place: lanes for stand, lanes in self._staged(base, running)}
            running = [(one, stand) for one, stand in running if one.failed is None]
            for turn in range(2 if halve else 1):
                for lap in range(laps):
                    self._lap(base, running, lanes, lap + turn)
                    running = [(one, stand) for one, stand in running if one.failed is None]
                running = sorted(running, key=lambda each: self._gain(each[0]), reverse=True)
                running = running[: -(-len(running) // 2)]

    @contextmanager
    def _lined_up(self, group: Sequence[Sifted]) -> Iterator[tuple[Stand, Sequence[Stand]]]:
        artifacts: list[Artifact] = [one.kernel.artifact for one in group]
        try:
            with self._ground.bench.lineup(self._task, self._base, artifacts) as (base, *stands):
                yield base, stands
        except Failed as failed:  # a loader that refused one of them, or a base that died of its guests
            raise _Broken(None, failed) from failed

    def _guarded(self, one: Sifted, act: Callable[[], None]) -> bool:
        """Do something with a variant; False when it was wrong and is out, ``_Broken`` when the process suffered."""
        try:
            act()
        except Failed as failed:
            if failed.side == "base" or failed.outcome is not Outcome.INCORRECT:
                raise _Broken(one if failed.side == "candidate" else None, failed) from failed
            one.failed = failed
        return one.failed is None

    # ------------------------------------------------------------ checked

    def _may_race(self, one: Sifted, stand: Stand) -> bool:
        return one.checked or self._guarded(one, lambda: self._check(one, stand))

    def _check(self, one: Sifted, stand: Stand) -> None:
        """The plain profile on every workload."""
        found: dict[str, WorkloadCheck] = {}
        deadlines = Deadlines(self._policy, self._record)
        with TIMELINE.stage("glance"):
            for layout in self._check_layouts:
                workload = layout.workload
                stand.workload = workload.name
                inputs = self._source.timed(workload, layout.launches)
                wants = [
                    self._task.reference(workload, shaped(self._task, workload, inputs, launch), double=True)
                    for launch in range(layout.launches)
                ]
                lease = stand.stage(CHECK_SET, layout, layout.launches)
                lease.fill(inputs)
                lease.poison(self._source.generator)
                sample = stand.go(CHECK_SET, deadlines.of(workload, layout.launches))
                errors = dict(stand.inspect(lease, inputs, wants))
                worst = max(errors.values(), default=0.0)
                name = workload.name
                found[name] = WorkloadCheck(workload=name, checks=layout.launches, worst=worst, outputs=errors)
                one.launch_ns[name] = max(1.0, sample.claimed_ns / layout.launches)
        one.checks = found

    def _worth_timing(self, running: Sequence[tuple[Sifted, Stand]]) -> list[tuple[Sifted, Stand]]:
        """Those that the check's clock does not show far behind; the others keep what it showed."""
        guesses = [self._glanced(one) for one, _ in running]
        least = max(guesses, default=0.0) - log(SLOW)
        for (one, _), guess in zip(running, guesses, strict=True):
            if guess < least:
                for name in self._weights:
                    ours, theirs = self._record.launch_ns[name], one.launch_ns[name]
                    one.pairs[name] = [Pair(candidate_first=False, base_ns=ours, candidate_ns=theirs)]
        return [each for each, guess in zip(running, guesses, strict=True) if guess >= least]

    def _glanced(self, one: Sifted) -> float:
        """Log gain by the clock of the checks, the base's own and this one's."""
        return sum(
            weight * log(self._record.launch_ns[name] / one.launch_ns[name]) for name, weight in self._weights.items()
        )

    # ------------------------------------------------------------ timed

    def _staged(
        self, base: Stand, running: Sequence[tuple[Sifted, Stand]]
    ) -> Iterator[tuple[Stand, list[tuple[Layout, Lease]]]]:
        """Everybody's launches laid out on the same slots, which they are lent in turn."""
        for one, stand in [(None, base), *running]:
            lanes: list[tuple[Layout, Lease]] = []

            def act(stand: Stand = stand, lanes: list[tuple[Layout, Lease]] = lanes) -> None:
                for number, layout in enumerate(self._layouts):
                    stand.workload = layout.workload.name
                    lanes.append((layout, stand.stage(TIMED_SET + number, layout, layout.launches)))

            if one is None:
                act()
                yield stand, lanes
            elif self._guarded(one, act):
                yield stand, lanes

    def _lap(
        self,
        base: Stand,
        running: Sequence[tuple[Sifted, Stand]],
        lanes: Mapping[int, list[tuple[Layout, Lease]]],
        lap: int,
    ) -> None:
        """Everybody once on every workload, the base before or after all others in turn."""
        for number, layout in enumerate(self._layouts):
            name = layout.workload.name
            lot = _Lot(self._task, layout, self._source.timed(layout.workload, layout.launches))
            order = self._source.dice.sample(running, len(running))
            seen: list[tuple[Sifted, float]] = []
            ours = 0.0 if lap % 2 else self._sample(base, lanes[0][number][1], number, lot)
            for one, stand in order:
                lease = lanes[stand.place][number][1]

                def act(one: Sifted = one, stand: Stand = stand, lease: Lease = lease) -> None:
                    seen.append((one, self._sample(stand, lease, number, lot)))  # noqa: B023

                self._guarded(one, act)
            ours = ours or self._sample(base, lanes[0][number][1], number, lot)
            for one, theirs in seen:
                pair = Pair(candidate_first=bool(lap % 2), base_ns=ours, candidate_ns=theirs)
                one.pairs.setdefault(name, []).append(pair)

    def _sample(self, stand: Stand, lease: Lease, number: int, lot: "_Lot") -> float:
        """One sample of one side, nanoseconds per launch; a few of its launches are checked."""
        stand.workload = lot.layout.workload.name
        lease.fill(lot.inputs)
        lease.poison(self._source.generator)
        known = self._record if stand.side == "candidate" else None
        deadline = Deadlines(self._policy, known).of(lot.layout.workload, lot.layout.launches)
        sample = stand.go(TIMED_SET + number, deadline)
        rows = self._source.dice.sample(range(lot.layout.launches), min(lot.layout.launches, CHECKED))
        stand.inspect_some(lease, lot.inputs, {row: lot.want(row) for row in rows})
        return max(1.0, sample.claimed_ns / lot.layout.launches)

    def _gain(self, one: Sifted) -> float:
        """Mean log gain of what was timed last: it orders, and decides nothing else."""
        return sum(
            weight * sum(log(pair.base_ns / pair.candidate_ns) for pair in one.pairs[name]) / len(one.pairs[name])
            for name, weight in self._weights.items()
        )


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


class _Lot:
    """The inputs of one lap on one workload, and the right answers of the launches that somebody is asked for."""

    def __init__(self, task: Task, layout: Layout, inputs: Tensors) -> None:
        self._task = task
        self.layout = layout
        self.inputs = inputs
        self._wants: dict[int, Tensors] = {}

    def want(self, row: int) -> Tensors:
        """The right outputs of one launch."""
        if row not in self._wants:
            workload = self.layout.workload
            self._wants[row] = self._task.reference(workload, shaped(self._task, workload, self.inputs, row))
        return self._wants[row]

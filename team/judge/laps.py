"""What happens in one process of a screening: variants checked, and laps of all of them beside the base. Trusted.

A lap is one sample of the base and of every variant on each workload, in a random order, on the same fresh inputs, with
outputs poisoned before each and some launches of each compared with the reference, drawn by lot after they ran. All are
lent the same slots in turn. ``team.judge.sift`` says why they may share a process.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log

from protocol.messages import Measurement, Outcome, Restart, WorkloadCheck
from protocol.pairs import Pair
from protocol.samples import normalised
from team.judge.arena import Lease
from team.judge.bench import Stand
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

HEADROOM = 2.0  # times the launches that the base's speed asks for, since variants are there to be faster
CHECK_SET, TIMED_SET = 1, 2  # the latter is the first workload's; the others' follow


@dataclass
class Sifted:
    """One variant: its build, what was seen of it, and why it is out. A suspect was there when a process died."""

    kernel: Kernel
    evidence: Evidence
    checks: dict[str, WorkloadCheck] = field(default_factory=dict[str, WorkloadCheck])
    launch_ns: dict[str, float] = field(default_factory=dict[str, float])
    pairs: dict[str, list[Pair]] = field(default_factory=dict[str, list[Pair]])
    failed: Failed | None = None
    suspect: bool = False

    @property
    def measured(self) -> Measurement:
        """Its last word: what was seen of it last, or why it is out."""
        self.evidence.checks = tuple(self.checks.values())
        if self.failed is not None:
            return self.evidence.measurement(self.failed.outcome, self.failed.sentence, self.failed.workload)
        self.evidence.restarts = [Restart.of({name: tuple(pairs) for name, pairs in self.pairs.items()})]
        return self.evidence.measurement(Outcome.MEASURED)


Standing = tuple[Sifted, Stand]
Guard = Callable[[Sifted, Callable[[], None]], bool]
"""Does something with a variant; False when that is out."""


class Laps:
    """Checks and times what stands in a process. ``record`` is the base's check."""

    def __init__(self, ground: Ground, task: Task, record: Record) -> None:
        self._task = task
        self._record = record
        self._source = ground.inputs(task)
        self._weights = normalised({one.name: one.weight for one in task.workloads})
        self._leases: dict[tuple[int, int], Lease] = {}
        first, arrange, dice = ground.first_launches(task, record), ground.bench.arrange, self._source.dice

        def launches(workload: Workload) -> int:
            return max(1, min(int(HEADROOM * first[workload.name]), ground.room(task, workload)))

        self._glances = [arrange(task, one, PLAIN_LAUNCHES, dice) for one in task.all_workloads]
        self._layouts = [arrange(task, one, launches(one), dice) for one in task.workloads]

    @property
    def room(self) -> int:
        """Bytes of an arena for all of it."""
        return max(layout.end for layout in (*self._glances, *self._layouts))

    def check(self, one: Sifted, stand: Stand) -> None:
        """The plain profile on every workload; raises ``Failed``."""
        found: dict[str, WorkloadCheck] = {}
        with TIMELINE.stage("glance"):
            for layout in self._glances:
                workload, count = layout.workload, layout.launches
                stand.workload = workload.name
                inputs = self._source.timed(workload, count)
                wants = [self._want(workload, inputs, launch, double=True) for launch in range(count)]
                lease = stand.stage(CHECK_SET, layout, count)
                lease.fill(inputs)
                lease.poison(self._source.generator)
                sample = stand.go(CHECK_SET, self._deadline(stand, workload, count))
                errors = dict(stand.inspect(lease, inputs, wants))
                seen = WorkloadCheck(
                    workload=workload.name, checks=count, worst=max(errors.values(), default=0.0), outputs=errors
                )
                found[workload.name] = seen
                one.launch_ns[workload.name] = max(1.0, sample.claimed_ns / count)
        one.checks = found

    def glanced(self, one: Sifted) -> dict[str, list[Pair]]:
        """What the clock of the checks says of a variant beside the base."""
        ours, theirs = self._record.launch_ns, one.launch_ns
        return {
            name: [Pair(candidate_first=False, base_ns=ours[name], candidate_ns=theirs[name])] for name in self._weights
        }

    def stage(self, stand: Stand) -> None:
        """Lay out one side's launches on every workload."""
        for number, layout in enumerate(self._layouts):
            stand.workload = layout.workload.name
            self._leases[stand.place, number] = stand.stage(TIMED_SET + number, layout, layout.launches)

    def lap(self, base: Stand, running: Sequence[Standing], number: int, guard: Guard) -> None:
        """Everybody once on every workload; the base before all others, in every other lap after them."""
        for place in range(len(self._layouts)):
            self._round(base, running, place, bool(number % 2), guard)

    def gain(self, pairs: dict[str, list[Pair]]) -> float:
        """Mean log gain: it orders variants, and decides nothing else."""
        return sum(
            weight * sum(log(pair.base_ns / pair.candidate_ns) for pair in pairs[name]) / len(pairs[name])
            for name, weight in self._weights.items()
        )

    def _round(self, base: Stand, running: Sequence[Standing], place: int, base_last: bool, guard: Guard) -> None:
        layout = self._layouts[place]
        workload, inputs = layout.workload, self._source.timed(layout.workload, layout.launches)
        lot = _Lot(place, workload, layout.launches, inputs, lambda row: self._want(workload, inputs, row))
        seen: list[tuple[Sifted, float]] = []
        ours = 0.0 if base_last else self._sample(base, lot)
        for one, stand in self._source.dice.sample(running, len(running)):

            def act(one: Sifted = one, stand: Stand = stand) -> None:
                seen.append((one, self._sample(stand, lot)))

            if one.failed is None:
                guard(one, act)
        ours = ours or self._sample(base, lot)
        for one, theirs in seen:
            pair = Pair(candidate_first=base_last, base_ns=ours, candidate_ns=theirs)
            one.pairs.setdefault(lot.workload.name, []).append(pair)

    def _sample(self, stand: Stand, lot: "_Lot") -> float:
        """One sample of one side, nanoseconds per launch; a few of its launches are checked."""
        stand.workload, lease = lot.workload.name, self._leases[stand.place, lot.place]
        lease.fill(lot.inputs)
        lease.poison(self._source.generator)
        sample = stand.go(TIMED_SET + lot.place, self._deadline(stand, lot.workload, lot.launches))
        rows = self._source.dice.sample(range(lot.launches), min(lot.launches, CHECKED))
        stand.inspect_some(lease, lot.inputs, {row: lot.want(row) for row in rows})
        return max(1.0, sample.claimed_ns / lot.launches)

    def _deadline(self, stand: Stand, workload: Workload, launches: int) -> float:
        known = self._record if stand.side == "candidate" else None
        return Deadlines(self._task.spec.policy, known).of(workload, launches)

    def _want(self, workload: Workload, inputs: Tensors, launch: int, double: bool = False) -> Tensors:
        return self._task.reference(workload, shaped(self._task, workload, inputs, launch), double=double)


@dataclass
class _Lot:
    """The inputs of one lap on one workload, and the right answers of the launches that somebody is asked for."""

    place: int
    workload: Workload
    launches: int
    inputs: Tensors
    answer: Callable[[int], Tensors]
    known: dict[int, Tensors] = field(default_factory=dict[int, Tensors])

    def want(self, row: int) -> Tensors:
        """The right outputs of one launch, computed once."""
        if row not in self.known:
            self.known[row] = self.answer(row)
        return self.known[row]

"""The timing loop: two runners in turn on the same inputs, restarted every few pairs. Trusted.

One sample: the judge copies fresh private inputs into the slots of one side, poisons its outputs, resumes that side's
runner for one request, stops it, and does the same with the other side. Then it draws launches of both and checks them:
nobody can know before which ones. So a launch that did no work, or finished late, is wrong rather than fast. Which side
goes first, where the slots lie, which arena is whose and the order of the workloads are all drawn anew.

Regime: inputs are freshly written by the judge's core, as by a producer just before; the same for both sides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import median

from protocol.messages import Outcome, Restart
from protocol.pairs import Pair
from protocol.policy import Policy
from team.judge.arena import Layout, Lease, slot_size
from team.judge.artifact import Artifact
from team.judge.bench import IDLE_SET, Bench, Stand, random_sides
from team.judge.check import Deadlines, Record
from team.judge.clocks import ClockAudit, below_floor, complaint
from team.judge.failures import Failed
from team.judge.inputs import InputSource, shaped
from team.judge.runner.process import START_S, Sample
from team.tasks.spec import Workload
from team.tasks.task import Task, Tensors

TIMED_SET = 1
AUDITABLE_NS = 1_000_000  # shortest sample: an exchange costs 50-150 us give or take 25, and must not hide a lie
MAX_LAUNCHES = 4096
CHECKED = 2  # launches of every sample whose outputs are compared, drawn at random after they have run
MAX_ARENA = 512 << 20  # bytes
HEADROOM = 2  # slots reserved beyond what the first idea of the speed asks for
MAX_GROWTHS = 3
SPARE = 4  # disturbed pairs that may be repeated in any case,
REPEATED = 0.25  # and the share beyond; a machine that is never calm must not double the time


@dataclass
class Tally:
    """What a contest used up, for the record: kernel nanoseconds and disturbed pairs thrown away."""

    kernel_ns: float = 0.0
    pairs: int = 0
    discarded: int = 0
    launching: dict[str, str] = field(default_factory=dict[str, str])
    regimes: dict[str, dict[str, tuple[float, float]]] = field(
        default_factory=dict[str, dict[str, tuple[float, float]]]
    )


@dataclass
class Lane:
    """One workload laid out on both sides."""

    workload: Workload
    layout: Layout
    base: Lease
    candidate: Lease


@dataclass
class Contest:
    """Base against candidate on one bench. ``extra`` launches more on the base's side plant a known difference."""

    bench: Bench
    task: Task
    source: InputSource
    policy: Policy
    base: Artifact
    candidate: Artifact
    record: Record
    launches: dict[str, int]
    workloads: tuple[Workload, ...]
    extra: int = 0
    tally: Tally = field(default_factory=Tally)
    audits: dict[str, ClockAudit] = field(default_factory=dict)
    suspicion: tuple[str, str] = ("", "")

    def restart(self, pairs: int) -> Restart:
        """``pairs`` pairs of every workload with fresh processes. One that dies once is given a second chance."""
        try:
            return self._restart(pairs)
        except Failed as failed:
            if failed.outcome is not Outcome.CRASHED:
                raise
        return self._restart(pairs)

    def complaint(self) -> tuple[str, str]:
        """The workload, and the clause, on which the candidate's clock cannot be believed; empty when it can."""
        if self.suspicion[1] or not self.audits:
            return self.suspicion
        names = [workload.name for workload in self.workloads]
        return complaint(self.audits["base"], self.audits["candidate"], names, self.policy)

    def acquit(self) -> None:
        """Forget what was held against the candidate; the next restarts are audited on their own."""
        self.audits, self.suspicion = {}, ("", "")

    def _restart(self, pairs: int) -> Restart:
        for side in ("base", "candidate"):
            self.audits.setdefault(side, ClockAudit(len(self.bench.device.kernel_cores)))
        slots = [(slot_size(self.task, one), self._slots(one)) for one in self.workloads]
        capacity = self.bench.provide(arena_bytes(slots, self.extra, MAX_ARENA))
        first, second = random_sides(self.source.dice)
        order = self.source.dice.sample(self.workloads, len(self.workloads))
        with (
            self.bench.stand("base", self.task, self.base, first) as base,
            self.bench.stand("candidate", self.task, self.candidate, second) as candidate,
        ):
            return Restart.of({one.name: self._block(base, candidate, one, pairs, capacity) for one in order})

    def _slots(self, workload: Workload) -> int:
        return self.launches[workload.name] + self.extra

    def _block(self, base: Stand, candidate: Stand, workload: Workload, pairs: int, capacity: int) -> tuple[Pair, ...]:
        """Warm up, make the samples long enough, then measure; disturbed pairs are taken again, within bounds."""
        base.workload = candidate.workload = workload.name
        lane = self._settle(base, candidate, workload, capacity)
        self._idle(base, candidate, lane)
        measured: list[Pair] = []
        while len(measured) < pairs:
            pair, calm = self._pair(base, candidate, lane)
            if calm or self.tally.discarded > SPARE + REPEATED * self.tally.pairs:
                measured.append(pair)
                self.tally.pairs += 1
            else:
                self.tally.discarded += 1
        self._suspect_impossible(workload, measured)
        return tuple(measured)

    def _idle(self, base: Stand, candidate: Stand, lane: Lane) -> None:
        """What an exchange costs that launches nothing, just after the slots were filled as for a sample."""
        inputs = self.source.timed(lane.workload, lane.layout.launches)
        for stand, lease in ((base, lane.base), (candidate, lane.candidate)):
            lease.fill(inputs)
            lease.poison(self.source.generator)
            self.audits[stand.side].add_idle(stand.go(IDLE_SET, START_S))

    def _settle(self, base: Stand, candidate: Stand, workload: Workload, capacity: int) -> Lane:
        """Warm both sides up with checked launches; add launches until the faster side's sample is long enough."""
        for _ in range(MAX_GROWTHS):
            lane = self._lane(base, candidate, workload)
            times = [sample.claimed_ns for sample in self._turns(base, candidate, lane).values()]
            shortest = max(min(times), 1)
            most = min(MAX_LAUNCHES, capacity // slot_size(self.task, workload))
            grown = min(ceil(self.launches[workload.name] * shortest_sample(self.policy) / shortest), most)
            if self.extra or shortest >= 0.8 * shortest_sample(self.policy) or grown <= self.launches[workload.name]:
                return lane
            self.launches[workload.name] = grown
        return self._lane(base, candidate, workload)

    def _lane(self, base: Stand, candidate: Stand, workload: Workload) -> Lane:
        layout = self.bench.arrange(self.task, workload, self._slots(workload), self.source.dice)
        ours, theirs = (stand.stage(TIMED_SET, layout, self._count(stand, layout)) for stand in (base, candidate))
        return Lane(workload, layout, ours, theirs)

    def _count(self, stand: Stand, layout: Layout) -> int:
        """Launches of one side: the planted extra is the base's alone."""
        return layout.launches - (self.extra if stand.side == "candidate" else 0)

    def _pair(self, base: Stand, candidate: Stand, lane: Lane) -> tuple[Pair, bool]:
        """One pair, and whether both sides ran undisturbed."""
        samples = self._turns(base, candidate, lane)
        calm = [self.audits[side].add(lane.workload.name, sample) for side, sample in samples.items()]
        launches, cost = self.launches[lane.workload.name], self.audits["base"].cost()
        share = self.policy.clock_disagreement
        calm += [not self.audits[side].outlies(sample, cost, share) for side, sample in samples.items()]
        times = {side: self.audits[side].own_time(sample, cost) / launches for side, sample in samples.items()}
        first = next(iter(samples)) == "candidate"
        pair = Pair(candidate_first=first, base_ns=times["base"], candidate_ns=times["candidate"])
        return pair, all(calm)

    def _turns(self, base: Stand, candidate: Stand, lane: Lane) -> dict[str, Sample]:
        """Both sides once, in random order, on the same fresh inputs; then everything is checked."""
        inputs = self.source.timed(lane.workload, lane.layout.launches)
        sides = self.source.dice.sample([(base, lane.base), (candidate, lane.candidate)], 2)
        samples: dict[str, Sample] = {}
        for stand, lease in sides:
            lease.fill(inputs)
            lease.poison(self.source.generator)
            known = self.record if stand.side == "candidate" else None
            deadline = Deadlines(self.policy, known).of(lane.workload, lane.layout.launches)
            samples[stand.side] = stand.go(TIMED_SET, deadline)
            self.tally.kernel_ns += samples[stand.side].claimed_ns
        wants = self._wants(lane, inputs, self._count(candidate, lane.layout))
        base.inspect_some(lane.base, inputs, wants)
        candidate.inspect_some(lane.candidate, inputs, wants)
        return samples

    def _wants(self, lane: Lane, inputs: Tensors, launches: int) -> dict[int, Tensors]:
        """The right outputs of the launches that are checked, drawn only now, when every one of them has run.

        A cheat on one launch of n in every sample is found with probability 1 - (1 - CHECKED / n)^samples: for 20
        launches 81 % after the 16 samples of two restarts, 99.9 % after the 64 of a keep at the third look.
        """
        chosen = self.source.dice.sample(range(launches), min(launches, CHECKED))
        return {
            one: self.task.reference(lane.workload, shaped(self.task, lane.workload, inputs, one)) for one in chosen
        }

    def _suspect_impossible(self, workload: Workload, pairs: list[Pair]) -> None:
        """Suspect a candidate that is faster than the device's measured roofs allow."""
        peaks: Mapping[str, float] = self.bench.device.info().peaks
        dtype = self.task.outputs[0].parameter.dtype
        typical = median(pair.candidate_ns for pair in pairs)
        model = self.task.floor(workload) if peaks else {}
        clause = below_floor(model, dict(peaks), dtype, self.policy.floor_margin, typical)
        if clause and not self.suspicion[1]:
            self.suspicion = workload.name, clause


def shortest_sample(policy: Policy) -> int:
    """Nanoseconds that a sample must last at least: by the law, and to be worth auditing."""
    return max(policy.sample_ns, AUDITABLE_NS)


def first_launches(policy: Policy, task: Task, *records: Record) -> dict[str, int]:
    """Launches per sample from the speeds that the checks saw; the timing loop corrects them."""
    result: dict[str, int] = {}
    for workload in task.workloads:
        fastest = min(record.launch_ns[workload.name] for record in records)
        wanted = ceil(shortest_sample(policy) / max(fastest, 1.0))
        result[workload.name] = max(1, min(MAX_LAUNCHES, room(task, workload), wanted))
    return result


def arena_bytes(slots: Sequence[tuple[int, int]], extra: int, limit: int) -> int:
    """Bytes of an arena for workloads of which each has (bytes, number) of slots: what they ask for within the limit,
    but one launch and the ``extra`` ones are timed however large their buffers are."""
    wanted = max(size * (number + HEADROOM) for size, number in slots)
    least = max(size for size, _ in slots) * (1 + extra + HEADROOM)
    return max(least, min(wanted, limit))


def room(task: Task, workload: Workload) -> int:
    """Launches of this workload whose buffers fit into an arena; at least one."""
    return max(1, MAX_ARENA // slot_size(task, workload))

"""The timing loop on a GPU: two runners replay their graphs in turn over lent slots. Trusted.

One sample: the judge fills the slots with fresh private inputs, poisons the outputs, empties the L2 by reading past it,
takes every persisting line away, and lets one side replay its graph once; every launch is checked against the
reference. Then the same for the other side, on the same inputs and the same memory: where memory lies on the card
changes a time by several per cent, and neither side can be luckier. A side that stands still can neither read nor write
(its process is stopped, and nothing of it may go on computing; that is checked). Which side goes first, where the slots
lie and the order of the workloads are drawn anew; that it makes no difference is a GPU test.
"""

from dataclasses import dataclass, field
from math import ceil
from statistics import median

from protocol.messages import Outcome, Restart
from protocol.pairs import Pair
from protocol.policy import Policy
from team.devices.telemetry import disturbance
from team.judge.arena import slot_size
from team.judge.artifact import Artifact
from team.judge.bench import IDLE_SET
from team.judge.check import Deadlines, Record
from team.judge.clocks import below_floor
from team.judge.cuda.bench import ALIGNMENT, CudaBench, CudaStand
from team.judge.cuda.clocks import LONG_NS, LONG_REPLAYS, WallAudit, disagreement, slope_clause
from team.judge.cuda.inputs import CudaInputs
from team.judge.cuda.process import REGIMES, Regime
from team.judge.cuda.references import References
from team.judge.failures import Failed
from team.judge.pairs import MAX_GROWTHS, Lane, Tally, arena_bytes
from team.judge.runner.process import START_S, Sample
from team.judge.timeline import TIMELINE
from team.tasks.spec import Workload
from team.tasks.task import Task

TIMED_SET = 1
MAX_LAUNCHES = 1024
SAMPLE_NS = 400_000  # shortest sample; the first launches of one run from an emptied L2 and are not like the rest
STEADY_NS = 1_000_000  # an H200 gets slower by a sixth somewhere between 0.4 and 4 ms of hard work
FEWEST = 20  # launches of which one more is 5 %
ARENA_SHARE = 0.04  # of the device memory; what the judge computes with needs several times that
DISTURBED_TRIES = 3
ALARMS = 3  # slopes in a row that must be too steep: a machine that pauses once makes one
WALKED = 1  # restarts in which launching from the host is timed: reported, never judged
WAVERING = 0.8  # of the wanted length, from which a sample counts as long enough


@dataclass
class CudaContest:
    """Base against candidate on one GPU. ``extra`` launches more on the base's side plant a known difference."""

    bench: CudaBench
    task: Task
    source: CudaInputs
    policy: Policy
    base: Artifact
    candidate: Artifact
    record: Record
    launches: dict[str, int]
    workloads: tuple[Workload, ...]
    extra: int = 0
    tally: Tally = field(default_factory=Tally)
    audits: dict[str, WallAudit] = field(default_factory=dict[str, WallAudit])
    suspicion: tuple[str, str] = ("", "")

    def __post_init__(self) -> None:
        self.references = References(self.task)
        self.audits = {"base": WallAudit(), "candidate": WallAudit()}
        self._walks: dict[str, list[tuple[float, float]]] = {}

    def restart(self, pairs: int) -> Restart:
        """``pairs`` pairs of every workload with fresh processes. One that dies once is given a second chance."""
        try:
            return self._undisturbed(pairs)
        except Failed as failed:
            if failed.outcome is not Outcome.CRASHED:
                raise
        return self._undisturbed(pairs)

    def complaint(self) -> tuple[str, str]:
        """The workload, and the clause, on which the candidate's clock cannot be believed; empty when it can."""
        if self.suspicion[1]:
            return self.suspicion
        return disagreement(self.audits["base"], self.audits["candidate"], self.policy)

    def acquit(self) -> None:
        """Forget what was held against the candidate; the next restarts are audited on their own."""
        self.audits, self.suspicion = {"base": WallAudit(), "candidate": WallAudit()}, ("", "")

    def _undisturbed(self, pairs: int) -> Restart:
        """A restart during which the card was left alone; disturbed ones are thrown away and counted."""
        for attempt in range(DISTURBED_TRIES):
            self.bench.settle(ready=2)
            with TIMELINE.stage("restart"):
                restart, why = self._watched(pairs)
            if not why or attempt == DISTURBED_TRIES - 1:
                return restart
            self.tally.discarded += pairs * len(self.workloads)
        raise AssertionError("unreachable")

    def _watched(self, pairs: int) -> tuple[Restart, str]:
        slots = [(slot_size(self.task, one, ALIGNMENT), self._slots(one)) for one in self.workloads]
        capacity = self.bench.provide(arena_bytes(slots, self.extra, arena_limit(self.bench)))
        order = self.source.dice.sample(self.workloads, len(self.workloads))
        with (
            self.bench.stand("base", self.task, self.base, 0) as base,
            self.bench.stand("candidate", self.task, self.candidate, 0) as candidate,
        ):
            ours = {base.runner.pid, candidate.runner.pid, *self.bench.pool.pids()}
            before = self.bench.card.look(ours)
            measured = {one.name: self._block(base, candidate, one, pairs, capacity) for one in order}
            ours |= {base.runner.pid, candidate.runner.pid}
            return Restart.of(measured), disturbance(before, self.bench.card.look(ours))

    def _slots(self, workload: Workload) -> int:
        return self.launches[workload.name] + self.extra

    def _block(
        self, base: CudaStand, candidate: CudaStand, workload: Workload, pairs: int, capacity: int
    ) -> tuple[Pair, ...]:
        base.workload = candidate.workload = workload.name
        with TIMELINE.stage("settle"):
            lane = self._settle(base, candidate, workload, capacity)
        with TIMELINE.stage("audit"):
            self._audit(base, candidate, lane)
        measured = tuple(self._pair(base, candidate, lane, first) for first in self._orders(pairs))
        self.tally.pairs += len(measured)
        self._suspect_impossible(lane, measured)
        return measured

    def _settle(self, base: CudaStand, candidate: CudaStand, workload: Workload, capacity: int) -> Lane:
        """Warm both sides up with checked launches; add launches until the faster side's sample is long enough."""
        wanted = max(self.policy.sample_ns, SAMPLE_NS)
        for _ in range(MAX_GROWTHS):
            lane = self._lane(base, candidate, workload)
            samples = self._turns(base, candidate, lane, self.source.dice.random() < 0.5)
            shortest = max(min(sample.claimed_ns for sample in samples.values()), 1)
            most = min(MAX_LAUNCHES, capacity // slot_size(self.task, workload, ALIGNMENT))
            grown = min(ceil(self.launches[workload.name] * wanted / shortest), most)
            if self.extra or shortest >= WAVERING * wanted or grown <= self.launches[workload.name]:
                return lane
            self.launches[workload.name] = grown
        return self._lane(base, candidate, workload)

    def _lane(self, base: CudaStand, candidate: CudaStand, workload: Workload) -> Lane:
        """Both sides staged on one layout, and in one regime: the better one of the worse side."""
        layout = self.bench.arrange(self.task, workload, self._slots(workload), self.source.dice)
        leases = {
            stand.side: stand.stage(TIMED_SET, layout, self._count(stand, layout.launches))
            for stand in (base, candidate)
        }
        if candidate.staged.overlaps and not base.staged.overlaps:
            clause = "its launches overlap in the graph instead of following one another"
            raise Failed("candidate", Outcome.TAMPERED, clause, workload.name)
        regime = self._shared_regime(base, candidate, workload)
        for stand in (base, candidate):
            if stand.staged.regime != regime:
                leases[stand.side] = stand.stage(TIMED_SET, layout, self._count(stand, layout.launches), regime)
        return Lane(workload, layout, leases["base"], leases["candidate"])

    def _shared_regime(self, base: CudaStand, candidate: CudaStand, workload: Workload) -> Regime:
        worst = max((base, candidate), key=lambda stand: REGIMES.index(stand.staged.regime))
        why = f": the {worst.side}, {worst.staged.why}" if worst.staged.why else ""
        self.tally.launching[workload.name] = worst.staged.regime + why
        return worst.staged.regime

    def _count(self, stand: CudaStand, launches: int) -> int:
        """Launches of one side: the planted extra is the base's alone."""
        return launches - (self.extra if stand.side == "candidate" else 0)

    def _orders(self, pairs: int) -> list[bool]:
        """Whether the candidate goes first, in each pair: as often as not, in a random order."""
        return self.source.dice.sample([number % 2 == 0 for number in range(pairs)], pairs)

    def _pair(self, base: CudaStand, candidate: CudaStand, lane: Lane, candidate_first: bool) -> Pair:
        samples = self._turns(base, candidate, lane, candidate_first)
        for side, sample in samples.items():
            self.audits[side].add(lane.workload.name, sample)
        launches = self.launches[lane.workload.name]
        return Pair(
            candidate_first=candidate_first,
            base_ns=max(samples["base"].claimed_ns, 1) / launches,
            candidate_ns=max(samples["candidate"].claimed_ns, 1) / launches,
        )

    def _turns(self, base: CudaStand, candidate: CudaStand, lane: Lane, candidate_first: bool) -> dict[str, Sample]:
        """Both sides once, on the same fresh inputs; each is checked at once."""
        count = lane.layout.launches
        with TIMELINE.stage("inputs"):
            inputs = self.source.timed(lane.workload, count)
        with TIMELINE.stage("reference"):
            want = self.references.of(lane.workload, inputs, count)
        sides = [(base, lane.base), (candidate, lane.candidate)]
        samples: dict[str, Sample] = {}
        for stand, lease in reversed(sides) if candidate_first else sides:
            with TIMELINE.stage("fill"):
                lease.fill(inputs)
                lease.poison(self.source.generator)
            samples[stand.side] = stand.go(TIMED_SET, self._deadline(stand, lane.workload, count))
            self.tally.kernel_ns += samples[stand.side].claimed_ns
            done = self._count(stand, count)
            with TIMELINE.stage("inspect"):
                wanted = {name: value[:done] for name, value in want.items()}
                stand.inspect_all(lease, inputs, wanted, done, bounded=True)
        return samples

    def _deadline(self, stand: CudaStand, workload: Workload, launches: int) -> float:
        known = self.record if stand.side == "candidate" else None
        return Deadlines(self.policy, known).of(workload, launches)

    def _audit(self, base: CudaStand, candidate: CudaStand, lane: Lane) -> None:
        """What an exchange costs, whether many replays take what they claim, and what launching from the host costs.

        The base's claims are nobody's gain, so only the candidate's slope is looked at, and the base's exchanges are
        the control.
        """
        self.audits["base"].add_idle(base.go(IDLE_SET, START_S))
        clauses = [self._slope(candidate, lane)]
        while clauses[-1] and len(clauses) < ALARMS:
            clauses.append(self._slope(candidate, lane))
        if clauses[-1] and not self.suspicion[1]:
            self.suspicion = lane.workload.name, clauses[-1]
        if len(self._walks.get(lane.workload.name, [])) < WALKED:
            self._report(lane.workload.name, (self._walk(base, lane), self._walk(candidate, lane)))

    def _walk(self, stand: CudaStand, lane: Lane) -> float:
        """Nanoseconds per launch when the host launches one after the other."""
        count = self._count(stand, lane.layout.launches)
        return stand.walk(TIMED_SET, self._deadline(stand, lane.workload, count)).claimed_ns / max(count, 1)

    def _slope(self, stand: CudaStand, lane: Lane) -> str:
        """One clause when the slope of wall time over replays is steeper than the events claim."""
        count = self._count(stand, lane.layout.launches)
        short = stand.go(TIMED_SET, self._deadline(stand, lane.workload, count))
        replays = max(2, min(LONG_REPLAYS, ceil(LONG_NS / max(short.claimed_ns, 1))))
        long = stand.replay(TIMED_SET, replays, self._deadline(stand, lane.workload, count * replays))
        self.tally.kernel_ns += short.claimed_ns + long.claimed_ns
        return slope_clause(short, long, replays, self.audits["base"].scatter, self.policy)

    def _report(self, workload: str, walked: tuple[float, float]) -> None:
        """Medians over restarts of nanoseconds per launch when the host launches one after the other."""
        seen = self._walks.setdefault(workload, [])
        seen.append(walked)
        middle = median(base for base, _ in seen), median(candidate for _, candidate in seen)
        self.tally.regimes.setdefault("stream", {})[workload] = middle

    def _suspect_impossible(self, lane: Lane, pairs: tuple[Pair, ...]) -> None:
        """Suspect a candidate that is faster than the measured roofs allow; writes may stay in the L2."""
        device, workload = self.bench.device, lane.workload
        peaks = self.bench.card.info().peaks
        model = dict(self.task.floor(workload)) if peaks else {}
        if "bytes_min" in model:
            kept = device.l2_bytes / self.launches[workload.name]
            model["bytes_min"] = max(0.0, model["bytes_min"] - kept)
        dtype = self.task.outputs[0].parameter.dtype
        typical = median(pair.candidate_ns for pair in pairs)
        clause = below_floor(model, dict(peaks), dtype, self.policy.floor_margin, typical)
        if clause and not self.suspicion[1]:
            self.suspicion = workload.name, clause


def arena_limit(bench: CudaBench) -> int:
    """Bytes that one side's slots may take."""
    return int(ARENA_SHARE * bench.device.memory_bytes)


def first_launches(bench: CudaBench, policy: Policy, task: Task, *records: Record) -> dict[str, int]:
    """Launches per sample from the speeds that the checks saw; the timing loop corrects them."""
    result: dict[str, int] = {}
    for workload in task.workloads:
        fastest = min(record.launch_ns[workload.name] for record in records)
        wanted = ceil(max(policy.sample_ns, SAMPLE_NS) / max(fastest, 1.0))
        result[workload.name] = max(1, min(MAX_LAUNCHES, room(bench, task, workload), wanted))
    return result


def room(bench: CudaBench, task: Task, workload: Workload) -> int:
    """Launches of this workload whose buffers fit into an arena; at least one."""
    return max(1, arena_limit(bench) // slot_size(task, workload, ALIGNMENT))


def steady(launch_ns: float) -> int:
    """Most launches in one sample before the card's own pace changes within it; not fewer than show one more well."""
    return max(FEWEST, int(STEADY_NS / max(launch_ns, 1.0)))

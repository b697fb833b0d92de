"""Three clocks for one sample, and what it means when they disagree. Trusted; the claimed time is not.

The runner's clock is precise but only a claim. The judge's wall clock and the CPU time that the kernel charged to all
threads of the runner cannot be forged from inside it. Both carry the cost of one exchange, which depends on the machine
and its load; exchanges that launch nothing, and the base's own samples taken in turn, are the control. What a candidate
claims too little shows as excess over that.

A busy machine makes honest samples look odd, one at a time: a process that other programs keep from its core claims
more than it burns, and interrupts that the kernel charges to it burn up to a millisecond that it does not claim. Such
samples are repeated while that is affordable, so a rare lie gains nothing either; what is judged is the rest of them,
against the rest of the base's. And an alarm accuses nobody until fresh samples confirm it (``judge.alarm``).
"""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, sqrt

from protocol.policy import Policy
from team.judge.runner.process import Sample

PREEMPTED = 0.02  # share of a claimed time without CPU time that marks a sample as disturbed
ALARM = 6.0  # standard errors beyond the permitted disagreement: honest kernels must never raise an alarm
SCATTER_NS = 25_000.0  # least scatter of one exchange's cost: a wake-up and a context switch or two
OUTLIER_NS = 200_000.0  # CPU time beyond claim and cost (besides the permitted share) that marks a sample as disturbed
OUTLIERS = 0.125  # share of each side's samples, the most excessive ones, that an alarm does not rest on
MIN_SAMPLES = 8  # samples of one side before its excess is judged
_NORMAL_MAD = 1.4826  # standard deviation of a normal in units of its median absolute deviation
_QUARTILE = 1.3626  # standard error of a normal sample's quartile, in units of sd / sqrt(n)


@dataclass(frozen=True)
class _Reading:
    workload: str
    claimed: float
    wall: float
    cpu: float
    queued: float

    @property
    def quiet(self) -> bool:
        """Whether, besides, neither judge nor runner had to wait for a core; never so when they share one."""
        return self.calm and self.queued <= PREEMPTED * self.claimed

    @property
    def calm(self) -> bool:
        """Whether the process was running all the time that it claims."""
        return self.cpu >= -PREEMPTED * self.claimed


class ClockAudit:
    """Collects the samples of one side."""

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._readings: list[_Reading] = []
        self.idle: list[_Reading] = []

    def add_idle(self, sample: Sample) -> None:
        """Record an exchange that launched nothing, under the conditions of the timed ones."""
        self.idle.append(self._reading("", sample))

    def add(self, workload: str, sample: Sample) -> bool:
        """Record one sample; False when the process was not running for part of it, so that it should be repeated."""
        reading = self._reading(workload, sample)
        self._readings.append(reading)
        return self._cores > 1 or reading.calm

    def outlies(self, sample: Sample, cost: float, share: float) -> bool:
        """Whether a sample burnt more CPU time than claim, ``cost`` and a ``share`` of the claim can explain."""
        reading = self._reading("", sample)
        return reading.cpu - cost > share * reading.claimed + OUTLIER_NS

    def _reading(self, workload: str, sample: Sample) -> _Reading:
        wall = sample.wall_ns - sample.claimed_ns
        cpu = sample.cpu_ns - sample.claimed_ns * self._cores
        return _Reading(workload, sample.claimed_ns, wall, cpu, sample.queued_ns)

    def cost(self) -> float:
        """What one exchange costs in CPU time beyond the launches (nanoseconds), from what was seen so far."""
        calm = [reading.cpu for reading in self._readings if reading.calm]
        idle = [reading.cpu for reading in self.idle]
        return max((statistics.median(values) for values in (calm, idle) if values), default=0.0)

    def own_time(self, sample: Sample, cost: float) -> float:
        """Nanoseconds that a sample's launches took: as claimed, or its CPU time when others had the core meanwhile."""
        if self._cores > 1 or self._reading("", sample).calm:
            return max(sample.claimed_ns, 1.0)
        return max(min(sample.cpu_ns - cost, sample.claimed_ns), 1.0)

    def of(self, workloads: Iterable[str]) -> list[_Reading]:
        """The readings on some workloads."""
        wanted = set(workloads)
        return [reading for reading in self._readings if reading.workload in wanted]


def complaint(base: ClockAudit, candidate: ClockAudit, workloads: list[str], policy: Policy) -> tuple[str, str]:
    """Workload and clause when the candidate's claims cannot be believed; empty when they can.

    Asked of each workload alone and, since a small lie on each adds up, of all together.
    """
    scatter = _scatter(base, workloads)
    groups = [[name] for name in workloads] + ([workloads] if len(workloads) > 1 else [])
    for group in groups:
        ours, theirs = base.of(group), candidate.of(group)
        if min(len(ours), len(theirs)) < MIN_SAMPLES:
            continue
        clause = _overspent(base.idle, ours, theirs, scatter[0], policy) or _overslept(ours, theirs, scatter[1], policy)
        if clause:
            return group[0] if len(group) == 1 else "", clause
    return "", ""


def _scatter(base: ClockAudit, workloads: list[str]) -> tuple[float, float]:
    """Standard deviations of the base's CPU and wall excess within a workload, robustly (nanoseconds)."""
    cpu: list[float] = []
    wall: list[float] = []
    for name in workloads:
        readings = base.of([name])
        calm = [reading.cpu for reading in readings if reading.calm]
        if calm:
            cpu += _distances(calm)
        wall += _distances([reading.wall for reading in readings if reading.quiet])
    cpu += _distances([reading.cpu for reading in base.idle])
    sizes = [_NORMAL_MAD * statistics.median(values) if values else 0.0 for values in (cpu, wall)]
    return max(sizes[0], SCATTER_NS), max(sizes[1], SCATTER_NS)


def _distances(values: list[float]) -> list[float]:
    centre = statistics.median(values) if values else 0.0
    return [abs(value - centre) for value in values]


def _overspent(
    idle: list[_Reading], ours: list[_Reading], theirs: list[_Reading], scatter: float, policy: Policy
) -> str:
    """CPU time beyond the claims, summed over all but the most excessive samples, less what the base's came to."""
    calm = [reading.cpu for reading in ours if reading.calm]
    honest = max((statistics.median(values) for values in (calm, [one.cpu for one in idle]) if values), default=0.0)
    claimed = sum(reading.claimed for reading in theirs)
    control = max(0.0, _excess(ours, honest, scatter)) * len(theirs) / len(ours)
    excess = _excess(theirs, honest, scatter) - control
    if excess <= policy.clock_disagreement * claimed + ALARM * scatter * sqrt(2.0 * len(theirs)):
        return ""
    return (
        f"{len(theirs)} samples claim {claimed / 1e6:.3f} ms in all, "
        f"but the process burnt {excess / 1e6:.3f} ms of CPU time beyond that"
    )


def _excess(readings: list[_Reading], honest: float, scatter: float) -> float:
    sizes = sorted(max(reading.cpu - honest, -scatter) for reading in readings)
    return sum(sizes[: len(sizes) - ceil(OUTLIERS * len(sizes))])


def _overslept(ours: list[_Reading], theirs: list[_Reading], scatter: float, policy: Policy) -> str:
    """Wall time beyond the claims in three quarters of the quiet turns, as both sides saw them one after the other."""
    turns = [(base, candidate) for base, candidate in zip(ours, theirs, strict=False) if base.quiet and candidate.quiet]
    if len(turns) < MIN_SAMPLES:
        return ""
    typical = statistics.median(candidate.claimed for _, candidate in turns)
    excess = statistics.quantiles((candidate.wall - base.wall for base, candidate in turns), n=4)[0]
    error = _QUARTILE * scatter * sqrt(2.0 / len(turns))
    if excess <= policy.clock_disagreement * typical + ALARM * error:
        return ""
    return f"a sample claims {typical / 1e3:.1f} us, but the judge's clock saw {(typical + excess) / 1e3:.1f} us"


def below_floor(model: dict[str, float], peaks: dict[str, float], dtype: str, margin: float, ns: float) -> str:
    """One clause when a launch of ``ns`` is faster than the measured roofs allow; silent without measured peaks."""
    seconds = 0.0
    moved = peaks.get("copy_bytes_per_s") or peaks.get("cache_bytes_per_s")  # of a CPU: see ``judge.cpu_roofs``
    if "bytes_min" in model and moved:
        seconds = model["bytes_min"] / moved
    roof = peaks.get(f"{dtype}_flops_per_s")
    if "flops" in model and roof:
        seconds = max(seconds, model["flops"] / roof)
    if ns >= margin * seconds * 1e9:
        return ""
    return f"{ns / 1e3:.2f} us per launch is under the roofline floor of {seconds * 1e6:.2f} us"

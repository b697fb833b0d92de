"""Two clocks for a GPU: the runner's events are a claim, the judge's wall clock is the truth. Trusted.

An exchange costs tens of microseconds besides the kernels. Exchanges that launch nothing, and the base's own, are the
control. Short samples (one replay) are compared with the base's by lower quartiles, since disturbances only ever
stretch wall time. Long ones (many replays of the same launches) are compared one by one: their slope, wall time per
replay between one replay and many, must be what the events claim for it.
"""

import statistics
from dataclasses import dataclass, field
from math import sqrt

from protocol.policy import Policy
from team.judge.runner.process import Sample

ALARM = 6.0  # standard errors beyond the permitted disagreement: honest kernels must never raise an alarm
SCATTER_NS = 15_000.0  # least scatter of one exchange's cost
MIN_SAMPLES = 8  # samples of one side before its excess is judged
LONG_NS = 3_000_000  # a long sample claims at least this much,
LONG_REPLAYS = 4096  # within this many replays
_NORMAL_MAD = 1.4826  # standard deviation of a normal in units of its median absolute deviation
_QUARTILE = 1.3626  # standard error of a normal sample's quartile, in units of sd / sqrt(n)


@dataclass
class WallAudit:
    """What one side claimed and what the judge's clock saw, in nanoseconds, by workload."""

    idle: list[float] = field(default_factory=list[float])
    claimed: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    excess: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def add_idle(self, sample: Sample) -> None:
        """Record an exchange that launched nothing."""
        self.idle.append(float(sample.wall_ns))

    def add(self, workload: str, sample: Sample) -> None:
        """Record one sample."""
        self.claimed.setdefault(workload, []).append(float(sample.claimed_ns))
        self.excess.setdefault(workload, []).append(float(sample.wall_ns - sample.claimed_ns))

    @property
    def scatter(self) -> float:
        """Standard deviation of an exchange's cost within one workload, robustly."""
        groups = [*self.excess.values(), self.idle]
        distances = [abs(one - statistics.median(group)) for group in groups if group for one in group]
        return max(_NORMAL_MAD * statistics.median(distances) if distances else 0.0, SCATTER_NS)


def disagreement(base: WallAudit, candidate: WallAudit, policy: Policy) -> tuple[str, str]:
    """The workload and one clause when a candidate's short samples cannot be what it claims; else empty."""
    for workload, theirs in candidate.excess.items():
        ours = base.excess.get(workload, [])
        if min(len(ours), len(theirs)) < MIN_SAMPLES:
            continue
        typical = statistics.median(candidate.claimed[workload])
        excess = _lower_quartile(theirs) - _lower_quartile(ours)
        error = _QUARTILE * base.scatter * sqrt(1.0 / len(ours) + 1.0 / len(theirs))
        if excess > policy.clock_disagreement * typical + ALARM * error:
            seen = (typical + excess) / 1e3
            return workload, f"a sample claims {typical / 1e3:.1f} us, but the judge's clock saw {seen:.1f} us"
    return "", ""


def slope_clause(short: Sample, long: Sample, replays: int, scatter_ns: float, policy: Policy) -> str:
    """One clause when ``replays`` replays took longer per replay than the events claim; else empty.

    Whoever claims more than the wall clock saw only harms itself.
    """
    steps = replays - 1
    if steps < 1:
        return ""
    wall = (long.wall_ns - short.wall_ns) / steps
    claimed = (long.claimed_ns - short.claimed_ns) / steps
    allowed = policy.clock_disagreement * wall + ALARM * scatter_ns * sqrt(2.0) / steps
    if wall - claimed <= allowed:
        return ""
    return f"the events claim {claimed / 1e3:.2f} us per replay, but the judge's clock saw {wall / 1e3:.2f} us"


def _lower_quartile(values: list[float]) -> float:
    return statistics.quantiles(values, n=4)[0]

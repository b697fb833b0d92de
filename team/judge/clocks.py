"""Three clocks for one sample, and what it means when they disagree. Trusted; the claimed time is not.

The runner's clock is precise but only a claim. The judge's wall clock and the CPU time that the kernel charged to all
threads of the runner cannot be forged from inside it. Both carry the cost of one exchange, which is measured with empty
requests. Disturbances by other processes lengthen the wall time but not the CPU time, and never shorten either, so a
claim is judged by its median wall excess and by its total CPU excess.
"""

import statistics
from collections import defaultdict
from dataclasses import dataclass, field

from protocol.policy import Policy
from team.judge.runner.process import Sample

SLACK_NS = 15_000.0  # an exchange's own scatter: wake-up of two processes, one context switch (measured: see tests)
MIN_SAMPLES = 8  # samples of one workload before its median wall excess is believed


@dataclass(frozen=True)
class Idle:
    """Cost of an exchange that launches nothing (nanoseconds)."""

    wall_ns: float
    cpu_ns: float

    @classmethod
    def of(cls, samples: list[Sample]) -> "Idle":
        """The median of some empty exchanges."""
        return cls(
            statistics.median(sample.wall_ns - sample.claimed_ns for sample in samples),
            statistics.median(sample.cpu_ns - sample.claimed_ns for sample in samples),
        )


@dataclass
class _Series:
    claimed: list[float] = field(default_factory=list)
    wall_excess: list[float] = field(default_factory=list)
    cpu_excess: list[float] = field(default_factory=list)


class ClockAudit:
    """Collects the samples of one side; says whether its claims can be believed."""

    def __init__(self, policy: Policy, cores: int) -> None:
        self._policy = policy
        self._cores = cores
        self._series: dict[str, _Series] = defaultdict(_Series)

    def add(self, workload: str, sample: Sample, idle: Idle) -> bool:
        """Record one sample; False when it looks disturbed, and should be taken again."""
        wall = sample.wall_ns - idle.wall_ns - sample.claimed_ns
        cpu = sample.cpu_ns - idle.cpu_ns - sample.claimed_ns * self._cores
        series = self._series[workload]
        series.claimed.append(sample.claimed_ns)
        series.wall_excess.append(wall)
        series.cpu_excess.append(max(cpu, 0.0))
        return wall <= 10 * SLACK_NS + sample.claimed_ns

    def complaint(self, workload: str) -> str:
        """One clause about a claim that the judge's clocks contradict, or an empty string."""
        series = self._series[workload]
        share = self._policy.clock_disagreement
        claimed, count = sum(series.claimed), len(series.claimed)
        burnt = sum(series.cpu_excess)
        if burnt > share * claimed * self._cores + count * SLACK_NS:
            return (
                f"{count} samples claimed {claimed / 1e6:.3f} ms in all, but the process burnt "
                f"{burnt / 1e6:.3f} ms of CPU time beyond that"
            )
        if count < MIN_SAMPLES:
            return ""
        typical, excess = statistics.median(series.claimed), statistics.median(series.wall_excess)
        if excess > share * typical + 2 * SLACK_NS:
            return (
                f"a sample claims {typical / 1e3:.1f} us, but the judge's clock saw {(typical + excess) / 1e3:.1f} us"
            )
        return ""


def below_floor(model: dict[str, float], peaks: dict[str, float], dtype: str, margin: float, ns: float) -> str:
    """One clause when a launch of ``ns`` is faster than the measured roofs allow; silent without measured peaks."""
    seconds = 0.0
    if "bytes_min" in model and "copy_bytes_per_s" in peaks:
        seconds = model["bytes_min"] / peaks["copy_bytes_per_s"]
    roof = peaks.get(f"{dtype}_flops_per_s")
    if "flops" in model and roof:
        seconds = max(seconds, model["flops"] / roof)
    if ns >= margin * seconds * 1e9:
        return ""
    return f"{ns / 1e3:.2f} us per launch is under the roofline floor of {seconds * 1e6:.2f} us"

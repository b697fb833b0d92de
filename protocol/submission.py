"""Phase C: what a submission consists of, how far it has come, and what its runs come to. Pure.

The final commit is judged several times in a clean clone, each time with fresh inputs and processes; what is reported
is the average of the runs with their spread, not the best of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean, stdev

from protocol import events as ev
from protocol.messages import Estimate


@dataclass
class SubmissionState:
    """One submission from its start to its end; ``over`` is the branch that it became, or why it was refused."""

    started: ev.SubmissionStarted
    runs: list[ev.SubmissionMeasured] = field(default_factory=list[ev.SubmissionMeasured])
    over: str = ""


@dataclass(frozen=True)
class Average:
    """Log gains of the runs: their mean, standard deviation, and the lowest and highest."""

    runs: int
    gain: float
    spread: float
    low: float
    high: float


def average(gains: Iterable[float]) -> Average:
    """The average of some runs; there is at least one."""
    values = list(gains)
    spread = stdev(values) if len(values) > 1 else 0.0
    return Average(len(values), fmean(values), spread, min(values), max(values))


def overall(runs: Iterable[ev.SubmissionMeasured]) -> Average:
    """The average over all workloads, by weight."""
    return average(run.estimate.gain for run in runs)


def by_workload(runs: Iterable[ev.SubmissionMeasured]) -> dict[str, Average]:
    """The average of each workload."""
    gains: dict[str, list[float]] = {}
    for run in runs:
        for name, estimate in run.workloads.items():
            gains.setdefault(name, []).append(estimate.gain)
    return {name: average(values) for name, values in gains.items()}


def unfinished(submissions: Iterable[SubmissionState], tag: str, commit: str) -> SubmissionState | None:
    """A submission of this very commit under this tag that was broken off: it goes on with the runs that it has."""
    same = (s for s in submissions if not s.over and (s.started.tag, s.started.evaluated) == (tag, commit))
    return next(same, None)


def next_version(taken: Iterable[str], tag: str) -> int:
    """The first version above all those of ``taken``, which are names like ``submission-TAG-v3``."""
    prefix = f"submission-{tag}-v"
    numbers = [name.removeprefix(prefix) for name in taken if name.startswith(prefix)]
    return 1 + max((int(number) for number in numbers if number.isdecimal()), default=0)


def name_of(tag: str, version: int) -> str:
    """The git tag of a submission."""
    return f"submission-{tag}-v{version}"


def interval_of(found: Average) -> Estimate:
    """An average as an estimate whose interval spans the lowest and the highest run."""
    return Estimate(gain=found.gain, low=found.low, high=found.high, pairs=0, restarts=found.runs)

"""How far a campaign's outputs are from their references, and whether they drift: a pure view of its state.

An error is a share of its tolerance: 1 is the most that passes. Speed bought with accuracy, one small step after the
other, is visible here before it fails.
"""

from dataclasses import dataclass

from protocol.messages import WorkloadCheck
from protocol.policy import Policy
from protocol.state import CampaignState, ExperimentState

Place = tuple[str, str]
"""Workload and output."""


@dataclass(frozen=True)
class Trail:
    """One output of one workload through the kept experiments: their numbers and errors, oldest first."""

    place: Place
    steps: tuple[tuple[int, float], ...]

    @property
    def last(self) -> float:
        """The error of the latest kept experiment."""
        return self.steps[-1][1]

    @property
    def most(self) -> float:
        """The largest error so far."""
        return max(error for _, error in self.steps)

    def creeps(self, policy: Policy) -> bool:
        """Whether the latest error is the largest, near the tolerance, and above the first."""
        return self.last >= policy.error_near_tolerance and self.last == self.most and self.last > self.steps[0][1]


def errors_of(checks: tuple[WorkloadCheck, ...]) -> dict[Place, float]:
    """The largest error by workload and output; records from before outputs were told apart have the output ''."""
    found: dict[Place, float] = {}
    for check in checks:
        for output, error in (check.outputs or {"": check.worst}).items():
            found[check.workload, output] = error
    return found


def worst_of(experiment: ExperimentState) -> tuple[Place, float] | None:
    """Where an experiment's candidate was furthest from right, and how far; None before any check."""
    found = errors_of(experiment.measurement.checks) if experiment.measurement else {}
    return max(found.items(), key=lambda item: item[1]) if found else None


def near_tolerance(experiment: ExperimentState, policy: Policy) -> str:
    """A clause about an error that is near its tolerance, else empty."""
    worst = worst_of(experiment)
    if worst is None or worst[1] < policy.error_near_tolerance:
        return ""
    (workload, output), error = worst
    what = f"'{output}' on {workload}" if output else workload
    return f"its error is {error:.2f} of the tolerance in {what}"


def trails(state: CampaignState) -> list[Trail]:
    """Every output's way through the kept experiments, the largest latest error first."""
    steps: dict[Place, list[tuple[int, float]]] = {}
    for experiment in sorted(state.experiments.values(), key=lambda one: one.number):
        if experiment.verdict is None or not experiment.verdict.kept or experiment.measurement is None:
            continue
        for place, error in errors_of(experiment.measurement.checks).items():
            steps.setdefault(place, []).append((experiment.number, error))
    return sorted((Trail(place, tuple(found)) for place, found in steps.items()), key=lambda one: -one.last)

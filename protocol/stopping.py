"""When a campaign may stop before its budget: its target is exceeded, and the team has tried in vain to go on."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING

from protocol.sweep import exhausted

if TYPE_CHECKING:
    from protocol.record import CampaignState, ExperimentState


@dataclass
class Tail:
    """The team's experiments since its last KEEP: how many, in which directions, and whether one came of a search."""

    reverts: int = 0
    directions: set[str] = field(default_factory=set[str])
    searched: bool = False


def count(state: CampaignState, experiment: ExperimentState) -> None:
    """Move the tail by one judged experiment."""
    assert experiment.plan is not None
    if experiment.verdict is not None and experiment.verdict.kept:
        state.tail = Tail()
        return
    state.tail.reverts += 1
    state.tail.directions.add(experiment.direction or experiment.plan.category)
    state.tail.searched |= experiment.plan.cites in state.searches


def early_stop(state: CampaignState) -> str:
    """Why the campaign may stop before its budget is spent, or an empty string; all of RULES' conditions must hold."""
    policy, tail = state.policy, state.tail
    if not _target_exceeded(state):
        return ""
    if tail.reverts < policy.stop_after_reverts or len(tail.directions) < policy.stop_after_directions:
        return ""
    if not tail.searched or not exhausted(state):
        return ""
    return (
        f"the target of {policy.target_speedup:g}x is exceeded; {tail.reverts} experiments in {len(tail.directions)} "
        "directions brought nothing, the ideas of a search failed and the tactical sweep is exhausted"
    )


def _target_exceeded(state: CampaignState) -> bool:
    """Main as it is exceeds the target by a direct measurement, beyond doubt."""
    target = state.policy.target_speedup
    last = state.main_measured[-1] if state.main_measured else None
    if target is None or last is None or last.estimate is None or last.commit != state.main:
        return False
    return last.estimate.low > log(target)

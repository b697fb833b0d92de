"""Before a technique with evidence from the field is closed: compare it with its card, look for an orthogonal fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.counters import approach_of
from protocol.messages import Verdict

if TYPE_CHECKING:
    from protocol.messages import RecheckReport
    from protocol.record import CampaignState, ExperimentState

_BROKEN = (Verdict.INCORRECT, Verdict.CRASHED, Verdict.BUILD_FAILED, Verdict.TIMEOUT)


def count(state: CampaignState, experiment: ExperimentState) -> None:
    """A catalogued technique that regresses for the first time is re-checked by its agent, and open until then."""
    plan = experiment.plan
    if plan is None or plan.technique in state.rechecks or not _regressed(experiment):
        return
    if plan.technique in state.started.strategy.field_evidence:
        state.agents[experiment.agent].owes_rechecks.append(experiment.id)
        state.rechecks[plan.technique] = None
        state.reverted.discard(plan.technique)


def reported(state: CampaignState, name: str, report: RecheckReport) -> None:
    """The technique is closed, or stays open because something else spoiled it."""
    experiment = state.experiments[report.experiment]
    state.rechecks[report.technique] = report
    state.agents[name].owes_rechecks.remove(report.experiment)
    if report.closes:
        state.reverted.add(report.technique)
    else:
        state.reverted.discard(report.technique)
        state.crash_streaks.pop("\n".join(approach_of(state, experiment)), None)


def _regressed(experiment: ExperimentState) -> bool:
    """True when it does not run as it should, or is slower beyond doubt."""
    if experiment.verdict in _BROKEN:
        return True
    reverted = experiment.verdict in (Verdict.REVERT, Verdict.UNRESOLVED)
    return reverted and experiment.overall is not None and experiment.overall.high < 0.0

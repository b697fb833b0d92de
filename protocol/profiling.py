"""Profile blindness: no plan on a kernel whose last large gain nobody has profiled.

An agent's own large KEEP is owed by its author (``AgentState.owes_profile``); a large landing is owed by whoever works
on main first, and one report serves them all.
"""

from __future__ import annotations

from math import expm1
from typing import TYPE_CHECKING

from protocol.messages import Position

if TYPE_CHECKING:
    from collections.abc import Mapping

    from protocol import events as ev
    from protocol.messages import ProfileReport
    from protocol.policy import Policy
    from protocol.record import CampaignState, ExperimentState, LandingState


SM, DRAM, OCCUPANCY = "sm_throughput", "dram_throughput", "occupancy"
"""Metrics that place a kernel: shares of the device's peak between 0 and 1."""


def position_of(metrics: Mapping[str, float], policy: Policy) -> Position:
    """Where a kernel stands by its profile; unknown while one of the metrics that decide it is missing.

    RULES: compute-bound by the SMs or bandwidth-bound by DRAM; when both idle, occupancy-limited at a low occupancy and
    latency-bound at a high one; else balanced.
    """
    if SM not in metrics or DRAM not in metrics:
        return Position.UNKNOWN
    compute, memory, occupancy = metrics[SM], metrics[DRAM], metrics.get(OCCUPANCY)
    if max(compute, memory) > policy.bound_above:
        return Position.COMPUTE if compute >= memory else Position.BANDWIDTH
    if max(compute, memory) >= policy.idle_below:
        return Position.BALANCED
    if occupancy is None:
        return Position.UNKNOWN
    if occupancy < policy.few_warps_below:
        return Position.OCCUPANCY
    return Position.LATENCY if occupancy > policy.many_warps_above else Position.BALANCED


def owed(state: CampaignState, name: str) -> str:
    """The commit that the agent must profile before its next plan, or an empty string."""
    own = state.agents[name].owes_profile
    return own or (state.unprofiled if state.unprofiled and state.head_of(name) == state.main else "")


def refusal(state: CampaignState, name: str, base: str) -> str | None:
    """Why a plan on ``base`` is blind; None when its last large gain was profiled."""
    commit = state.agents[name].owes_profile or (state.unprofiled if base == state.main else "")
    if not commit:
        return None
    return f"a profile is owed, younger than the last gain of 5 % or more: profile {commit[:12]} before the next plan"


def profile_of(state: CampaignState, name: str) -> ProfileReport | None:
    """The youngest profile of what the agent works on."""
    on_main = state.main_profile is not None and state.head_of(name) == state.main
    return state.main_profile if on_main else state.agents[name].profile


def landed(state: CampaignState, experiment: ExperimentState, landing: LandingState | None, body: ev.Landed) -> None:
    """A large gain reached main: it wants a profile, unless its author has profiled this very tree."""
    if expm1(body.gain.gain) < state.policy.profile_gain:
        return
    same = body.how == "cherry-pick" and body.before == experiment.base
    known = state.agents[experiment.agent].profile
    if same and known is not None and known.commit == experiment.commit:
        state.main_profile = known
        return
    state.unprofiled, state.unprofiled_twin = body.commit, experiment.commit if same else ""


def reported(state: CampaignState, name: str, report: ProfileReport) -> None:
    """A profile clears what it answers, for its author and for all who work on main."""
    agent = state.agents[name]
    if report.position is Position.UNKNOWN:
        report = report.model_copy(update={"position": position_of(report.metrics, state.policy)})
    agent.profile = report
    if agent.owes_profile == report.commit:
        agent.owes_profile = ""
    if report.commit in (state.unprofiled, state.unprofiled_twin):
        state.main_profile, state.unprofiled, state.unprofiled_twin = report, "", ""

"""The forcing function of the plateau: an untried heavy lift is the next plan, or each of them is passed over for a
reason that counts (``messages.Excuse``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol import directions
from protocol.counters import closed_for, phase_of
from protocol.messages import Phase, Position
from protocol.profiling import profile_of

if TYPE_CHECKING:
    from protocol.messages import HeavyLift, Plan
    from protocol.record import AgentState, CampaignState


def untried_lifts(state: CampaignState, agent: AgentState) -> tuple[HeavyLift, ...]:
    """On a plateau, the heavy lifts of the agent's cell that nobody has planned and that the law leaves open to it."""
    if phase_of(state.policy, agent.streaks) is not Phase.PLATEAU:
        return ()
    profile = profile_of(state, agent.member.name)
    position = profile.position if profile else Position.UNKNOWN
    lifts = state.started.strategy.heavy_lifts.get(position, ())
    unplanned = [lift for lift in lifts if lift.technique not in state.planned]
    if not unplanned:
        return ()
    abandoned = {technique for technique, _ in state.abandoned}
    return tuple(lift for lift in unplanned if lift.technique not in abandoned and open_to(state, agent, lift.category))


def open_to(state: CampaignState, agent: AgentState, category: str) -> bool:
    """Whether neither a counter nor the agent's direction keeps it from this category."""
    if category in closed_for(state, agent):
        return False
    return directions.refusal(state, agent.member.name, category) is None  # a category that the campaign never named


def passes_by(state: CampaignState, agent: AgentState, plan: Plan) -> tuple[str, ...]:
    """Untried heavy lifts that this plan neither takes nor gives a reason for."""
    lifts = [lift.technique for lift in untried_lifts(state, agent)]
    excused = {passed.name for passed in plan.passed_over}
    return () if plan.technique in lifts else tuple(lift for lift in lifts if lift not in excused)

"""When the whole team is stuck: everybody searches and starts afresh; twice in a row means near the ceiling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol import directions
from protocol import events as ev

if TYPE_CHECKING:
    from protocol.record import CampaignState, ExperimentState


def count(state: CampaignState, experiment: ExperimentState) -> None:
    """Move the counters by one judged experiment: a keep of anybody means that the team is not at the ceiling."""
    streaks = state.agents[experiment.agent].streaks
    if experiment.verdict is not None and experiment.verdict.kept:
        streaks.since_fresh = 0
        state.stuck_in_a_row, state.proposed = 0, ""
    else:
        streaks.since_fresh += 1


def team_is_stuck(state: CampaignState) -> bool:
    """True when every agent that is there has reverted as often as makes one stuck, or has no idea left.

    Counted since the agent's last KEEP and since the team was last found stuck. Agents whose process is gone are left
    out; a team of agents that have merely no idea left is at its end, not stuck.
    """
    index = state.index
    alive = len(state.agents) - len(index.absent)
    return len(index.fresh) < alive and all(_has_no_idea(state, name) for name in index.fresh)


def what_follows(state: CampaignState) -> tuple[ev.AnyBody, ...]:
    """The events that being stuck makes true now; none while one agent is not."""
    if not team_is_stuck(state):
        return ()
    times = state.stuck_in_a_row + 1
    if times < state.policy.ceiling_after or state.proposed:
        return (ev.TeamStuck(times=times),)
    why = f"near the ceiling: every agent was stuck at once, {times} times in a row; kernelteam submit brings main home"
    return ev.TeamStuck(times=times), ev.SubmissionProposed(why=why)


def owe_searches(state: CampaignState, times: int) -> None:
    """What ``TeamStuck`` does: every agent owes a search, and counts afresh from here."""
    state.stuck_in_a_row = times
    for agent in state.agents.values():
        agent.owes_search, agent.streaks.since_search, agent.streaks.since_fresh = True, 0, 0


def _has_no_idea(state: CampaignState, name: str) -> bool:
    return state.agents[name].exhausted_on != "" and directions.has_nothing_left(state, name)


def lines(state: CampaignState) -> tuple[str, ...]:
    """What a recap says about the ceiling."""
    return (f"submission is proposed: {state.proposed}",) if state.proposed else ()

"""Calls of models as the ledger counts them: once each, at once, and whatever becomes of the duty that made them."""

from protocol.messages import ModelCall
from protocol.record import AgentState, CampaignState

_REMEMBERED = 4
"""Lost duties of one kind that a mind may go on from: each holds what the one before it left."""


def is_counted(state: CampaignState, agent: str, call: ModelCall) -> bool:
    """Whether this call is in the ledger already: a mind that goes on from a record tells of all calls in it."""
    return call.number <= state.agents[agent].counted.get(call.duty, 0)


def count(state: CampaignState, agent: str, call: ModelCall) -> None:
    """Take one call into what the campaign, its agent, the open duty and the experiment have cost."""
    asked = state.agents[agent]
    asked.counted[call.duty] = call.number
    asked.paid.count(call)
    if asked.open is not None and getattr(asked.open.duty, "id", "") == call.duty:
        asked.open.paid.count(call)
    state.dollars += call.dollars
    state.tokens += call.tokens
    state.calls += 1
    if call.duty in state.experiments:
        state.experiments[call.duty].dollars += call.dollars


def closed(asked: AgentState, kind: str, duty: str, lost: bool) -> None:
    """A duty is over. What was lost may be taken up again; what was answered is settled, and all that was lost before
    it."""
    if lost:
        asked.lost[kind] = (*asked.lost.get(kind, ()), duty)[-_REMEMBERED:]
        return
    for settled in (duty, *asked.lost.pop(kind, ())):
        asked.counted.pop(settled, None)


def interrupted(asked: AgentState) -> None:
    """The campaign was broken off: whatever the agent had open is lost."""
    if asked.open is not None and (duty := getattr(asked.open.duty, "id", "")):
        closed(asked, asked.open.duty.kind, duty, lost=True)

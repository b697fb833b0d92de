"""The tactical sweep: small things in a fixed order, one an experiment, once an agent's larger moves are made.

It is due for an agent whose last experiments were reverts of one category after it left phase early, or that has no
idea left; a KEEP ends that. What was done or passed over is told for the whole team. A search that must be cited (as
long as the mind has an idea for it) and a heavy lift come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol import directions
from protocol.counters import closed_categories, phase_of
from protocol.messages import Phase
from protocol.plateau import open_to, untried_lifts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from protocol.messages import PassedOver, Plan, SweepItem
    from protocol.record import AgentState, CampaignState, ExperimentState


def count(state: CampaignState, experiment: ExperimentState) -> None:
    """Move the sweep by one judged experiment."""
    agent, plan, streaks = state.agents[experiment.agent], experiment.plan, state.agents[experiment.agent].streaks
    if plan is not None and plan.sweep:
        state.swept.setdefault(plan.sweep, f"done by {experiment.id}")
    if experiment.verdict is not None and experiment.verdict.kept:
        agent.sweeping = False
        if streaks.early_from == streaks.experiments:
            state.swept.clear()  # a large rewrite is another kernel: what was swept was the old one
        return
    again = streaks.category_reverts >= state.policy.sweep_after
    agent.sweeping |= again and phase_of(state.policy, streaks) is not Phase.EARLY


def admitted(state: CampaignState, experiment: ExperimentState) -> None:
    """A plan closes what it passes over, and keeps others off its own item while it is in flight."""
    assert experiment.plan is not None
    pass_over(state, experiment.plan.passed_over)
    if experiment.plan.sweep:
        state.sweep_flights[experiment.plan.sweep] = experiment.id


def over(state: CampaignState, experiment: ExperimentState) -> None:
    """An experiment ended, or was lost: its item is not in flight any more."""
    if experiment.plan is not None and state.sweep_flights.get(experiment.plan.sweep) == experiment.id:
        del state.sweep_flights[experiment.plan.sweep]


def pass_over(state: CampaignState, passed: Iterable[PassedOver]) -> None:
    """Close the items that a plan, or a mind without one, passed over for a reason."""
    known = {item.name for item in state.started.strategy.sweep}
    for one in passed:
        if one.name in known:
            state.swept.setdefault(one.name, f"{one.kind.value}: {one.reason}")


def nothing_proposed(state: CampaignState, agent: AgentState, passed: Iterable[PassedOver]) -> None:
    """A mind without an idea owes the sweep; one without an idea for the sweep's next item closes that item."""
    due = due_items(state, agent)
    before = len(state.swept)
    pass_over(state, passed)
    if due and len(state.swept) == before:
        state.swept[due[0].name] = f"{agent.member.name} had no idea for it"
    agent.sweeping |= directions.has_nothing_left(state, agent.member.name)


def exhausted(state: CampaignState) -> bool:
    """True when every item was done or passed over."""
    return all(item.name in state.swept for item in state.started.strategy.sweep)


def due_items(state: CampaignState, agent: AgentState) -> tuple[SweepItem, ...]:
    """Open items in order while the sweep is due for this agent; the first is its next plan."""
    waits = agent.search is not None and agent.exhausted_on != state.head_of(agent.member.name)
    return open_items(state, agent) if agent.sweeping and not waits else ()


def open_items(state: CampaignState, agent: AgentState) -> tuple[SweepItem, ...]:
    """Items that nobody did, passed over or has in flight, and that are not all in categories closed to this agent.

    One that found nothing anywhere is about to leave its direction: it sweeps whatever no other agent holds.
    """
    if exhausted(state):
        return ()
    leaving = agent.open is None and directions.has_nothing_left(state, agent.member.name)
    may = _unheld_by_others if leaving else open_to
    return tuple(
        item
        for item in state.started.strategy.sweep
        if item.name not in state.swept
        and item.name not in state.sweep_flights
        and (not item.categories or any(may(state, agent, category) for category in item.categories))
    )


def _unheld_by_others(state: CampaignState, agent: AgentState, category: str) -> bool:
    name = agent.member.name
    closed = {*closed_categories(state.policy, agent.streaks), *state.closed}
    return category not in closed and category not in directions.of_others(state, name)


def refusal(state: CampaignState, agent: AgentState, plan: Plan) -> str | None:
    """Why the sweep does not let this plan run; None when it does."""
    if not plan.sweep and (not agent.sweeping or _is_lift(state, agent, plan)):
        return None
    passed = {one.name for one in plan.passed_over}
    due = open_items(state, agent) if plan.sweep else due_items(state, agent)
    due = tuple(item for item in due if item.name not in passed)
    if not due:
        return f"'{plan.sweep}' is no open item of the tactical sweep: leave 'sweep' empty" if plan.sweep else None
    first = due[0]
    if plan.sweep != first.name:
        return f"the tactical sweep's next item is '{first.name}' ({first.title}): do it, or pass it over with a reason"
    if first.techniques and plan.technique not in first.techniques:
        return f"'{plan.technique}' is not the sweep's item '{first.name}': use one of {', '.join(first.techniques)}"
    return None


def _is_lift(state: CampaignState, agent: AgentState, plan: Plan) -> bool:
    return any(plan.technique == lift.technique for lift in untried_lifts(state, agent))

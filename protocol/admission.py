"""Which plans the law lets run. ``refusal`` answers with a sentence, or None when the plan may run."""

from protocol import directions, failure_modes, plateau, profiling, sweep
from protocol.counters import abandoned_in, closed_categories
from protocol.events import InteractsBadly
from protocol.index import change_of
from protocol.messages import Plan
from protocol.state import CampaignState


def refusal(state: CampaignState, agent_name: str, plan: Plan, base: str) -> str | None:
    """Why this agent may not run this plan now, in one sentence with the remedy; None when it may."""
    agent = state.agents[agent_name]
    if agent.owes_search:
        return "a search is owed: report it before the next experiment"
    if blind := profiling.refusal(state, agent_name, base):
        return blind
    if plan.technique in abandoned_in(state, agent):
        return f"'{plan.technique}' was abandoned by the team after repeated crashes: choose another technique"
    if outside := directions.refusal(state, agent_name, plan.category):
        return outside
    if plan.category in closed_categories(state.policy, agent.streaks):
        return f"category '{plan.category}' is closed for this experiment: switch category"
    if plan.category in state.closed:
        return f"category '{plan.category}' is closed to the team: {state.closed[plan.category]}; switch category"
    if agent.search is not None and plan.cites != agent.search.id:
        return f"the plan must cite search '{agent.search.id}'"
    if plan.cites and plan.cites not in state.searches:
        return f"the plan cites search '{plan.cites}', which nobody reported"
    if plan.source and plan.source not in _sources(state, plan):
        return f"search '{plan.cites}' has no source '{plan.source}': name one of its sources, or none"
    if not plan.differs and plan.technique in state.reverted:
        return f"'{plan.technique}' was reverted before: say in 'differs' what is different now"
    if not plan.differs and (pair := _bad_composition(state, plan, base)):
        against = ", ".join(sorted({pair.experiment, *pair.others}))
        return f"this change and what the base holds did not pay together ({against}): say in 'differs' what is new"
    if other := _running(state, agent_name, plan, base):
        return f"{other} is running this very change on the same base: propose another"
    if repeated := failure_modes.refusal(state, agent_name, plan, base):
        return repeated
    if missing := plateau.passes_by(state, agent, plan):
        return f"phase plateau: take a heavy lift, or say in 'passed_over' what stands against {', '.join(missing)}"
    return sweep.refusal(state, agent, plan)


def _sources(state: CampaignState, plan: Plan) -> set[str]:
    cited = state.searches.get(plan.cites)
    return {source.locator for source in cited.sources} if cited else set()


def _bad_composition(state: CampaignState, plan: Plan, base: str) -> InteractsBadly | None:
    """The recorded pair that this plan would compose again, when the base holds all of it but the plan's own change."""
    held = state.lineage.holds(base) if state.bad_pairs else frozenset[str]()
    for pair in state.bad_pairs:
        lacking = {pair.experiment, *pair.others} - held
        if len(lacking) == 1 and (theirs := state.experiments[lacking.pop()].plan) and _same(theirs, plan):
            return pair
    return None


def _same(one: Plan, other: Plan) -> bool:
    return one.technique == other.technique and one.change == other.change


def _running(state: CampaignState, agent_name: str, plan: Plan, base: str) -> str:
    """The agent that has the same change on the same base in flight, or an empty string."""
    running = state.index.running.get(change_of(base, plan.technique, plan.change), {})
    return next((name for name in running if name != agent_name), "")

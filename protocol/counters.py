"""Streak counters of RULES phase B: what a verdict does to its agent, its approach and the team."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1
from typing import TYPE_CHECKING

from protocol import directions
from protocol.messages import Phase, Verdict

if TYPE_CHECKING:
    from protocol.messages import Plan
    from protocol.policy import Policy
    from protocol.record import AgentState, CampaignState, ExperimentState

_NEVER_RAN = (Verdict.LOST,)
Approach = tuple[str, str]
"""A technique, and the theme of the direction in which it was tried (``directions.theme_of``)."""


@dataclass
class Streaks:
    """Counters of one agent. All start at zero and are moved by verdicts alone."""

    experiments: int = 0
    without_keep: int = 0
    since_search: int = 0
    small_keeps: int = 0
    category: str = ""
    category_reverts: int = 0
    early_from: int = 0
    since_fresh: int = 0
    polished: str = ""
    polish: int = 0


def count(state: CampaignState, experiment: ExperimentState) -> None:
    """Move every counter by one judged experiment."""
    if experiment.verdict in _NEVER_RAN or experiment.plan is None:
        return
    agent = state.agents[experiment.agent]
    agent.streaks.experiments += 1
    _count_crashes(state, experiment)
    _count_polish(state.policy, agent.streaks, experiment)
    if experiment.verdict is not None and experiment.verdict.kept:
        _count_keep(state, agent, experiment)
    else:
        state.reverted.add(experiment.plan.technique)
        _count_revert(state.policy, agent, experiment)


def approach_of(state: CampaignState, experiment: ExperimentState) -> Approach:
    """What the experiment tried, and where."""
    assert experiment.plan is not None
    return experiment.plan.technique, directions.theme_of(state, experiment.direction)


def _count_crashes(state: CampaignState, experiment: ExperimentState) -> None:
    approach = approach_of(state, experiment)
    name = "\n".join(approach)
    if experiment.verdict is not Verdict.CRASHED:
        state.crash_streaks.pop(name, None)
        return
    state.crash_streaks[name] = state.crash_streaks.get(name, 0) + 1
    if state.crash_streaks[name] >= state.policy.abandon_after and approach not in state.abandoned:
        state.abandoned.append(approach)


def _count_polish(policy: Policy, streaks: Streaks, experiment: ExperimentState) -> None:
    """Experiments in a row in one category whose measured effect stayed under the plateau's gain, kept or not."""
    assert experiment.plan is not None
    small = experiment.overall is not None and abs(expm1(experiment.overall.gain)) < policy.plateau_gain
    same = streaks.polished == experiment.plan.category
    streaks.polished = experiment.plan.category
    streaks.polish = (streaks.polish + 1 if same else 1) if small else 0


def _count_keep(state: CampaignState, agent: AgentState, experiment: ExperimentState) -> None:
    assert experiment.plan is not None
    gain = expm1(experiment.overall.gain) if experiment.overall else 0.0
    policy: Policy = state.policy
    streaks = agent.streaks
    streaks.without_keep = streaks.since_search = 0
    streaks.category, streaks.category_reverts = "", 0
    streaks.small_keeps = streaks.small_keeps + 1 if gain < policy.plateau_gain else 0
    if experiment.plan.rewrite and gain >= policy.rewrite_resets_at:
        streaks.early_from = streaks.experiments
    if gain >= policy.profile_gain:
        agent.owes_profile = experiment.commit
    _credit(state, agent, experiment.plan)
    agent.search, agent.owes_search = None, False


def _credit(state: CampaignState, agent: AgentState, plan: Plan) -> None:
    """A keep that a search inspired is to the credit of the source that its plan names.

    One that names none and is of the technique that the search chose is to the credit of the search's first source;
    of another technique it cites the search because it must, and owes it nothing.
    """
    newest = agent.search
    cited = newest if newest and newest.id == plan.cites else state.searches.get(plan.cites)
    if cited is None or not (plan.source or plan.technique == cited.technique):
        return
    source = plan.source or cited.sources[0].locator
    credited = state.credits.setdefault(plan.cites, {})
    credited[source] = credited.get(source, 0) + 1


def _count_revert(policy: Policy, agent: AgentState, experiment: ExperimentState) -> None:
    assert experiment.plan is not None
    streaks = agent.streaks
    streaks.without_keep += 1
    streaks.since_search += 1
    streaks.small_keeps = 0
    same = streaks.category == experiment.plan.category
    streaks.category = experiment.plan.category
    streaks.category_reverts = streaks.category_reverts + 1 if same else 1
    if agent.search is not None and experiment.plan.cites == agent.search.id:
        agent.search = None
    if streaks.since_search >= policy.stuck_after:
        agent.owes_search, streaks.since_search = True, 0


def phase_of(policy: Policy, streaks: Streaks) -> Phase:
    """RULES: early, mid, late by experiment count; plateau overrides; a large rewrite returns the agent to early."""
    if streaks.small_keeps >= policy.plateau_after or streaks.without_keep >= policy.plateau_after:
        return Phase.PLATEAU
    age = streaks.experiments - streaks.early_from
    if age < policy.mid_from:
        return Phase.EARLY
    return Phase.MID if age < policy.late_from else Phase.LATE


def abandoned_in(state: CampaignState, agent: AgentState) -> tuple[str, ...]:
    """Techniques that the team abandoned in the direction of the agent's experiment."""
    theme = directions.theme_of(state, getattr(agent.open.duty, "direction", "") if agent.open else "")
    return tuple(technique for technique, where in state.abandoned if where == theme)


def closed_for(state: CampaignState, agent: AgentState) -> set[str]:
    """Every category that is closed to the agent's next experiment: by a counter, to the team, or by its direction."""
    outside = directions.outside(state, agent.member.name)
    return {*closed_categories(state.policy, agent.streaks), *state.closed, *outside}


def switches(state: CampaignState, agent: AgentState) -> bool:
    """Whether a counter keeps the agent from a category of its own direction, which it must leave for now."""
    mine = set(closed_categories(state.policy, agent.streaks))
    return bool(mine - directions.outside(state, agent.member.name))


def closed_categories(policy: Policy, streaks: Streaks) -> tuple[str, ...]:
    """The category that this agent must leave for its next experiment, when there is one."""
    if streaks.category_reverts >= policy.close_category_after:
        return (streaks.category,)
    return (streaks.polished,) if streaks.polish >= policy.polish_after else ()

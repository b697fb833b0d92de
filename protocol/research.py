"""When tries stop telling anything, somebody reads the record with a clean mind; the whole team is told."""

from __future__ import annotations

from math import exp, expm1
from typing import TYPE_CHECKING

from protocol.counters import approach_of
from protocol.messages import Verdict

if TYPE_CHECKING:
    from protocol.messages import ResearchReport
    from protocol.record import CampaignState, ExperimentState


def count(state: CampaignState, experiment: ExperimentState) -> None:
    """Move one agent's windows by its judged experiment; either of them may make the team owe a research."""
    agent, policy = state.agents[experiment.agent], state.policy
    if experiment.overall is not None:
        level = state.levels.get(experiment.base, 0.0) + experiment.overall.gain
        agent.recent = [*agent.recent, level][-policy.research_after :]
    if experiment.verdict is Verdict.INCORRECT:
        agent.incorrect.add(approach_of(state, experiment))
    spread = expm1(max(agent.recent, default=0.0) - min(agent.recent, default=0.0))
    if len(agent.recent) >= policy.research_after and spread < policy.research_within:
        low, high = exp(min(agent.recent)), exp(max(agent.recent))
        _owe(state, f"{len(agent.recent)} experiments of {experiment.agent} lie between {low:.3f}x and {high:.3f}x")
    elif len(agent.incorrect) >= policy.research_after_incorrect:
        _owe(state, f"{experiment.agent} was incorrect on {len(agent.incorrect)} different approaches")


def _owe(state: CampaignState, why: str) -> None:
    state.owes_research = state.owes_research or why


def reported(state: CampaignState, report: ResearchReport) -> None:
    """The insights go to every mind, and every agent's windows begin anew."""
    state.owes_research = ""
    state.insights = [*state.insights, *report.insights][-state.policy.insights :]
    for agent in state.agents.values():
        agent.recent.clear()
        agent.incorrect.clear()

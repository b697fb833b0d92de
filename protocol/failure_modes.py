"""The ways in which a campaign fools itself, seen in its ledger: each is named in the recap and acted upon.

``Symptoms`` is folded event by event, so that asking costs nothing; each finding names the action that the law takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import expm1
from typing import TYPE_CHECKING

from protocol.index import change_of

if TYPE_CHECKING:
    from protocol import events as ev
    from protocol.messages import Plan
    from protocol.record import AgentState, CampaignState, ExperimentState, LandingState


@dataclass
class Symptoms:
    """What the ledger shows. ``chased``, ``unattributed``, ``duplicates`` are of the round, the others of now.

    ``done`` says of each base that somebody may still start from which changes were run on it, by whom and as what.
    """

    chased: dict[str, int] = field(default_factory=dict[str, int])
    unattributed: list[str] = field(default_factory=list[str])
    hidden: dict[str, str] = field(default_factory=dict[str, str])
    errors: list[float] = field(default_factory=list[float])
    done: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict[str, dict[str, tuple[str, str]]])
    duplicates: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Finding:
    """One failure mode: whom or what it befell, what was seen, and what the law does about it."""

    mode: str
    subject: str
    seen: str
    action: str

    def __str__(self) -> str:
        return f"{self.mode} ({self.subject}): {self.seen}; {self.action}"


def failure_modes(state: CampaignState) -> tuple[Finding, ...]:
    """Everything that the ledger shows now, of the team and of each agent."""
    return (*_of_team(state), *(one for agent in state.agents.values() for one in _of_agent(state, agent)))


def failure_modes_of(state: CampaignState, name: str) -> tuple[Finding, ...]:
    """What one agent's mind should know: the team's failure modes and its own."""
    return (*_of_team(state), *_of_agent(state, state.agents[name]))


def _of_team(state: CampaignState) -> Iterator[Finding]:
    symptoms = state.symptoms
    for device, why in state.recalibrate.items():
        mode = "noise chasing" if symptoms.chased.get(device) else "drift of the incumbent"
        yield Finding(mode, device, why, "its A/A calibration is owed again")
    for what in symptoms.unattributed:
        yield Finding("attribution loss", "team", what, "a profile of it is owed")
    for workload, what in symptoms.hidden.items():
        yield Finding("per-workload hiding", workload, what, "a profile of main is owed")
    for category, why in state.closed.items():
        yield Finding("correctness drift", category, why, "the category is closed until an error falls")
    for what in symptoms.duplicates:
        yield Finding("duplicate work", "team", what, "the second is refused unless its plan says what differs")
    if state.unprofiled:
        seen = f"main's last large gain, {state.unprofiled[:12]}, has no profile"
        yield Finding("profile blindness", "main", seen, "plans on main are refused until one is reported")


def _of_agent(state: CampaignState, agent: AgentState) -> Iterator[Finding]:
    name, streaks = agent.member.name, agent.streaks
    if agent.owes_profile:
        seen = f"its last large gain, {agent.owes_profile[:12]}, has no profile"
        yield Finding("profile blindness", name, seen, "its plans are refused until one is reported")
    if streaks.polish >= state.policy.polish_after:
        seen = f"{streaks.polish} experiments in a row in '{streaks.polished}' moved less than the plateau's gain"
        yield Finding("local-optimum polish", name, seen, "the category is closed for its next experiment")


# ---------------------------------------------------------------- the fold


def count(state: CampaignState, experiment: ExperimentState) -> None:
    """Move the symptoms by one judged experiment."""
    assert experiment.plan is not None
    _count_duplicates(state, experiment, experiment.plan)
    if experiment.verdict is not None and experiment.verdict.kept:
        _count_errors(state, experiment, experiment.plan)
        _count_lines(state, experiment, experiment.plan)
        _count_workloads(state, experiment)


def _count_duplicates(state: CampaignState, experiment: ExperimentState, plan: Plan) -> None:
    work = change_of(experiment.base, plan.technique, plan.change)
    done = state.symptoms.done.setdefault(experiment.base, {})
    first = done.setdefault(work, (experiment.agent, experiment.id))
    if first[0] != experiment.agent:
        seen = f"{experiment.agent} and {first[0]} ran '{plan.technique}' on {experiment.base[:12]}"
        state.symptoms.duplicates.append(f"{seen} ({experiment.id}, {first[1]})")


def _count_errors(state: CampaignState, experiment: ExperimentState, plan: Plan) -> None:
    """Errors of KEEPs that only grow and are near the tolerance close the category of the last of them."""
    policy, symptoms = state.policy, state.symptoms
    checks = experiment.measurement.checks if experiment.measurement else ()
    worst = max((check.worst for check in checks), default=0.0)
    if symptoms.errors and worst < symptoms.errors[-1]:
        state.closed.clear()
    grows = symptoms.errors and worst > symptoms.errors[-1]
    symptoms.errors = ([*symptoms.errors, worst] if grows else [worst])[-policy.error_growth_after :]
    if len(symptoms.errors) >= policy.error_growth_after and worst >= policy.error_near_tolerance:
        trail = ", ".join(f"{error:.2g}" for error in symptoms.errors)
        state.closed[plan.category] = f"the worst error of the last keeps grew towards the tolerance: {trail} of it"


def _count_lines(state: CampaignState, experiment: ExperimentState, plan: Plan) -> None:
    changed = sum(experiment.lines)
    if not plan.rewrite and changed > state.policy.one_change_lines:
        state.symptoms.unattributed.append(f"{experiment.id} changed {changed} lines and is not said to be a rewrite")
        state.agents[experiment.agent].owes_profile = experiment.commit


def _count_workloads(state: CampaignState, experiment: ExperimentState) -> None:
    for name, estimate in experiment.workloads.items():
        if estimate.high < 0.0:
            state.symptoms.hidden[name] = f"kept {experiment.id} made it {-expm1(estimate.gain):.1%} slower"


def landed(state: CampaignState, experiment: ExperimentState, landing: LandingState | None, body: ev.Landed) -> None:
    """What was run on bases that main left behind is forgotten; a whole tree brings more than its one change."""
    reached = set(_bases(state))
    state.symptoms.done = {base: done for base, done in state.symptoms.done.items() if base in reached}
    if body.how == "whole tree":
        state.symptoms.unattributed.append(f"{experiment.id} landed as a whole tree, {body.commit[:12]}")
        state.unprofiled, state.unprofiled_twin = body.commit, ""


def _bases(state: CampaignState) -> Iterator[str]:
    """Every commit that an experiment may be on, now or later, and that exists already."""
    yield state.main
    for agent in state.agents.values():
        yield agent.kept_base
        yield from (state.experiments[ident].commit for ident in agent.unsettled)
        if agent.open is not None:
            yield getattr(agent.open.duty, "base", "")


def refused(state: CampaignState, experiment: ExperimentState, landing: LandingState | None) -> None:
    """A small gain that its verification did not find was noise; more than one, and the device is calibrated again."""
    if landing is None or landing.measured is None or experiment.overall is None:
        return
    if expm1(experiment.overall.gain) >= state.policy.plateau_gain:
        return
    device, chased = _device(state, experiment), state.symptoms.chased
    chased[device] = chased.get(device, 0) + 1
    if chased[device] >= state.policy.chased_after:
        state.recalibrate[device] = f"{chased[device]} small gains were not found again at their landing"


def main_measured(state: CampaignState, body: ev.MainMeasured) -> None:
    """Main against the baseline: has it drifted, and is a workload worse off than at the start?"""
    if body.estimate is None:
        return
    before = next((one for one in reversed(state.main_measured) if one.device == body.device), None)
    if not body.agrees:
        state.recalibrate[body.device] = "main's direct measurement disagrees with the product of its landings"
    elif before is not None and before.commit == body.commit and before.estimate is not None:
        apart = before.estimate.low > body.estimate.high or before.estimate.high < body.estimate.low
        if apart:
            state.recalibrate[body.device] = "the same main measured differently than before"
    for name, estimate in body.workloads.items():
        if estimate.high < 0.0:
            state.symptoms.hidden[name] = f"main is {-expm1(estimate.gain):.1%} slower there than the baseline"
            state.unprofiled, state.unprofiled_twin = body.commit, ""
        else:
            state.symptoms.hidden.pop(name, None)


def calibrated(state: CampaignState, device: str) -> None:
    """A device was calibrated again."""
    state.recalibrate.pop(device, None)
    state.symptoms.chased.pop(device, None)


def round_ended(state: CampaignState) -> None:
    """What belongs to the round was told in its recap."""
    state.symptoms.unattributed.clear()
    state.symptoms.duplicates.clear()


def refusal(state: CampaignState, name: str, plan: Plan, base: str) -> str | None:
    """Why this plan would repeat another agent's work; None when it would not, or says what differs."""
    done = state.symptoms.done.get(base, {})
    agent, ident = done.get(change_of(base, plan.technique, plan.change), (name, ""))
    if agent == name or plan.differs:
        return None
    return f"{agent} ran this very change on the same base ({ident}): propose another, or say in 'differs' what is new"


def _device(state: CampaignState, experiment: ExperimentState) -> str:
    return state.device_of(state.agents[experiment.agent])


def lines(state: CampaignState) -> tuple[str, ...]:
    """The findings as lines of a recap."""
    return tuple(str(finding) for finding in failure_modes(state))

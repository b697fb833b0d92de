"""Which duty an agent gets when it asks. Pure: the same state gives the same duty.

Order of precedence: the end, the baseline, other agents' landings, what the law owes (search, profile), main against
the baseline, and then the next experiment.
"""

from protocol.messages import (
    Baseline,
    Duty,
    Experiment,
    Profile,
    Remeasure,
    Rest,
    Search,
    Stop,
    Verdict,
    VerifyLanding,
)
from protocol.state import AgentState, CampaignState, LandingState

REST_SECONDS = 0.5


def next_duty(state: CampaignState, name: str, now: float) -> Duty:
    """The duty of agent ``name``, which has none open, at time ``now`` (seconds since the epoch)."""
    agent = state.agents[name]
    if state.baseline_refused:
        return Stop(why=state.baseline_refused)
    if _device(agent) not in state.baselines:
        why = ending(state, now)
        return Stop(why=why) if why else Baseline(id=_id(state, "b"), commit=state.started.commit)
    if len(state.baselines) < len({m.device for m in state.started.members}):
        return Rest(seconds=REST_SECONDS, why="waiting for the other agents' baselines")
    return _landing(state, name) or _owed(state, agent, now) or _last_words(state, now) or _experiment(state, name)


def ending(state: CampaignState, now: float) -> str:
    """Why no new experiment is started, or an empty string while the campaign goes on."""
    policy = state.policy
    if state.baseline_refused or state.stop:
        return state.baseline_refused or state.stop
    if policy.max_experiments is not None and spent_experiments(state) >= policy.max_experiments:
        return f"the budget of {policy.max_experiments} experiments is spent"
    if policy.max_minutes is not None and now - state.first_time - state.idle_time >= 60 * policy.max_minutes:
        return f"the budget of {policy.max_minutes:g} minutes is spent"
    if policy.max_dollars is not None and state.dollars >= policy.max_dollars > 0:
        return f"the budget of ${policy.max_dollars:.2f} is spent"
    if state.agents and all(_exhausted(state, name) for name in state.agents):
        return "no agent has another admissible idea"
    return ""


def finished(state: CampaignState, now: float) -> str:
    """Why the campaign is over: nothing runs, nothing waits to land, the last word on main is measured; else empty."""
    why = ending(state, now)
    if not why or state.landings or any(a.open and not _idle(a.open.duty) for a in state.agents.values()):
        return ""
    return "" if _owes_last_word(state) else why


def spent_experiments(state: CampaignState) -> int:
    """Experiments that count against the budget: run or running, lost ones excepted."""
    return sum(e.verdict is not Verdict.LOST for e in state.experiments.values())


def _idle(duty: Duty) -> bool:
    return isinstance(duty, Rest | Stop)


def _device(agent: AgentState) -> str:
    return agent.device.id if agent.device else agent.member.device


def _id(state: CampaignState, prefix: str) -> str:
    return f"{prefix}{state.duties + 1}"


def _exhausted(state: CampaignState, name: str) -> bool:
    return state.agents[name].exhausted_on == state.head_of(name) != ""


def _landing(state: CampaignState, name: str) -> Duty | None:
    """Verify the landing at the head of the queue, on another device than its author's when there is a live one."""
    for landing in state.landings.values():
        if not landing.candidate or landing.measured or _being_verified(state, landing):
            return None
        others = [a for n, a in state.agents.items() if n != landing.agent and a.alive]
        if name == landing.agent and others:
            return None
        return VerifyLanding(
            id=_id(state, "v"), experiment=landing.experiment, candidate=landing.candidate, main=landing.main
        )
    return None


def _being_verified(state: CampaignState, landing: LandingState) -> bool:
    duties = [a.open.duty for a in state.agents.values() if a.open]
    return any(isinstance(d, VerifyLanding) and d.candidate == landing.candidate for d in duties)


def _owed(state: CampaignState, agent: AgentState, now: float) -> Duty | None:
    if ending(state, now):
        return None
    if agent.owes_search:
        tries = state.policy.stuck_after
        return Search(id=_id(state, "s"), why=f"{tries} experiments in a row without a keep")
    if agent.owes_profile:
        return Profile(id=_id(state, "p"), commit=agent.owes_profile)
    if state.rounds and _owes_last_word(state) and not _measuring_main(state):
        measured = state.main_measured[-1].commit if state.main_measured else ""
        if measured != state.main and state.round_from == len(state.judged):
            return _remeasure(state, f"round {state.rounds} ended")
    return None


def _last_words(state: CampaignState, now: float) -> Duty | None:
    why = ending(state, now)
    if not why:
        return None
    if state.landings:
        return Rest(seconds=REST_SECONDS, why="a landing is being verified")
    if _measuring_main(state) or any(a.open and not _idle(a.open.duty) for a in state.agents.values()):
        return Rest(seconds=REST_SECONDS, why="the last duties are being done")
    if _owes_last_word(state):
        return _remeasure(state, "the campaign ends")
    return Stop(why=why)


def _owes_last_word(state: CampaignState) -> bool:
    moved = state.main != state.started.commit
    return moved and not (state.main_measured and state.main_measured[-1].commit == state.main)


def _measuring_main(state: CampaignState) -> bool:
    return any(a.open and isinstance(a.open.duty, Remeasure) for a in state.agents.values())


def _remeasure(state: CampaignState, why: str) -> Remeasure:
    return Remeasure(id=_id(state, "m"), base=state.started.commit, candidate=state.main, why=why)


def _experiment(state: CampaignState, name: str) -> Duty:
    if _exhausted(state, name):
        return Rest(seconds=REST_SECONDS, why="no admissible idea on this base; waiting for main to move")
    return Experiment(id=_id(state, "x"), base=state.head_of(name))

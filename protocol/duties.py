"""Which duty an agent gets when it asks. Pure: the same state gives the same duty.

Order of precedence: the end, the baseline, other agents' landings, what the law owes (search, profile), main against
the baseline, and then the next experiment.
"""

from protocol import directions, money, profiling, sweep
from protocol.messages import (
    Baseline,
    Duty,
    Experiment,
    Profile,
    Recheck,
    Remeasure,
    Research,
    ResolveMerge,
    Rest,
    Search,
    Stop,
    VerifyLanding,
)
from protocol.state import AgentState, CampaignState, LandingState
from protocol.stopping import early_stop

REST_SECONDS = 0.5


def next_duty(state: CampaignState, name: str, now: float) -> Duty:
    """The duty of agent ``name``, which has none open, at time ``now`` (seconds since the epoch)."""
    agent, ends = state.agents[name], ending(state, now)
    if ends and _is_finished(state):
        return Stop(why=ends)
    if state.paused and not ends:
        return Rest(seconds=REST_SECONDS, why=f"paused: {state.paused}")
    if state.device_of(agent) not in state.baselines:
        return _baseline(state, ends)
    if not ends and _awaits_baselines(state, now):
        return Rest(seconds=REST_SECONDS, why="waiting for the other agents' baselines")
    if landing := _landing(state, name, now):
        return landing
    return _last_words(state, ends) if ends else _owed(state, name) or _experiment(state, name)


def ending(state: CampaignState, now: float) -> str:
    """Why no new experiment is started, or an empty string while the campaign goes on."""
    policy = state.policy
    if told := state.finished or state.baseline_refused or state.stop or state.wrap_up:
        return told
    if policy.max_experiments is not None and spent_experiments(state) >= policy.max_experiments:
        return f"the budget of {policy.max_experiments} experiments is spent"
    idle = state.idle_time + state.paused_for(now)
    if policy.max_minutes is not None and now - state.first_time - idle >= 60 * policy.max_minutes:
        return f"the budget of {policy.max_minutes:g} minutes is spent"
    if spent := money.spent_up(state):
        return spent
    if enough := early_stop(state):
        return enough
    return "no agent has another admissible idea" if _all_exhausted(state, now) else ""


def _all_exhausted(state: CampaignState, now: float) -> bool:
    """Nobody whom the team still expects has an idea."""
    idle = len(state.index.exhausted) + len(state.index.absent)
    if idle < len(state.agents) and not money.limits_agents(state.policy):
        return False
    expected = [name for name, agent in state.agents.items() if not _gone(state, agent, now)]
    return bool(expected) and all(_is_done(state, name) for name in expected)


def finished(state: CampaignState, now: float) -> str:
    """Why the campaign is over: nothing runs, nothing waits to land, the last word on main is measured; else empty."""
    return ending(state, now) if _is_finished(state) else ""


def _is_finished(state: CampaignState) -> bool:
    """Whether nothing is left to do for a campaign that starts nothing more."""
    return not (state.landings or state.index.busy() or _owes_last_word(state))


def spent_experiments(state: CampaignState) -> int:
    """Experiments that count against the budget: run or running, lost ones excepted."""
    return len(state.experiments) - state.lost


def _gone(state: CampaignState, agent: AgentState, now: float) -> bool:
    """Whether the team goes on without this agent: it has been away for longer than a restart takes."""
    return not agent.alive and now - agent.absent_since > state.policy.absent_after


def _working(agent: AgentState) -> bool:
    """Whether this agent will ask again: it lives and was not told to stop."""
    return agent.alive and not (agent.open and isinstance(agent.open.duty, Stop))


def _baseline(state: CampaignState, ends: str) -> Duty:
    """For an agent on a device without a baseline. At the end one is still made when work on main needs this agent."""
    if ends and not state.landings and not _owes_last_word(state):
        return Rest(seconds=REST_SECONDS, why="the last duties are being done")
    return Baseline(id=_id(state, "b"), commit=state.started.commit)


def _awaits_baselines(state: CampaignState, now: float) -> bool:
    return any(not _gone(state, state.agents[name], now) for name in state.index.unmeasured)


def _id(state: CampaignState, prefix: str) -> str:
    return f"{prefix}{state.duties + 1}"


def _exhausted(state: CampaignState, name: str) -> bool:
    agent = state.agents[name]
    if state.failing(agent):
        return True
    done = not agent.owes_search and agent.exhausted_on != "" and directions.has_nothing_left(state, name)
    return done and not sweep.due_items(state, agent)


def _is_done(state: CampaignState, name: str) -> bool:
    """Whether this agent's mind is asked nothing more on this base."""
    return _exhausted(state, name) or bool(money.agent_is_spent(state, name))


def _landing(state: CampaignState, name: str, now: float) -> Duty | None:
    """The landing at the head of the queue: resolve its conflict, or verify it on another device than its author's when
    there is a live one."""
    landing = next(iter(state.landings.values()), None)
    if landing is None or landing.main != state.main or _being_handled(state, landing):
        return None
    if not landing.candidate:
        return _resolve(state, landing) if landing.conflict and landing.resolution is None else None
    if landing.measured:
        return None
    if state.policy.allow_mixed and not _may_verify(state, name, landing, now):
        return None
    authors = state.device_of(state.agents[landing.agent])
    elsewhere = any(_working(a) and state.device_of(a) != authors for a in _alike(state, landing.agent))
    if elsewhere and state.device_of(state.agents[name]) == authors:
        return None
    plan = state.experiments[landing.experiment].plan
    return VerifyLanding(
        id=_id(state, "v"),
        experiment=landing.experiment,
        candidate=landing.candidate,
        main=landing.main,
        against=landing.merged.candidate if landing.merged else "",
        technique=plan.technique if plan else "",
    )


def _alike(state: CampaignState, name: str) -> list[AgentState]:
    """Agents on devices of the same SKU as this one's; everybody unless SKUs may differ."""
    if not state.policy.allow_mixed:
        return list(state.agents.values())
    sku = state.sku_of(state.agents[name])
    return [agent for agent in state.agents.values() if state.sku_of(agent) == sku]


def _may_verify(state: CampaignState, name: str, landing: LandingState, now: float) -> bool:
    """On the author's SKU alone, while somebody is left there: a gain on another kind of device is another gain."""
    alike = _alike(state, landing.agent)
    return state.agents[name] in alike or all(_gone(state, agent, now) for agent in alike)


def _resolve(state: CampaignState, landing: LandingState) -> ResolveMerge:
    """A mind gets a conflict: whoever asks first, for the ledger and git hold all that it takes."""
    experiment = state.experiments[landing.experiment]
    assert experiment.plan is not None
    return ResolveMerge(
        id=_id(state, "g"),
        experiment=experiment.id,
        base=experiment.base,
        candidate=experiment.commit,
        main=landing.main,
        files=landing.conflict,
        plan=experiment.plan,
        parameters=experiment.parameters,
        main_plans=tuple(other.plan for other in state.partners(experiment) if other.plan),
    )


def _being_handled(state: CampaignState, landing: LandingState) -> bool:
    names = [*state.index.with_open("verify"), *state.index.with_open("resolve")]
    duties = [current.duty for name in names if (current := state.agents[name].open)]
    return any(isinstance(d, VerifyLanding | ResolveMerge) and d.experiment == landing.experiment for d in duties)


def _owed(state: CampaignState, name: str) -> Duty | None:
    agent = state.agents[name]
    if state.failing(agent) or money.agent_is_spent(state, name):
        return None
    if state.device_of(agent) in state.recalibrate and not _calibrating(state, state.device_of(agent)):
        return Baseline(id=_id(state, "b"), commit=state.started.commit)
    research = state.owes_research and not state.index.with_open("research")
    if (agent.owes_rechecks or agent.owes_search or research) and not money.search_is_affordable(state):
        return _await_money()
    if agent.owes_rechecks:
        return _recheck(state, agent.owes_rechecks[0])
    if agent.owes_search:
        tries = state.policy.stuck_after
        return Search(id=_id(state, "s"), why=f"{tries} experiments in a row without a keep")
    if commit := profiling.owed(state, name):
        return Profile(id=_id(state, "p"), commit=commit)
    if research:
        return Research(id=_id(state, "r"), why=state.owes_research)
    if _measuring_main(state) or state.main == state.started.commit:
        return None
    if state.rounds > state.measured_in_round and _owes_last_word(state):
        return _remeasure(state, f"round {state.rounds} ended")
    if len(state.verdicts) - state.measured_at >= state.policy.recheck_every:
        return _remeasure(state, f"{state.policy.recheck_every} experiments since main was measured")
    return None


def _recheck(state: CampaignState, ident: str) -> Recheck:
    experiment = state.experiments[ident]
    assert experiment.plan is not None
    return Recheck(id=_id(state, "k"), experiment=ident, technique=experiment.plan.technique, base=experiment.base)


def _calibrating(state: CampaignState, device: str) -> bool:
    return any(state.device_of(state.agents[name]) == device for name in state.index.with_open("baseline"))


def _last_words(state: CampaignState, ends: str) -> Duty:
    if state.landings:
        return Rest(seconds=REST_SECONDS, why="a landing is being verified")
    if _measuring_main(state) or state.index.busy():
        return Rest(seconds=REST_SECONDS, why="the last duties are being done")
    return _remeasure(state, "the campaign ends") if _owes_last_word(state) else Stop(why=ends)


def _owes_last_word(state: CampaignState) -> bool:
    moved = state.main != state.started.commit
    return moved and not (state.main_measured and state.main_measured[-1].commit == state.main)


def _measuring_main(state: CampaignState) -> bool:
    return bool(state.index.with_open("remeasure"))


def _remeasure(state: CampaignState, why: str) -> Remeasure:
    return Remeasure(id=_id(state, "m"), base=state.started.commit, candidate=state.main, why=why)


def _experiment(state: CampaignState, name: str) -> Duty:
    if state.failing(state.agents[name]):
        return Rest(seconds=REST_SECONDS, why="its mind failed too often in a row; see the log")
    if _exhausted(state, name):
        return Rest(seconds=REST_SECONDS, why="no admissible idea on this base; waiting for main to move")
    if spent := money.agent_is_spent(state, name):
        return Rest(seconds=REST_SECONDS, why=spent)
    if not money.experiment_is_affordable(state):
        return _await_money()
    return Experiment(id=_id(state, "x"), base=state.head_of(name), direction=directions.of_next(state, name))


def _await_money() -> Rest:
    return Rest(seconds=REST_SECONDS, why="the rest of the money is in flight; waiting for what is left of it")

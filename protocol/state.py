"""The state of a campaign: the fold of its events, and nothing else.

``fold(events)`` rebuilds it after a crash; ``apply(state, event)`` moves it by one. No rule lives here: the rules read
this state (``duties``, ``admission``, ``counters``) and the coordinator appends what they decide. What the state holds
is in ``protocol.record``.
"""

from collections.abc import Callable, Iterable
from typing import Any

from protocol import calls, counters, failure_modes, findings, profiling, recheck, research, stopping, stuck, sweep
from protocol import events as ev
from protocol.messages import Category, Experiment, Role, Standing, Verdict
from protocol.record import (
    AgentState,
    CampaignState,
    DirectionState,
    ExperimentState,
    LandingState,
    Merged,
    OpenDuty,
)
from protocol.submission import SubmissionState

_ON_VERDICT = (
    counters.count, stuck.count, sweep.count, stopping.count, research.count, recheck.count, failure_modes.count,
)  # fmt: skip

__all__ = ["AgentState", "CampaignState", "ExperimentState", "LandingState", "OpenDuty", "apply", "fold", "role_of"]


def _campaign_started(state: CampaignState, event: ev.Event, body: ev.CampaignStarted) -> None:
    state.start = body
    state.main = body.commit
    state.first_time = event.time
    state.categories = {category.name: category for category in body.categories}
    state.round_mains, state.round_began = [body.commit], event.time
    state.agents = {m.name: AgentState(m, place=place, absent_since=event.time) for place, m in enumerate(body.members)}


def _agent_joined(state: CampaignState, event: ev.Event, body: ev.AgentJoined) -> None:
    agent = state.agents[event.agent]
    agent.device, agent.incarnation, agent.alive = body.device, body.incarnation, True


def _agent_lost(state: CampaignState, event: ev.Event, body: ev.AgentLost) -> None:
    agent = state.agents[event.agent]
    agent.alive, agent.absent_since, agent.open = False, event.time, None


def _duty_given(state: CampaignState, event: ev.Event, body: ev.DutyGiven) -> None:
    agent = state.agents[event.agent]
    agent.open = OpenDuty(body.ask, body.incarnation, body.duty, event.time)
    agent.last_ask = body.ask
    state.duties += 1
    duty = body.duty
    if isinstance(duty, Experiment):
        agent.tries += 1
        state.experiments[duty.id] = ExperimentState(
            duty.id, event.agent, duty.base, duty.direction, started=event.time
        )


def _close(state: CampaignState, agent: str, duty_id: str, lost: bool = False) -> None:
    asked = state.agents[agent]
    if asked.open is None or getattr(asked.open.duty, "id", "") != duty_id:
        return
    calls.closed(asked, asked.open.duty.kind, duty_id, lost)
    asked.open = None


def _duty_lost(state: CampaignState, event: ev.Event, body: ev.DutyLost) -> None:
    _close(state, event.agent, body.duty, lost=True)


def _pay(state: CampaignState, agent: str, dollars: float) -> None:
    state.dollars += dollars
    state.agents[agent].paid.dollars += dollars


def _model_called(state: CampaignState, event: ev.Event, body: ev.ModelCalled) -> None:
    calls.count(state, event.agent, body.call)


def _duty_failed(state: CampaignState, event: ev.Event, body: ev.DutyFailed) -> None:
    state.agents[event.agent].failures += 1
    _pay(state, event.agent, body.dollars)
    _close(state, event.agent, body.duty)


def _baseline_measured(state: CampaignState, event: ev.Event, body: ev.BaselineMeasured) -> None:
    state.noise[body.device] = body.noise
    slim = body.model_copy(update={"measurement": body.measurement.without_samples()})
    if body.device not in state.baselines:
        state.baselines[body.device] = slim
    state.index.measured(body.device)
    failure_modes.calibrated(state, body.device)
    _close(state, event.agent, body.duty)


def _baseline_refused(state: CampaignState, event: ev.Event, body: ev.BaselineRefused) -> None:
    agent = state.agents[event.agent]
    if state.device_of(agent) in state.recalibrate:
        failure_modes.calibrated(state, state.device_of(agent))  # what was known of its noise stands
    else:
        state.baseline_refused = body.why
    _close(state, event.agent, body.duty)


def _plan_admitted(state: CampaignState, event: ev.Event, body: ev.PlanAdmitted) -> None:
    experiment = state.experiments[body.experiment]
    experiment.plan = body.plan
    experiment.dollars += body.dollars
    state.agents[event.agent].failures = 0
    state.numbered += 1
    experiment.number = state.numbered
    _pay(state, event.agent, body.dollars)
    state.planned[body.plan.technique] = state.planned.get(body.plan.technique, 0) + 1
    sweep.admitted(state, experiment)


def _plan_refused(state: CampaignState, event: ev.Event, body: ev.PlanRefused) -> None:
    state.experiments[body.experiment].refused.append(body.why)
    state.experiments[body.experiment].last_refused = body
    state.agents[event.agent].tries += 1
    _pay(state, event.agent, body.dollars)


def _nothing_proposed(state: CampaignState, event: ev.Event, body: ev.NothingProposed) -> None:
    experiment = state.experiments.pop(body.experiment)
    agent = state.agents[event.agent]
    _pay(state, event.agent, body.dollars)
    agent.failures = agent.failures + 1 if body.failed else 0
    if body.failed:
        _close(state, event.agent, body.experiment)
        return
    if counters.switches(state, agent):
        # there was nowhere to switch to: the closed category opens again
        agent.streaks.category_reverts = agent.streaks.polish = 0
    else:
        _found_nothing(state, agent, experiment)
    sweep.nothing_proposed(state, agent, body.passed_over)
    _close(state, event.agent, body.experiment)


def _found_nothing(state: CampaignState, agent: AgentState, experiment: ExperimentState) -> None:
    if agent.exhausted_on != experiment.base:
        agent.exhausted_on, agent.spent = experiment.base, set()
    direction = state.directions.get(experiment.direction)
    agent.spent |= set(direction.claim.allowed if direction else state.categories)


def _experiment_reported(state: CampaignState, event: ev.Event, body: ev.ExperimentReported) -> None:
    experiment = state.experiments[body.experiment]
    experiment.commit, experiment.parameters, experiment.lines = body.commit, body.parameters, body.lines
    experiment.screened, experiment.measurement = body.screened, body.measurement.without_samples()
    experiment.dollars += body.dollars
    _pay(state, event.agent, body.dollars)
    _close(state, event.agent, body.experiment)


def _experiment_judged(state: CampaignState, event: ev.Event, body: ev.ExperimentJudged) -> None:
    experiment = state.experiments[body.experiment]
    _close(state, event.agent, body.experiment, lost=body.verdict is Verdict.LOST)
    if experiment.plan is None:
        del state.experiments[body.experiment]
        return
    experiment.verdict, experiment.reason, experiment.ended = body.verdict, body.reason, event.time
    state.verdicts.append(experiment.id)
    state.index.count(experiment)
    state.lost += body.verdict is Verdict.LOST
    if body.decision is not None:
        experiment.overall, experiment.workloads = body.decision.overall, body.decision.workloads
    if body.verdict.kept:
        state.landings[experiment.id] = LandingState(experiment.id, experiment.agent)
        state.agents[experiment.agent].unsettled.append(experiment.id)
        experiment.landing = "queued"
        state.agents[experiment.agent].tip = experiment.commit
        step = experiment.overall.gain if experiment.overall else 0.0
        state.levels[experiment.commit] = state.levels.get(experiment.base, 0.0) + step
        state.lineage.grow(experiment.commit, experiment.base, experiment.id)
    sweep.over(state, experiment)
    if body.verdict is Verdict.LOST:
        _unplan(state, experiment.plan.technique)
        return
    for follow in _ON_VERDICT:
        follow(state, experiment)
    if finding := findings.of_experiment(state, experiment):
        findings.note(state, finding)
    direction = state.directions.get(experiment.direction)
    if direction is not None:
        direction.tries += 1
        direction.keeps += body.verdict is Verdict.KEEP


def _unplan(state: CampaignState, technique: str) -> None:
    """A plan that was lost was not tried."""
    state.planned[technique] -= 1
    if not state.planned[technique]:
        del state.planned[technique]


def _search_reported(state: CampaignState, event: ev.Event, body: ev.SearchReported) -> None:
    agent = state.agents[event.agent]
    agent.search, agent.owes_search, agent.failures = body.report, False, 0
    agent.exhausted_on, agent.streaks.since_search = "", 0
    state.searches[body.report.id] = body.report
    findings.note(state, findings.of_search(state, event.agent, body.report))
    _pay(state, event.agent, body.report.dollars)
    _close(state, event.agent, body.report.id)


def _profile_reported(state: CampaignState, event: ev.Event, body: ev.ProfileReported) -> None:
    profiling.reported(state, event.agent, body.report)
    _close(state, event.agent, body.duty)


def _landing_conflicted(state: CampaignState, event: ev.Event, body: ev.LandingConflicted) -> None:
    landing = state.landings[body.experiment]
    landing.candidate, landing.main, landing.measured, landing.merged = "", body.main, None, None
    landing.conflict, landing.resolution = body.files, None


def _merge_resolved(state: CampaignState, event: ev.Event, body: ev.MergeResolved) -> None:
    if body.experiment in state.landings:
        state.landings[body.experiment].resolution = body
    _pay(state, event.agent, body.dollars)
    _close(state, event.agent, body.duty)


def _recheck_reported(state: CampaignState, event: ev.Event, body: ev.RecheckReported) -> None:
    recheck.reported(state, event.agent, body.report)
    _pay(state, event.agent, body.report.dollars)
    _close(state, event.agent, body.report.id)


def _research_reported(state: CampaignState, event: ev.Event, body: ev.ResearchReported) -> None:
    research.reported(state, body.report)
    _pay(state, event.agent, body.report.dollars)
    _close(state, event.agent, body.report.id)


def _team_stuck(state: CampaignState, event: ev.Event, body: ev.TeamStuck) -> None:
    stuck.owe_searches(state, body.times)


def _submission_proposed(state: CampaignState, event: ev.Event, body: ev.SubmissionProposed) -> None:
    state.proposed = body.why


def _landing_prepared(state: CampaignState, event: ev.Event, body: ev.LandingPrepared) -> None:
    landing = state.landings[body.experiment]
    landing.merged = None
    if body.against and landing.measured:
        landing.merged = Merged(landing.candidate, landing.how, landing.measured)
    landing.candidate, landing.main, landing.how, landing.measured = body.candidate, body.main, body.how, None


def _landing_measured(state: CampaignState, event: ev.Event, body: ev.LandingMeasured) -> None:
    if body.experiment in state.landings:
        slim = body.model_copy(update={"measurement": body.measurement.without_samples()})
        state.landings[body.experiment].measured = slim
    _close(state, event.agent, body.duty)


def _landed(state: CampaignState, event: ev.Event, body: ev.Landed) -> None:
    state.main = body.commit
    state.levels[body.commit] = state.levels.get(body.before, 0.0) + body.gain.gain
    whole = body.how == "whole tree"
    state.lineage.grow(body.commit, state.experiments[body.experiment].base if whole else body.before, body.experiment)
    state.landed.append(body)
    landing, experiment = _settled(state, body.experiment), state.experiments[body.experiment]
    experiment.landing = "landed"
    state.agents[experiment.agent].kept_base = ""  # what it held on for is on main
    profiling.landed(state, experiment, landing, body)
    failure_modes.landed(state, experiment, landing, body)
    _note_landing(state, body, landing)


def _landing_refused(state: CampaignState, event: ev.Event, body: ev.LandingRefused) -> None:
    landing, experiment = _settled(state, body.experiment), state.experiments[body.experiment]
    experiment.landing = f"refused: {body.why}"
    failure_modes.refused(state, experiment, landing)
    _note_landing(state, body, landing)


def _note_landing(state: CampaignState, body: ev.Landed | ev.LandingRefused, landing: LandingState | None) -> None:
    if finding := findings.of_landing(state, body, landing.measured if landing else None):
        findings.note(state, finding)


def _settled(state: CampaignState, experiment: str) -> LandingState | None:
    landing = state.landings.pop(experiment, None)
    if landing is not None:
        state.agents[landing.agent].unsettled.remove(experiment)
    return landing


def _interacts_badly(state: CampaignState, event: ev.Event, body: ev.InteractsBadly) -> None:
    state.bad_pairs.append(body)


def _mended(state: CampaignState, event: ev.Event, body: ev.Mended) -> None:
    """Nothing that the law knows changed."""


def _main_measured(state: CampaignState, event: ev.Event, body: ev.MainMeasured) -> None:
    failure_modes.main_measured(state, body)
    state.main_measured.append(body.model_copy(update={"measurement": body.measurement.without_samples()}))
    state.measured_at = len(state.verdicts)
    state.measured_in_round = state.rounds
    _close(state, event.agent, body.duty)


def _method_ablated(state: CampaignState, event: ev.Event, body: ev.MethodAblated) -> None:
    state.ablations.append(body.model_copy(update={"measurement": None}))


def _direction_claimed(state: CampaignState, event: ev.Event, body: ev.DirectionClaimed) -> None:
    claim = body.direction
    _stand_down(state, event.agent)
    state.directions[claim.id] = DirectionState(claim)
    state.agents[event.agent].direction = claim.id
    state.dealt = max(state.dealt, claim.round)
    for name in claim.allowed:
        state.claims[name] = claim.id
        state.categories.setdefault(name, Category(name=name, role=role_of(state, event.agent), about=claim.about))


def _direction_seconded(state: CampaignState, event: ev.Event, body: ev.DirectionSeconded) -> None:
    _stand_down(state, event.agent)
    state.agents[event.agent].direction = body.direction
    state.directions[body.direction].seconds[event.agent] = None


def _stand_down(state: CampaignState, agent: str) -> None:
    """The agent seconds nobody any more."""
    before = state.directions.get(state.agents[agent].direction)
    if before is not None:
        before.seconds.pop(agent, None)


def _direction_closed(state: CampaignState, event: ev.Event, body: ev.DirectionClosed) -> None:
    direction = state.directions[body.direction]
    direction.standing, direction.why, direction.goes_on = body.standing, body.why, body.goes_on
    for name in direction.claim.allowed:
        state.claims.pop(name, None)
    if body.standing is Standing.FAILED:
        state.agents[direction.claim.owner].failed |= dict.fromkeys(direction.claim.allowed, state.main)


def _direction_proposed(state: CampaignState, event: ev.Event, body: ev.DirectionProposed) -> None:
    """The claim that follows, if any, says it all."""


def _round_ended(state: CampaignState, event: ev.Event, body: ev.RoundEnded) -> None:
    state.rounds = body.number
    state.round_from = len(state.verdicts)
    failure_modes.round_ended(state)
    state.round_log.append(body)
    state.round_mains.append(state.main)
    state.round_began, state.round_idle = event.time, state.idle_time
    for name, agent in state.agents.items():
        agent.kept_base = body.keeps_base.get(name, "")
    for name in body.searches:
        state.agents[name].owes_search, state.agents[name].streaks.since_search = True, 0


def _team_phase_ended(state: CampaignState, event: ev.Event, body: ev.TeamPhaseEnded) -> None:
    state.team_over, state.branches = body.why, body.branches
    for agent in state.agents.values():
        agent.direction = agent.kept_base = ""


def _notes_written(state: CampaignState, event: ev.Event, body: ev.NotesWritten) -> None:
    state.noted, state.notes_failed = body, ""


def _notes_failed(state: CampaignState, event: ev.Event, body: ev.NotesFailed) -> None:
    state.notes_failed = body.why


def _stop_requested(state: CampaignState, event: ev.Event, body: ev.StopRequested) -> None:
    state.stop = state.stop or body.why


def _paused(state: CampaignState, event: ev.Event, body: ev.Paused) -> None:
    state.paused, state.paused_at = body.why, event.time


def _pause_ended(state: CampaignState, event: ev.Event, body: ev.PauseEnded) -> None:
    state.idle_time += state.paused_for(event.time)
    state.paused = ""


def _wrap_up_requested(state: CampaignState, event: ev.Event, body: ev.WrapUpRequested) -> None:
    state.wrap_up = state.wrap_up or body.why


def _resumed(state: CampaignState, event: ev.Event, body: ev.Resumed) -> None:
    state.idle_time += state.paused_for(state.last_time)
    state.paused = ""
    state.wrap_up = "" if state.finished else state.wrap_up  # one that was not carried out yet still stands
    state.stop = state.finished = ""
    for agent in state.agents.values():
        calls.interrupted(agent)
        agent.open, agent.alive, agent.absent_since, agent.failures = None, False, event.time, 0
    state.idle_time += max(0.0, event.time - state.last_time)


def _finished(state: CampaignState, event: ev.Event, body: ev.Finished) -> None:
    state.finished = body.why


def _submission_started(state: CampaignState, event: ev.Event, body: ev.SubmissionStarted) -> None:
    state.submissions.append(SubmissionState(body))


def _submission(state: CampaignState, tag: str, version: int) -> SubmissionState:
    return next(s for s in state.submissions if (s.started.tag, s.started.version) == (tag, version))


def _submission_measured(state: CampaignState, event: ev.Event, body: ev.SubmissionMeasured) -> None:
    _submission(state, body.tag, body.version).runs.append(body.model_copy(update={"measurement": None}))


def _submission_refused(state: CampaignState, event: ev.Event, body: ev.SubmissionRefused) -> None:
    _submission(state, body.tag, body.version).over = f"refused: {body.why}"


def _submitted(state: CampaignState, event: ev.Event, body: ev.Submitted) -> None:
    state.submitted = body
    if body.version:
        _submission(state, body.tag, body.version).over = body.branch


def _pushed(state: CampaignState, event: ev.Event, body: ev.Pushed) -> None:
    state.pushed.append(body)


_HANDLERS: dict[type[ev.Body], Callable[[CampaignState, ev.Event, Any], None]] = {
    ev.CampaignStarted: _campaign_started,
    ev.AgentJoined: _agent_joined,
    ev.AgentLost: _agent_lost,
    ev.DutyGiven: _duty_given,
    ev.DutyLost: _duty_lost,
    ev.DutyFailed: _duty_failed,
    ev.ModelCalled: _model_called,
    ev.BaselineMeasured: _baseline_measured,
    ev.BaselineRefused: _baseline_refused,
    ev.PlanAdmitted: _plan_admitted,
    ev.PlanRefused: _plan_refused,
    ev.NothingProposed: _nothing_proposed,
    ev.ExperimentReported: _experiment_reported,
    ev.ExperimentJudged: _experiment_judged,
    ev.SearchReported: _search_reported,
    ev.ProfileReported: _profile_reported,
    ev.LandingConflicted: _landing_conflicted,
    ev.MergeResolved: _merge_resolved,
    ev.RecheckReported: _recheck_reported,
    ev.ResearchReported: _research_reported,
    ev.TeamStuck: _team_stuck,
    ev.SubmissionProposed: _submission_proposed,
    ev.LandingPrepared: _landing_prepared,
    ev.LandingMeasured: _landing_measured,
    ev.InteractsBadly: _interacts_badly,
    ev.Landed: _landed,
    ev.Mended: _mended,
    ev.LandingRefused: _landing_refused,
    ev.MainMeasured: _main_measured,
    ev.MethodAblated: _method_ablated,
    ev.DirectionClaimed: _direction_claimed,
    ev.DirectionSeconded: _direction_seconded,
    ev.DirectionClosed: _direction_closed,
    ev.DirectionProposed: _direction_proposed,
    ev.RoundEnded: _round_ended,
    ev.TeamPhaseEnded: _team_phase_ended,
    ev.NotesWritten: _notes_written,
    ev.NotesFailed: _notes_failed,
    ev.StopRequested: _stop_requested,
    ev.Paused: _paused,
    ev.PauseEnded: _pause_ended,
    ev.WrapUpRequested: _wrap_up_requested,
    ev.Resumed: _resumed,
    ev.Finished: _finished,
    ev.SubmissionStarted: _submission_started,
    ev.SubmissionMeasured: _submission_measured,
    ev.SubmissionRefused: _submission_refused,
    ev.Submitted: _submitted,
    ev.Pushed: _pushed,
}


_OF_ALL = (ev.CampaignStarted, ev.Resumed, ev.TeamStuck)
"""Events that change every agent; any other changes its own agent alone."""


def apply(state: CampaignState, event: ev.Event) -> None:
    """Move the state by one event, in place."""
    _HANDLERS[type(event.body)](state, event, event.body)
    for name in state.agents if isinstance(event.body, _OF_ALL) else (event.agent,):
        if name in state.agents:
            state.index.refresh(state, name)
    state.last_time, state.last_seq = event.time, event.seq


def fold(events: Iterable[ev.Event]) -> CampaignState:
    """The state after all of these events."""
    state = CampaignState()
    for event in events:
        apply(state, event)
    return state


def role_of(state: CampaignState, agent: str) -> Role:
    """The role of an agent by name."""
    return state.agents[agent].member.role

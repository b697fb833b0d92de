"""The lead of the team, without Ray: applies the law of ``protocol`` to what agents say and keeps the ledger.

Synchronous and free of clocks, git and processes of its own, so that the actor, the tests and the simulator drive the
same code. Every method that an agent calls may be called twice with the same arguments and answers the same.
"""

from collections.abc import Callable

from protocol import calls, directions, duties, rounds, steering, stuck
from protocol import events as ev
from protocol.admission import refusal
from protocol.held_out import held_to
from protocol.journal import Journal
from protocol.ledger import Ledger
from protocol.messages import (
    Baseline,
    Decision,
    DeviceInfo,
    Duty,
    Experiment,
    Measurement,
    ModelCall,
    Noise,
    Outcome,
    Plan,
    Profile,
    Recheck,
    Remeasure,
    Research,
    ResolveMerge,
    Rest,
    Search,
    Stop,
    Verdict,
    VerifyLanding,
)
from protocol.sequential import agrees, combine, decide
from protocol.simplicity import is_simpler
from protocol.snapshot import distance, restore, snapshot_of
from protocol.state import CampaignState, apply
from protocol.verdict import judge

MAX_REFUSALS = 3


class Coordination:
    """Owns the state. ``clock`` gives seconds since the epoch.

    With a ``Ledger`` every call is durable when it returns, with a ``Journal`` after the journal's next commit.
    """

    def __init__(self, ledger: Ledger | Journal, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._clock = clock
        self.state: CampaignState
        self.state, self._remembered = restore(ledger)

    # -- the ledger

    def record(self, agent: str, *bodies: ev.AnyBody) -> None:
        """Append and apply."""
        self._record([(agent, body) for body in bodies])

    def _record(self, entries: list[tuple[str, ev.AnyBody]]) -> None:
        for event in self._ledger.append(self._clock(), entries):
            apply(self.state, event)

    def remember(self, after: int | None = None) -> bool:
        """Leave a snapshot of the state beside the events, when that many came after the last one; whether it did."""
        if self.state.last_seq - self._remembered < (distance(self.state.last_seq) if after is None else after):
            return False
        self._ledger.remember(snapshot_of(self.state, whole=not self._remembered))
        self._remembered = self.state.last_seq
        return True

    # -- agents

    def join(self, agent: str, incarnation: str, device: DeviceInfo, pid: int) -> None:
        """An agent's process says that it lives. What an older process of it had open is lost."""
        state = self.state.agents[agent]
        if state.incarnation == incarnation and state.alive:
            return
        lost = self._loss(agent, "its agent was restarted")
        self.record(agent, *lost, ev.AgentJoined(incarnation=incarnation, device=device, pid=pid))

    def lost(self, agent: str, why: str) -> None:
        """An agent's process died. Its experiment in flight is marked lost."""
        if not self.state.agents[agent].alive:
            return
        self.record(agent, *self._loss(agent, why), ev.AgentLost(why=why))
        self.advance()

    def resume(self) -> None:
        """Go on after a crash or a stop: nothing that was in flight survives.

        ``Resumed`` comes first, so that the time since the last event counts as idle.
        """
        lost = {name: body for name in self.state.agents for body in self._loss(name, "the campaign was interrupted")}
        self._record([("", ev.Resumed(lost=tuple(lost))), *lost.items()])

    def _loss(self, agent: str, why: str) -> tuple[ev.AnyBody, ...]:
        """What ends the duty that an agent has open without a report; nothing when it has none."""
        current = self.state.agents[agent].open
        if current is None or isinstance(current.duty, Rest | Stop):
            return ()
        if isinstance(current.duty, Experiment):
            return (ev.ExperimentJudged(experiment=current.duty.id, verdict=Verdict.LOST, reason=why),)
        return (ev.DutyLost(duty=current.duty.id, why=why),)

    def next_duty(self, agent: str, incarnation: str, ask: str) -> Duty:
        """The duty for one request. The same ``ask`` gets the same duty, so a request may be repeated.

        A process that was declared dead, or that another one replaced, gets ``Stop`` and changes nothing.
        """
        asker = self.state.agents[agent]
        if not asker.alive or asker.incarnation != incarnation:
            return Stop(why=f"this process of {agent} was given up or replaced")
        if asker.open is not None and asker.open.ask == ask:
            return asker.open.duty
        if asker.last_ask == ask:
            return Rest(seconds=duties.REST_SECONDS, why="this request was answered before")
        if lost := self._loss(agent, "its agent asked for another duty"):
            self.record(agent, *lost)
        duty = self._duty(agent)
        if not isinstance(duty, Rest):
            self.record(agent, ev.DutyGiven(ask=ask, incarnation=incarnation, duty=duty))
        return duty

    def _duty(self, agent: str) -> Duty:
        """By the law; an agent that is to experiment has a direction before it gets its duty."""
        now = self._clock()
        duty = duties.next_duty(self.state, agent, now)
        if not isinstance(duty, Experiment):
            return duty
        if claims := directions.due(self.state, agent, now):
            self._record(claims)
            duty = duties.next_duty(self.state, agent, now)
        return duty

    def admit(self, agent: str, experiment: str, plan: Plan, commits: tuple[str, ...], dollars: float) -> str:
        """Empty when the plan may run; else why not, in one sentence. The commits exist already."""
        current = self.state.experiments.get(experiment)
        if current is None or not self._is_open(agent, experiment):
            return "this experiment is not open any more"
        if current.plan is not None:
            return "" if current.plan == plan else "this experiment has its one plan already: start another experiment"
        before = current.last_refused
        if before is not None and (before.plan, before.dollars) == (plan, dollars):
            return before.why  # the same message again: it was paid for once
        why = refusal(self.state, agent, plan, current.base)
        if why:
            self.record(agent, ev.PlanRefused(experiment=experiment, plan=plan, why=why, dollars=dollars))
            return why
        self.record(agent, ev.PlanAdmitted(experiment=experiment, plan=plan, commits=commits, dollars=dollars))
        return ""

    def spent(self, agent: str, call: ModelCall) -> None:
        """Count one answer of a model; the same one twice counts once."""
        if not calls.is_counted(self.state, agent, call):
            self.record(agent, ev.ModelCalled(call=call))

    def refuse(self, agent: str, experiment: str, plan: Plan, why: str, dollars: float) -> None:
        """Record that a plan's edit may not even be committed, so that its mind is told and its cost is counted."""
        current = self.state.experiments.get(experiment)
        if current is not None and current.plan is None and self._is_open(agent, experiment):
            self.record(agent, ev.PlanRefused(experiment=experiment, plan=plan, why=why, dollars=dollars))

    # -- reports

    def report(self, agent: str, body: ev.AnyBody) -> None:
        """Take in the result of a duty; a report that was taken in already, or came too late, changes nothing.

        Raises ``ValueError`` when it does not answer the duty that has its id.
        """
        duty_id = _duty_of(body)
        if not self._is_open(agent, duty_id):
            return
        current = self.state.agents[agent].open
        assert current is not None
        if not _answers(body, current.duty):
            raise ValueError(f"this {body.kind} does not answer the duty {duty_id} ({current.duty.kind})")
        self.record(agent, *self._with_consequences(agent, body))
        self.advance()

    def _with_consequences(self, agent: str, body: ev.AnyBody) -> tuple[ev.AnyBody, ...]:
        """What the law adds to a report, to be written in the same transaction."""
        if isinstance(body, ev.ExperimentReported | ev.NothingProposed):
            return self._experiment_over(body)
        if isinstance(body, ev.LandingMeasured):
            return (body.model_copy(update={"decision": self._decide(body.measurement, body.device)}),)
        if isinstance(body, ev.MainMeasured):
            return (self._main_measured(body),)
        if isinstance(body, ev.SearchReported):
            return body, *directions.from_search(self.state, agent, body.report)
        if isinstance(body, ev.BaselineMeasured) and self._is_blind(body):
            # What was planted could not be seen: claim nothing near it.
            blind = 2 * max(self.state.policy.planted_gain, body.planted_gain)
            noise = body.noise.model_copy(update={"floor": max(body.noise.floor, blind)})
            return (body.model_copy(update={"noise": noise}),)
        if isinstance(body, ev.BaselineMeasured) and body.null_kept:
            why = "A/A found a difference between two identical kernels: the device is too disturbed to judge on"
            return body, ev.BaselineRefused(duty=body.duty, why=why)
        return (body,)

    def _is_blind(self, body: ev.BaselineMeasured) -> bool:
        """A calibration that missed what was planted, or a later one that found what was not there."""
        again = body.device in self.state.baselines
        return not body.planted_found if not body.null_kept else again

    def _experiment_over(self, body: ev.ExperimentReported | ev.NothingProposed) -> tuple[ev.AnyBody, ...]:
        """An experiment whose plan was admitted has a number and gets a verdict; without a plan it has neither."""
        admitted = self.state.experiments[body.experiment].plan is not None
        if isinstance(body, ev.ExperimentReported):
            if admitted:
                return body, self._judged(body)
            return (ev.NothingProposed(experiment=body.experiment, why="reported without an admitted plan"),)
        if not admitted:
            return (body,)
        why = f"given up after its plan was admitted: {body.why}"
        return (ev.ExperimentJudged(experiment=body.experiment, verdict=Verdict.CRASHED, reason=why),)

    def _judged(self, body: ev.ExperimentReported) -> ev.ExperimentJudged:
        agent = self.state.experiments[body.experiment].agent
        decision = self._decide(body.measurement, self.state.device_of(self.state.agents[agent]))
        verdict, reason = judge(body.measurement, decision, self.simpler(body.measurement), self.state.policy)
        return ev.ExperimentJudged(experiment=body.experiment, verdict=verdict, reason=reason, decision=decision)

    def simpler(self, measurement: Measurement) -> bool:
        """Whether the candidate's code is measurably simpler than its base's."""
        return is_simpler(measurement.simplicity, self.state.policy)

    def _decide(self, measurement: Measurement, device: str) -> Decision | None:
        if measurement.outcome is not Outcome.MEASURED:
            return None
        noise, policy = self._noise(device), self.state.policy
        decision = decide(measurement.restarts, self.state.started.weights, noise, policy)
        return held_to(decision, measurement, noise, policy)

    def _noise(self, device: str) -> Noise | None:
        return self.state.noise.get(device)

    def _main_measured(self, body: ev.MainMeasured) -> ev.MainMeasured:
        decision = self._decide(body.measurement, body.device)
        product = combine(self.state.steps_to(body.commit))
        if decision is None:
            return body.model_copy(update={"product": product.gain, "agrees": False})
        compared = self._is_of_one_sku(body)
        return body.model_copy(
            update={
                "estimate": decision.overall,
                "workloads": decision.workloads,
                "product": product.gain,
                "compared": compared,
                "agrees": not compared or agrees(product, decision.overall),
            }
        )

    def _is_of_one_sku(self, body: ev.MainMeasured) -> bool:
        """Whether all steps of main were measured on the SKU that main is measured on now."""
        if not self.state.policy.allow_mixed:
            return True
        authors = {self.state.experiments[landed.experiment].agent for landed in self.state.landed}
        here = [agent for agent in self.state.agents.values() if self.state.device_of(agent) == body.device]
        skus = {self.state.sku_of(agent) for agent in (*here, *(self.state.agents[name] for name in authors))}
        return len(skus) <= 1

    def _is_open(self, agent: str, duty_id: str) -> bool:
        current = self.state.agents[agent].open
        return current is not None and getattr(current.duty, "id", None) == duty_id

    # -- the campaign

    def request_stop(self, why: str) -> None:
        """Drain: no new experiment is started."""
        if not self.state.stop:
            self.record("", ev.StopRequested(why=why))
        self.advance()

    def steer(self, request: steering.Request) -> None:
        """Take in what a person asked for; the same request twice changes nothing."""
        self._record(steering.answer(self.state, request))
        self.advance()

    def _stuck(self, now: float) -> bool:
        """Record that the team is stuck, if it is; true when a round of it has to end for fresh directions."""
        follows = stuck.what_follows(self.state)
        if not follows or duties.ending(self.state, now):
            return False
        self.record("", *follows)
        return not self.state.team_over and len(self.state.verdicts) > self.state.round_from

    def advance(self) -> None:
        """Append what follows from the state by itself: the end of a round, the end of the campaign."""
        if self.state.start is None or self.state.finished:
            return
        now = self._clock()
        afresh = self._stuck(now)
        if afresh or rounds.round_is_over(self.state, now):
            self._record(rounds.end(self.state, afresh))
            if not duties.ending(self.state, now):
                self._record(directions.due_to_all(self.state))
        if why := rounds.team_phase_is_over(self.state):
            self._record(rounds.end_team_phase(self.state, why))
        why = duties.finished(self.state, now)
        if why:
            self.record("", ev.Finished(why=why))


_ANSWERS: dict[type[Duty], tuple[type[ev.Body], ...]] = {
    Baseline: (ev.BaselineMeasured, ev.BaselineRefused),
    Experiment: (ev.ExperimentReported, ev.NothingProposed),
    Search: (ev.SearchReported, ev.DutyFailed),
    Profile: (ev.ProfileReported,),
    Research: (ev.ResearchReported, ev.DutyFailed),
    Recheck: (ev.DutyFailed,),
}


def _answers(body: ev.AnyBody, duty: Duty) -> bool:
    """Whether a report is about what its duty asked for."""
    if isinstance(body, ev.LandingMeasured) and isinstance(duty, VerifyLanding):
        return body.experiment == duty.experiment
    if isinstance(body, ev.MergeResolved) and isinstance(duty, ResolveMerge):
        return body.experiment == duty.experiment
    if isinstance(body, ev.RecheckReported) and isinstance(duty, Recheck):
        return (body.report.experiment, body.report.technique) == (duty.experiment, duty.technique)
    if isinstance(body, ev.MainMeasured) and isinstance(duty, Remeasure):
        return (body.base, body.commit) == (duty.base, duty.candidate)
    return isinstance(body, _ANSWERS.get(type(duty), ()))


def _duty_of(body: ev.AnyBody) -> str:
    if isinstance(body, ev.ExperimentReported | ev.NothingProposed):
        return body.experiment
    if isinstance(body, ev.SearchReported | ev.RecheckReported | ev.ResearchReported):
        return body.report.id
    if isinstance(
        body,
        ev.BaselineMeasured
        | ev.BaselineRefused
        | ev.DutyFailed
        | ev.ProfileReported
        | ev.LandingMeasured
        | ev.MergeResolved
        | ev.MainMeasured,
    ):
        return body.duty
    raise TypeError(f"{body.kind} is not the report of a duty")

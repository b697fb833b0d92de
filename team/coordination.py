"""The lead of the team, without Ray: applies the law of ``protocol`` to what agents say and keeps the ledger.

Synchronous and free of clocks, git and processes of its own, so that the actor, the tests and the simulator drive the
same code. Every method that an agent calls may be called twice with the same arguments and answers the same.
"""

from collections.abc import Callable

from protocol import duties, rounds
from protocol import events as ev
from protocol.admission import refusal
from protocol.ledger import Ledger
from protocol.messages import (
    Decision,
    DeviceInfo,
    Duty,
    Experiment,
    Measurement,
    Noise,
    Outcome,
    Plan,
    Rest,
    Stop,
    Verdict,
)
from protocol.sequential import agrees, combine, decide
from protocol.simplicity import is_simpler
from protocol.state import CampaignState, apply, fold
from protocol.verdict import judge

MAX_REFUSALS = 3


class Coordination:
    """Owns the ledger and the state. ``clock`` gives seconds since the epoch."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._clock = clock
        self.state: CampaignState = fold(ledger.events())

    # -- the ledger

    def record(self, agent: str, *bodies: ev.AnyBody) -> None:
        """Append and apply; returns only when the events are durable."""
        for event in self._ledger.append(self._clock(), [(agent, body) for body in bodies]):
            apply(self.state, event)

    # -- agents

    def join(self, agent: str, incarnation: str, device: DeviceInfo, pid: int) -> None:
        """An agent's process says that it lives. What an older process of it had open is lost."""
        state = self.state.agents[agent]
        if state.incarnation == incarnation and state.alive:
            return
        self._lose_open(agent, "its agent was restarted")
        self.record(agent, ev.AgentJoined(incarnation=incarnation, device=device, pid=pid))

    def lost(self, agent: str, why: str) -> None:
        """An agent's process died. Its experiment in flight is marked lost."""
        if not self.state.agents[agent].alive:
            return
        self._lose_open(agent, why)
        self.record(agent, ev.AgentLost(why=why))

    def resume(self) -> None:
        """Go on after a crash or a stop: nothing that was in flight survives."""
        open_agents = [name for name, agent in self.state.agents.items() if agent.open]
        for name in open_agents:
            self._lose_open(name, "the campaign was interrupted")
        self.record("", ev.Resumed(lost=tuple(open_agents)))

    def _lose_open(self, agent: str, why: str) -> None:
        current = self.state.agents[agent].open
        if current is None or isinstance(current.duty, Rest | Stop):
            return
        if isinstance(current.duty, Experiment):
            self.record(agent, ev.ExperimentJudged(experiment=current.duty.id, verdict=Verdict.LOST, reason=why))
        else:
            self.record(agent, ev.DutyLost(duty=current.duty.id, why=why))

    def next_duty(self, agent: str, incarnation: str, ask: str) -> Duty:
        """The duty for one request. The same ``ask`` gets the same duty, so a request may be repeated."""
        current = self.state.agents[agent].open
        if current is not None and current.ask == ask:
            return current.duty
        if current is not None:
            self._lose_open(agent, "its agent asked for another duty")
        duty = duties.next_duty(self.state, agent, self._clock())
        if not isinstance(duty, Rest):
            self.record(agent, ev.DutyGiven(ask=ask, incarnation=incarnation, duty=duty))
        return duty

    def admit(self, agent: str, experiment: str, plan: Plan, commits: tuple[str, ...], dollars: float) -> str:
        """Empty when the plan may run; else why not, in one sentence. The commits exist already."""
        current = self.state.experiments.get(experiment)
        if current is None or not self._is_open(agent, experiment):
            return "this experiment is not open any more"
        if current.plan is not None:
            return ""
        why = refusal(self.state, agent, plan, current.base)
        if why:
            self.record(agent, ev.PlanRefused(experiment=experiment, plan=plan, why=why))
            return why
        self.record(agent, ev.PlanAdmitted(experiment=experiment, plan=plan, commits=commits, dollars=dollars))
        return ""

    # -- reports

    def report(self, agent: str, body: ev.AnyBody) -> None:
        """Take in the result of a duty; a report that was taken in already, or came too late, changes nothing."""
        duty_id = _duty_of(body)
        if not self._is_open(agent, duty_id):
            return
        self.record(agent, *self._with_consequences(body))
        self.advance()

    def _with_consequences(self, body: ev.AnyBody) -> tuple[ev.AnyBody, ...]:
        """What the law adds to a report, to be written in the same transaction."""
        if isinstance(body, ev.ExperimentReported):
            return body, self._judged(body)
        if isinstance(body, ev.LandingMeasured):
            return (body.model_copy(update={"decision": self._decide(body.measurement, body.device)}),)
        if isinstance(body, ev.MainMeasured):
            return (self._main_measured(body),)
        if isinstance(body, ev.BaselineMeasured) and body.null_kept:
            why = "A/A found a difference between two identical kernels: the device is too disturbed to judge on"
            return body, ev.BaselineRefused(duty=body.duty, why=why)
        return (body,)

    def _judged(self, body: ev.ExperimentReported) -> ev.ExperimentJudged:
        agent = self.state.experiments[body.experiment].agent
        decision = self._decide(body.measurement, self.state.agents[agent].member.device)
        verdict, reason = judge(body.measurement, decision, self.simpler(body.measurement), self.state.policy)
        return ev.ExperimentJudged(experiment=body.experiment, verdict=verdict, reason=reason, decision=decision)

    def simpler(self, measurement: Measurement) -> bool:
        """Whether the candidate's code is measurably simpler than its base's."""
        return is_simpler(measurement.simplicity, self.state.policy)

    def _decide(self, measurement: Measurement, device: str) -> Decision | None:
        if measurement.outcome is not Outcome.MEASURED:
            return None
        return decide(measurement.restarts, self.state.started.weights, self._noise(device), self.state.policy)

    def _noise(self, device: str) -> Noise | None:
        return self.state.noise.get(device)

    def _main_measured(self, body: ev.MainMeasured) -> ev.MainMeasured:
        decision = self._decide(body.measurement, body.device)
        product = combine([landed.gain for landed in self.state.landed])
        if decision is None:
            return body.model_copy(update={"product": product.gain, "agrees": False})
        return body.model_copy(
            update={
                "estimate": decision.overall,
                "workloads": decision.workloads,
                "product": product.gain,
                "agrees": agrees(product, decision.overall),
            }
        )

    def _is_open(self, agent: str, duty_id: str) -> bool:
        current = self.state.agents[agent].open
        return current is not None and getattr(current.duty, "id", "") == duty_id

    # -- the campaign

    def request_stop(self, why: str) -> None:
        """Drain: no new experiment is started."""
        if not self.state.stop:
            self.record("", ev.StopRequested(why=why))
        self.advance()

    def advance(self) -> None:
        """Append what follows from the state by itself: the end of a round, the end of the campaign."""
        if self.state.start is None or self.state.finished:
            return
        if rounds.round_is_over(self.state):
            self.record("", ev.RoundEnded(number=self.state.rounds + 1, recap=rounds.recap(self.state)))
        why = duties.finished(self.state, self._clock())
        if why:
            self.record("", ev.Finished(why=why))


def _duty_of(body: ev.AnyBody) -> str:
    if isinstance(body, ev.ExperimentReported | ev.NothingProposed):
        return body.experiment
    if isinstance(body, ev.SearchReported):
        return body.report.id
    if isinstance(
        body, ev.BaselineMeasured | ev.BaselineRefused | ev.ProfileReported | ev.LandingMeasured | ev.MainMeasured
    ):
        return body.duty
    raise TypeError(f"{body.kind} is not the report of a duty")

"""The invariants of a campaign, held against its events by a reader of its own that shares no code with the fold."""

from collections.abc import Mapping
from pathlib import Path

from audit_team import TeamAudit

from protocol import events as ev
from protocol.counters import closed_categories
from protocol.ledger import Ledger
from protocol.messages import (
    Duty,
    Experiment,
    Outcome,
    Plan,
    Position,
    Recheck,
    Remeasure,
    Research,
    ResolveMerge,
    Rest,
    Search,
    Stop,
    Strategy,
    SweepItem,
    Verdict,
    VerifyLanding,
)
from protocol.policy import Policy
from protocol.sequential import decide
from protocol.simplicity import is_simpler
from protocol.state import CampaignState
from protocol.verdict import judge

FRUITLESS = 24
"""Times in a row that an agent may find nothing while nothing else happens: each direction, each item of the sweep,
twice over. More is a circle: an agent that is given what it may not touch."""
_FRUITLESS_KINDS = ("duty_given", "nothing_proposed")


class Audit:
    """Reads every event once and complains about the first that breaks the law."""

    def __init__(self, path: Path, policy: Policy, weights: Mapping[str, float], speed: Mapping[str, float]) -> None:
        self._ledger = Ledger(path)
        self._policy, self._weights, self._speed = policy, weights, speed
        self.seq = 0
        self.main = "base"
        self.lives: dict[str, str] = {}
        self.devices: dict[str, str] = {}
        self.noise: dict[str, ev.BaselineMeasured] = {}
        self.open: dict[str, Duty] = {}
        self.plans: dict[str, ev.PlanAdmitted] = {}
        self.reports: dict[str, ev.ExperimentReported] = {}
        self.verdicts: dict[str, Verdict] = {}
        self.authors: dict[str, str] = {}
        self.streak: dict[str, int] = {}
        self.owed: set[str] = set()
        self.in_vain: dict[str, int] = {}
        self.stuck = 0
        self.swept: dict[str, str] = {}
        self.strategy = Strategy()
        self.before: set[str] = set()
        self.closed_lifts: set[str] = set()
        self.kept_from: set[str] = set()
        self.exhausted: set[str] = set()
        self.fruitless: dict[str, int] = {}
        self.asks: set[str] = set()
        self.prepared: dict[str, ev.LandingPrepared] = {}
        self.verified: dict[str, set[tuple[str, str]]] = {}
        self.resolved: dict[str, str] = {}
        self.settled: set[str] = set()
        self.measured_main = ""
        self.dollars = 0.0
        self.charged: dict[str, float] = {}
        self.stopped = self.finished = self.team_over = False
        self.held: dict[str, tuple[str, str]] = {}
        self.directions: dict[str, ev.DirectionClaimed] = {}
        self.steps: dict[str, float] = {}
        self.best = speed["base"]
        self.team = TeamAudit(policy)

    def close(self) -> None:
        self._ledger.close()

    def read_on(self, state: CampaignState) -> None:
        """Take in the new events, then compare with what the coordinator believes."""
        for event in self._ledger.events(after=self.seq):
            assert event.seq == self.seq + 1, "the ledger has a gap"
            self.seq = event.seq
            if event.body.kind not in _FRUITLESS_KINDS:
                self.fruitless.clear()
            getattr(self, f"_{event.body.kind}", lambda *_: None)(event.agent, event.body)
            self.team.take(event.agent, event.body)
            assert self._spent() <= (self._policy.max_experiments or 10**9), "over budget"
            self._pay(event.agent, event.body)
        self._compare(state)

    def _pay(self, agent: str, body: ev.Body) -> None:
        """Money spent, and what open duties of minds may still cost, stay within the budget at every event."""
        cost = body.report.dollars if isinstance(body, ev.SearchReported) else getattr(body, "dollars", 0.0)
        self.dollars += cost
        self.charged[agent] = self.charged.get(agent, 0.0) + cost if agent in self.open else 0.0
        if self._policy.max_dollars is None:
            return
        each = self._policy.max_dollars * self._policy.duty_share
        paid = [name for name, duty in self.open.items() if isinstance(duty, Experiment | Search | ResolveMerge)]
        in_flight = sum(each - self.charged.get(name, 0.0) for name in paid)
        assert self.dollars + in_flight <= self._policy.max_dollars + 1e-9, "money in flight is over budget"

    def _compare(self, state: CampaignState) -> None:
        assert state.last_seq == self.seq, "the coordinator believes what is not in the ledger"
        assert state.main == self.main
        kept_from = {c for agent in state.agents.values() for c in closed_categories(self._policy, agent.streaks)}
        kept_from |= state.closed.keys()
        self.kept_from = kept_from
        given_up = {name for name, _ in state.abandoned}
        lifts = self.strategy.heavy_lifts.get(Position.UNKNOWN, ())
        self.closed_lifts = {one.technique for one in lifts if one.category in kept_from or one.technique in given_up}
        given_up = {name for name, why in state.swept.items() if "had no idea" in why}
        assert self.before <= given_up, "the sweep out of its order"
        assert {e.id for e in state.experiments.values() if e.plan is not None} == self.plans.keys()
        assert sorted(e.number for e in state.experiments.values() if e.plan) == list(range(1, len(self.plans) + 1))
        assert {e.id: e.verdict for e in state.judged} == {i: v for i, v in self.verdicts.items() if i in self.plans}
        assert self.plans.keys() - self.verdicts.keys() <= {getattr(duty, "id", "") for duty in self.open.values()}, (
            "an experiment was lost without a verdict"
        )
        kept = {i for i, v in self.verdicts.items() if v.kept}
        assert state.landings.keys() == kept - self.settled, "a kept commit was forgotten"
        believed = {n: a.open.duty for n, a in state.agents.items() if a.open and not _idle(a.open.duty)}
        assert believed == self.open, "a duty was forgotten"
        assert {n for n, a in state.agents.items() if a.alive} == self.lives.keys()

    def _spent(self) -> int:
        done = sum(v is not Verdict.LOST for i, v in self.verdicts.items() if i in self.plans)
        return done + sum(isinstance(duty, Experiment) for duty in self.open.values())

    # ------------------------------------------------------------ one method per kind of event

    def _campaign_started(self, agent: str, body: ev.CampaignStarted) -> None:
        self.strategy = body.strategy
        self.in_vain = {member.name: 0 for member in body.members}

    def _agent_joined(self, agent: str, body: ev.AgentJoined) -> None:
        assert agent not in self.open, "a restarted agent's duty was not given up"
        self.lives[agent], self.devices[agent] = body.incarnation, body.device.id

    def _agent_lost(self, agent: str, body: ev.AgentLost) -> None:
        assert agent not in self.open, "a dead agent's duty was not given up"
        del self.lives[agent]

    def _duty_given(self, agent: str, body: ev.DutyGiven) -> None:
        duty = body.duty
        assert self.lives.get(agent) == body.incarnation, "a dead process got a duty"
        assert agent not in self.open, "two open duties"
        assert body.ask not in self.asks, "one request, two duties"
        self.asks.add(body.ask)
        if isinstance(duty, Rest | Stop):
            return
        assert not self.finished, "work after the end"
        self.open[agent] = duty
        if isinstance(duty, Experiment):
            assert not self.stopped, "a new experiment after the stop"
            assert self.streak.get(agent, 0) < self._policy.stuck_after, "an experiment while a search is owed"
            assert agent not in self.owed, "an experiment before the search that the stuck team owes"
            assert duty.id not in self.authors
            self.authors[duty.id] = agent
        elif isinstance(duty, Search):
            owes = self.streak.get(agent, 0) >= self._policy.stuck_after or agent in self.owed
            assert owes, "a search that nobody owes"
        elif isinstance(duty, Recheck):
            assert duty.technique in self.strategy.field_evidence, "a re-check of what no card vouches for"
            assert not self.verdicts[duty.experiment].kept, "a re-check of what did not regress"
        elif isinstance(duty, VerifyLanding):
            self._may_verify(agent, duty)

    def _may_verify(self, agent: str, duty: VerifyLanding) -> None:
        prepared = self.prepared[duty.experiment]
        assert (duty.candidate, duty.main, duty.against) == (prepared.candidate, prepared.main, prepared.against)
        assert duty.main == self.main, "verified against an old main"
        assert list(self.open.values()).count(duty) == 1, "verified twice at once"
        author = self.devices[self.authors[duty.experiment]]
        if self.devices[agent] == author:
            assert {self.devices[name] for name in self.lives} == {author}, "verified at home with another device there"

    def _close(self, agent: str, duty_id: str) -> Duty:
        duty = self.open.pop(agent)
        assert getattr(duty, "id", "") == duty_id, "a report for a duty that is not open"
        return duty

    def _duty_lost(self, agent: str, body: ev.DutyLost) -> None:
        if agent in self.open:
            assert not isinstance(self._close(agent, body.duty), Experiment), "a lost experiment needs a verdict"

    def _baseline_measured(self, agent: str, body: ev.BaselineMeasured) -> None:
        self._close(agent, body.duty)
        self.noise[body.device] = body

    def _direction_claimed(self, agent: str, body: ev.DirectionClaimed) -> None:
        claim = body.direction
        assert claim.owner == agent
        assert claim.id not in self.directions, "a direction claimed twice"
        assert agent not in {owner for _, owner in self.held.values()}, "an agent owns two directions"
        assert not self.held.keys() & set(claim.allowed), "a category claimed twice at once"
        assert not set(claim.allowed) & set(claim.forbidden)
        self.directions[claim.id] = body
        self.held |= dict.fromkeys(claim.allowed, (claim.id, agent))

    def _direction_seconded(self, agent: str, body: ev.DirectionSeconded) -> None:
        assert body.direction in {ident for ident, _ in self.held.values()}, "seconds a closed direction"
        assert agent not in {owner for _, owner in self.held.values()}, "owns a direction and seconds another"

    def _direction_closed(self, agent: str, body: ev.DirectionClosed) -> None:
        assert body.direction in {ident for ident, _ in self.held.values()}, "closed twice"
        self.held = {name: held for name, held in self.held.items() if held[0] != body.direction}

    def _round_ended(self, agent: str, body: ev.RoundEnded) -> None:
        assert not self.held, "a direction outlived its round"
        assert not self.team_over, "a round after the team phase"
        self.streak |= dict.fromkeys(body.searches, self._policy.stuck_after)

    def _team_phase_ended(self, agent: str, body: ev.TeamPhaseEnded) -> None:
        assert not self.held, "directions after the team phase"
        assert not self.team_over, "the team phase ended twice"
        self.team_over = True

    def _plan_admitted(self, agent: str, body: ev.PlanAdmitted) -> None:
        duty = self.open[agent]
        assert isinstance(duty, Experiment)
        assert duty.id == body.experiment
        if duty.direction:
            assert body.plan.category in self.directions[duty.direction].direction.allowed, "outside its direction"
        assert body.experiment not in self.plans, "admitted twice"
        self._may_pass_by(agent, body.plan)
        self._may_sweep(agent, body.plan)
        self.plans[body.experiment] = body

    def _may_pass_by(self, agent: str, plan: Plan) -> None:
        """After five reverts in a row of this agent, no plan passes by a heavy lift without a reason."""
        if self.in_vain[agent] < self._policy.plateau_after:
            return
        planned = {p.plan.technique for i, p in self.plans.items() if self.verdicts.get(i) is not Verdict.LOST}
        duty = self.open[agent]
        claim = self.directions.get(duty.direction) if isinstance(duty, Experiment) else None
        lifts = self.strategy.heavy_lifts[Position.UNKNOWN]
        mine = {lift.technique for lift in lifts if claim is None or lift.category in claim.direction.allowed}
        untried = mine - planned - self.closed_lifts  # some are closed to others alone: it may well take one of those
        passed = {one.name for one in plan.passed_over}
        assert plan.technique in mine - planned or untried <= passed, "a heavy lift was passed by"

    def _may_sweep(self, agent: str, plan: Plan) -> None:
        """Items of the sweep are done in their order, one an experiment, and no two agents are at the same.

        An item is skipped when a counter or somebody's direction keeps the agent from all of its categories.
        """
        for one in plan.passed_over:
            self.swept.setdefault(one.name, "passed over")
        if not plan.sweep:
            return
        flying = {p.plan.sweep for i, p in self.plans.items() if i not in self.verdicts}
        opened = [i.name for i in self.strategy.sweep if i.name not in self.swept and i.name not in flying]
        assert plan.sweep in opened, "an item of the sweep twice"
        earlier = opened[: opened.index(plan.sweep)]
        self.before |= {i.name for i in self.strategy.sweep if i.name in earlier and not self._is_barred(agent, i)}

    def _is_barred(self, agent: str, item: SweepItem) -> bool:
        duty = self.open[agent]
        assert isinstance(duty, Experiment)
        if duty.direction:
            barred = set(item.categories).difference(self.directions[duty.direction].direction.allowed)
        else:
            barred = {name for name in item.categories if name in self.held and self.held[name][1] != agent}
        return bool(item.categories) and {*barred, *self.kept_from}.issuperset(item.categories)

    def _nothing_proposed(self, agent: str, body: ev.NothingProposed) -> None:
        self._close(agent, body.experiment)
        assert body.experiment not in self.plans, "an experiment vanished after it was admitted"
        self.exhausted.add(agent)
        self.fruitless[agent] = self.fruitless.get(agent, 0) + 1
        assert self.fruitless[agent] <= FRUITLESS, "a mind without an idea is asked again and again"
        for one in body.passed_over:
            self.swept.setdefault(one.name, "passed over")

    def _experiment_reported(self, agent: str, body: ev.ExperimentReported) -> None:
        self._close(agent, body.experiment)
        assert body.experiment in self.plans, "reported without an admitted plan"
        assert body.experiment not in self.reports, "counted twice"
        self.reports[body.experiment] = body

    def _experiment_judged(self, agent: str, body: ev.ExperimentJudged) -> None:
        assert body.experiment not in self.verdicts, "judged twice"
        report = self.reports.get(body.experiment)
        if report is None:
            assert body.verdict in (Verdict.LOST, Verdict.CRASHED), "a verdict without samples"
            if agent in self.open:
                self._close(agent, body.experiment)
        else:
            assert body.verdict is self._verdict(report, self.devices[agent]), "a verdict that its samples do not give"
        self.verdicts[body.experiment] = body.verdict
        if body.experiment in self.plans and body.verdict is not Verdict.LOST:
            self.streak[agent] = 0 if body.verdict.kept else self.streak.get(agent, 0) + 1
            self.in_vain[agent] = 0 if body.verdict.kept else self.in_vain[agent] + 1
            self.swept.setdefault(self.plans[body.experiment].plan.sweep, "done")
            if body.verdict.kept:
                self.stuck = 0
                self.owed.discard(agent)

    def _verdict(self, body: ev.ExperimentReported | ev.LandingMeasured, device: str) -> Verdict:
        seen, decision = body.measurement, None
        if seen.outcome is Outcome.MEASURED:
            decision = decide(seen.restarts, self._weights, self.noise[device].noise, self._policy)
        return judge(seen, decision, is_simpler(seen.simplicity, self._policy), self._policy)[0]

    def _search_reported(self, agent: str, body: ev.SearchReported) -> None:
        self._close(agent, body.report.id)
        self.streak[agent] = 0
        self.owed.discard(agent)

    def _team_stuck(self, agent: str, body: ev.TeamStuck) -> None:
        assert all(self.in_vain[name] or name in self.exhausted for name in self.lives), "stuck with a fresh KEEP"
        self.stuck += 1
        assert body.times == self.stuck
        self.owed = set(self.in_vain)
        self.streak.clear()

    def _submission_proposed(self, agent: str, body: ev.SubmissionProposed) -> None:
        assert self.stuck == self._policy.ceiling_after, "submission proposed far from the ceiling"

    def _recheck_reported(self, agent: str, body: ev.RecheckReported) -> None:
        assert isinstance(self._close(agent, body.report.id), Recheck)

    def _research_reported(self, agent: str, body: ev.ResearchReported) -> None:
        assert isinstance(self._close(agent, body.report.id), Research)

    def _profile_reported(self, agent: str, body: ev.ProfileReported) -> None:
        self._close(agent, body.duty)

    def _landing_prepared(self, agent: str, body: ev.LandingPrepared) -> None:
        assert self.verdicts[body.experiment].kept
        assert body.experiment not in self.settled
        assert body.main == self.main
        if body.against:
            assert (body.against, body.main) in self.verified[body.experiment], "against a merge that did not beat main"
        elif body.how == "resolved":
            assert self.resolved.pop(body.experiment), "nobody resolved it"
        else:
            self.verified[body.experiment] = set()
        self.prepared[body.experiment] = body

    def _landing_conflicted(self, agent: str, body: ev.LandingConflicted) -> None:
        assert self.verdicts[body.experiment].kept
        assert body.main == self.main
        self.verified[body.experiment] = set()
        self.resolved.pop(body.experiment, None)

    def _merge_resolved(self, agent: str, body: ev.MergeResolved) -> None:
        assert isinstance(self._close(agent, body.duty), ResolveMerge)
        assert body.experiment not in self.resolved, "resolved twice"
        self.resolved[body.experiment] = body.commit

    def _interacts_badly(self, agent: str, body: ev.InteractsBadly) -> None:
        assert body.experiment not in self.settled
        assert set(body.others) <= self.settled, "a pair with what main does not hold"

    def _landing_measured(self, agent: str, body: ev.LandingMeasured) -> None:
        duty = self._close(agent, body.duty)
        assert isinstance(duty, VerifyLanding)
        if self._verdict(body, self.devices[agent]).kept:
            self.verified[body.experiment].add((duty.candidate, duty.base))

    def _landed(self, agent: str, body: ev.Landed) -> None:
        assert body.before == self.main, "main jumped"
        verified = self.verified[body.experiment]
        between = {base for commit, base in verified if commit == body.commit}
        proven = body.before in between or any((merge, body.before) in verified for merge in between)
        assert proven, "landed without its verification"
        loss = self._speed[body.before] - self._speed[body.commit]
        assert loss <= self._policy.threshold, "main became slower"
        assert self.best - self._speed[body.commit] <= self._policy.threshold, "main became slower step by step"
        self.best = max(self.best, self._speed[body.commit])
        self.main = body.commit
        self.settled.add(body.experiment)
        self.steps[body.commit] = self.steps.get(body.before, 0.0) + body.gain.gain

    def _landing_refused(self, agent: str, body: ev.LandingRefused) -> None:
        assert self.verdicts[body.experiment].kept
        assert body.experiment not in self.settled
        self.settled.add(body.experiment)

    def _main_measured(self, agent: str, body: ev.MainMeasured) -> None:
        assert isinstance(self._close(agent, body.duty), Remeasure)
        self.measured_main = body.commit
        assert abs(body.product - self.steps.get(body.commit, 0.0)) < 1e-9, (
            "a product of other steps than the measured ones"
        )

    def _stop_requested(self, agent: str, body: ev.StopRequested) -> None:
        self.stopped = True

    def _resumed(self, agent: str, body: ev.Resumed) -> None:
        self.stopped = self.finished = False
        self.lives.clear()
        assert set(body.lost) == self.open.keys()
        self.open = {}

    def _finished(self, agent: str, body: ev.Finished) -> None:
        assert not self.finished, "finished twice"
        assert self.open == {}, "the end while a duty is open"
        assert not {i for i, v in self.verdicts.items() if v.kept} - self.settled, "the end while a landing waits"
        assert self.main in ("base", self.measured_main), "the end before main was measured"
        self.finished = True


def _idle(duty: Duty) -> bool:
    return isinstance(duty, Rest | Stop)

"""What the law asks of directions, rounds and duties, held against the events by a reader that shares no code with it.

``audit.Audit`` holds experiments, landings and money to account; this one everything by which agents share their work.
"""

from dataclasses import dataclass, field
from math import expm1

from protocol import events as ev
from protocol.messages import Duty, Experiment, Rest, Stop, Verdict
from protocol.policy import Policy

Work = tuple[str, str, str]
"""Base, technique and change: two agents must not do the same."""


@dataclass
class Worker:
    """One agent: its open duty, and what the law wants of its next plan."""

    open: Duty | None = None
    plan: ev.PlanAdmitted | None = None
    seconds: str = ""
    must_cite: str = ""
    owes_profile: str = ""
    category: str = ""
    reverts: int = 0


@dataclass
class Round:
    """The round that runs: its KEEPs (agent, gain) by experiment."""

    keeps: dict[str, tuple[str, float]] = field(default_factory=dict)


class TeamAudit:
    """Reads every event once and complains about the first by which agents share their work wrongly."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.workers: dict[str, Worker] = {}
        self.alive: set[str] = set()
        self.categories: set[str] = set()
        self.claims: dict[str, ev.DirectionClaimed] = {}
        self.closed: set[str] = set()
        self.round = Round()
        self.dry = 0
        self.winners: list[tuple[str, ...]] = []
        self.crashes: dict[tuple[str, str], int] = {}
        self.abandoned: set[tuple[str, str]] = set()
        self.approaches: dict[str, tuple[str, str]] = {}
        self.done: dict[Work, str] = {}
        self.searched: set[str] = set()
        self.team_over = self.paused = self.wrapped = self.asked_to_end = False

    def take(self, agent: str, body: ev.Body) -> None:
        """One event, in its turn."""
        getattr(self, f"_{body.kind}", lambda *_: None)(agent, body)

    # ------------------------------------------------------------ the team

    def _campaign_started(self, agent: str, body: ev.CampaignStarted) -> None:
        self.workers = {member.name: Worker() for member in body.members}
        self.categories = {category.name for category in body.categories}

    def _agent_joined(self, agent: str, body: ev.AgentJoined) -> None:
        self.alive.add(agent)

    def _agent_lost(self, agent: str, body: ev.AgentLost) -> None:
        self.alive.discard(agent)
        self._end(agent)

    def _resumed(self, agent: str, body: ev.Resumed) -> None:
        self.alive.clear()
        self.paused = False
        for name in self.workers:
            self._end(name, plan=False)

    def _paused(self, agent: str, body: ev.Paused) -> None:
        self.paused = True

    def _pause_ended(self, agent: str, body: ev.PauseEnded) -> None:
        self.paused = False

    def _wrap_up_requested(self, agent: str, body: ev.WrapUpRequested) -> None:
        self.wrapped = True

    def _finished(self, agent: str, body: ev.Finished) -> None:
        self.wrapped = False

    def _end(self, agent: str, plan: bool = True) -> None:
        self.workers[agent].open = None
        if plan:
            self.workers[agent].plan = None

    # ------------------------------------------------------------ directions

    def _direction_claimed(self, agent: str, body: ev.DirectionClaimed) -> None:
        claim = body.direction
        assert not self.team_over, "a direction after the team phase"
        held = {name for one in self._held() for name in one.direction.allowed}
        assert not held & set(claim.allowed), "two open directions overlap"
        assert agent not in {one.direction.owner for one in self._held()}, "an agent owns two directions"
        self.claims[claim.id] = body
        self.categories |= set(claim.allowed)
        self.workers[agent].seconds = ""

    def _held(self) -> list[ev.DirectionClaimed]:
        return [one for ident, one in self.claims.items() if ident not in self.closed]

    def _direction_seconded(self, agent: str, body: ev.DirectionSeconded) -> None:
        self.workers[agent].seconds = body.direction

    def _direction_closed(self, agent: str, body: ev.DirectionClosed) -> None:
        assert body.direction not in self.closed, "a direction closed twice"
        self.closed.add(body.direction)

    def _direction_proposed(self, agent: str, body: ev.DirectionProposed) -> None:
        free = self.categories - {name for one in self._others(agent) for name in one.direction.allowed}
        if body.allowed and not body.refused:
            assert set(body.allowed) <= free | (set(body.allowed) - self.categories), "a claim of what others hold"

    def _others(self, agent: str) -> list[ev.DirectionClaimed]:
        return [one for one in self._held() if one.direction.owner != agent]

    def _theme(self, ident: str) -> str:
        while ident in self.claims and self.claims[ident].direction.follows:
            ident = self.claims[ident].direction.follows
        return self.claims[ident].direction.name if ident in self.claims else ""

    # ------------------------------------------------------------ duties and plans

    def _duty_given(self, agent: str, body: ev.DutyGiven) -> None:
        duty = body.duty
        if isinstance(duty, Rest | Stop):
            return
        self.workers[agent].open = duty
        if not isinstance(duty, Experiment):
            return
        assert not self.paused, "a new experiment in a pause"
        assert not self.wrapped, "a new experiment after the wrap-up"
        assert not self.workers[agent].owes_profile, "an experiment before the profile that is owed"
        if duty.direction:
            assert duty.direction not in self.closed, "an experiment in a closed direction"
            owner = self.claims[duty.direction].direction.owner
            assert agent == owner or self.workers[agent].seconds == duty.direction, "in a direction of somebody else"

    def _duty_lost(self, agent: str, body: ev.DutyLost) -> None:
        self._end(agent)

    def _plan_admitted(self, agent: str, body: ev.PlanAdmitted) -> None:
        worker, plan = self.workers[agent], body.plan
        assert isinstance(worker.open, Experiment)
        assert plan.cites == worker.must_cite or not worker.must_cite, "the search was not cited"
        assert not plan.cites or plan.cites in self.searched, "cites what nobody searched"
        closed = worker.reverts >= self._policy.close_category_after and worker.category == plan.category
        assert not closed, "a category in a row again"
        if not worker.open.direction:
            held = {
                c for one in self._others(agent) if one.direction.owner in self.alive for c in one.direction.allowed
            }
            assert plan.category not in held, "without a direction in somebody else's category"
        approach = (plan.technique, self._theme(worker.open.direction))
        assert approach not in self.abandoned, "an abandoned approach"
        work = (worker.open.base, plan.technique, plan.change)
        flying = {self._work(other) for name, other in self.workers.items() if name != agent and other.plan}
        assert work not in flying, "two agents at the very same change"
        assert plan.differs or self.done.get(work, agent) == agent, "another agent's work again"
        worker.plan = body
        self.approaches[body.experiment] = approach

    def _work(self, worker: Worker) -> Work | None:
        if worker.plan is None or not isinstance(worker.open, Experiment):
            return None
        return worker.open.base, worker.plan.plan.technique, worker.plan.plan.change

    def _nothing_proposed(self, agent: str, body: ev.NothingProposed) -> None:
        if not body.failed:
            self.workers[agent].reverts = 0  # there was nowhere to switch to
        self._end(agent)

    def _search_reported(self, agent: str, body: ev.SearchReported) -> None:
        self.workers[agent].must_cite = body.report.id
        self.searched.add(body.report.id)
        self._end(agent)

    def _profile_reported(self, agent: str, body: ev.ProfileReported) -> None:
        if self.workers[agent].owes_profile == body.report.commit:
            self.workers[agent].owes_profile = ""
        self._end(agent)

    def _recheck_reported(self, agent: str, body: ev.RecheckReported) -> None:
        if body.report.suspect:
            self.crashes.pop(self.approaches[body.report.experiment], None)
        self._end(agent)

    # ------------------------------------------------------------ verdicts

    def _experiment_judged(self, agent: str, body: ev.ExperimentJudged) -> None:
        worker = self.workers[agent]
        admitted, base = worker.plan, getattr(worker.open, "base", "")
        self._end(agent)
        if admitted is None or body.verdict is Verdict.LOST:
            return
        plan = admitted.plan
        self.done.setdefault((base, plan.technique, plan.change), agent)
        self._count_crash(body)
        if body.verdict.kept:
            self._kept(worker, agent, body)
            return
        worker.reverts = worker.reverts + 1 if worker.category == plan.category else 1
        worker.category = plan.category
        if plan.cites == worker.must_cite:
            worker.must_cite = ""

    def _experiment_reported(self, agent: str, body: ev.ExperimentReported) -> None:
        """Its verdict follows in the same transaction; the commit is what a profile may be owed of."""
        self.commit = body.commit

    def _count_crash(self, body: ev.ExperimentJudged) -> None:
        approach = self.approaches[body.experiment]
        self.crashes[approach] = self.crashes.get(approach, 0) + 1 if body.verdict is Verdict.CRASHED else 0
        if self.crashes[approach] >= self._policy.abandon_after:
            self.abandoned.add(approach)

    def _kept(self, worker: Worker, agent: str, body: ev.ExperimentJudged) -> None:
        gain = body.decision.overall.gain if body.decision else 0.0
        worker.category, worker.reverts, worker.must_cite = "", 0, ""
        if expm1(gain) >= self._policy.profile_gain:
            worker.owes_profile = self.commit
        if body.verdict is Verdict.KEEP:
            self.round.keeps[body.experiment] = (agent, gain)

    def _landing_refused(self, agent: str, body: ev.LandingRefused) -> None:
        self.round.keeps.pop(body.experiment, None)

    # ------------------------------------------------------------ rounds

    def _round_ended(self, agent: str, body: ev.RoundEnded) -> None:
        assert not self._held(), "a direction outlived its round"
        wins = {who for who, _ in self.round.keeps.values()}
        best = max((gain for _, gain in self.round.keeps.values()), default=0.0)
        assert set(body.winners) == wins, "winners that did not win"
        assert abs(body.best - best) < 1e-12
        expected = "C" if not wins else "B" if len(wins) > 1 else "D" if body.keeps_base else "A"
        assert body.outcome == expected, "an outcome that the round did not have"
        assert not (set(body.keeps_base) & wins), "a winner that keeps its old base"
        assert bool(body.searches) <= (body.outcome == "C"), "a search of everybody although somebody won"
        self.dry = self.dry if body.stuck else self.dry + 1 if expm1(best) <= self._policy.dry_gain else 0
        self.winners.append(tuple(sorted(wins)))
        self.round = Round()

    def _team_phase_ended(self, agent: str, body: ev.TeamPhaseEnded) -> None:
        last = self.winners[-self._policy.clear_winner_rounds :]
        clear = len(last) == self._policy.clear_winner_rounds and len(set(last)) == 1 and len(last[0]) == 1
        by_hand = body.why == BY_HAND
        assert clear or by_hand or self.dry >= self._policy.dry_rounds, "the team phase ended for no reason of RULES"
        assert set(body.branches) == set(self.workers), "an agent's branch was not remembered"
        self.team_over = True


BY_HAND = "ended by hand"
"""Why the simulated person ends the rounds."""

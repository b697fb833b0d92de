"""What the law knows of a campaign: agents, experiments and landings, as ``protocol.state`` folds them from events."""

from dataclasses import dataclass, field
from math import log1p
from typing import Literal

from protocol import counters
from protocol import events as ev
from protocol.archive import Archive
from protocol.counters import Approach
from protocol.failure_modes import Symptoms
from protocol.index import Index
from protocol.lineage import Lineage
from protocol.messages import (
    Category,
    DeviceInfo,
    Direction,
    Duty,
    Estimate,
    Finding,
    Insight,
    Measurement,
    ModelCall,
    Noise,
    Parameter,
    Plan,
    ProfileReport,
    RecheckReport,
    SearchReport,
    Standing,
    Verdict,
)
from protocol.policy import Policy
from protocol.roll import Roll
from protocol.stopping import Tail
from protocol.submission import SubmissionState


@dataclass
class Paid:
    """What minds have spent on models."""

    dollars: float = 0.0
    tokens: int = 0
    calls: int = 0

    def count(self, call: ModelCall) -> None:
        """One more answer."""
        self.dollars += call.dollars
        self.tokens += call.tokens
        self.calls += 1


@dataclass
class OpenDuty:
    """A duty that was handed out and not reported yet."""

    ask: str
    incarnation: str
    duty: Duty
    since: float
    paid: Paid = field(default_factory=Paid)


@dataclass
class AgentState:
    """What the law needs to know about one agent. ``tries`` counts experiments handed to it and plans refused,
    ``place`` is its place in the team, ``unsettled`` its kept experiments that wait to land, in their order.

    ``spent`` holds the categories in which its mind found nothing on the base ``exhausted_on``, ``failed`` the main on
    which its direction failed with a category, ``kept_base`` the base that it keeps until the round ends, ``tip`` its
    newest kept commit. ``paid`` is what its mind has spent, ``counted`` how many calls were counted for a duty that is
    open or was lost, ``lost`` the duties of each kind that were lost since it last did one.
    """

    member: ev.Member
    place: int = 0
    device: DeviceInfo | None = None
    incarnation: str = ""
    alive: bool = False
    absent_since: float = 0.0
    open: OpenDuty | None = None
    last_ask: str = ""
    streaks: counters.Streaks = field(default_factory=counters.Streaks)
    search: SearchReport | None = None
    owes_search: bool = False
    owes_profile: str = ""
    profile: ProfileReport | None = None
    exhausted_on: str = ""
    spent: set[str] = field(default_factory=set[str])
    direction: str = ""
    failed: dict[str, str] = field(default_factory=dict[str, str])
    kept_base: str = ""
    tip: str = ""
    tries: int = 0
    failures: int = 0
    unsettled: list[str] = field(default_factory=list[str])
    sweeping: bool = False
    owes_rechecks: list[str] = field(default_factory=list[str])
    recent: list[float] = field(default_factory=list[float])
    incorrect: set[Approach] = field(default_factory=set[Approach])
    paid: Paid = field(default_factory=Paid)
    counted: dict[str, int] = field(default_factory=dict[str, int])
    lost: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


@dataclass
class ExperimentState:
    """One experiment from its duty to its end. ``number`` is 0 until its plan is admitted; numbers have no gap."""

    id: str
    agent: str
    base: str
    direction: str = ""
    number: int = 0
    plan: Plan | None = None
    refused: list[str] = field(default_factory=list[str])
    last_refused: ev.PlanRefused | None = None
    commit: str = ""
    parameters: dict[str, Parameter] = field(default_factory=dict[str, Parameter])
    lines: tuple[int, int] = (0, 0)
    screened: tuple[tuple[dict[str, Parameter], float | None], ...] = ()
    measurement: Measurement | None = None
    verdict: Verdict | None = None
    reason: str = ""
    overall: Estimate | None = None
    workloads: dict[str, Estimate] = field(default_factory=dict[str, Estimate])
    landing: str = ""
    dollars: float = 0.0
    started: float = 0.0
    ended: float = 0.0


How = Literal["cherry-pick", "resolved", "whole tree"]


@dataclass
class LandingState:
    """A kept commit on its way to main.

    ``conflict`` names the files that git could not merge with ``main``, ``resolution`` is what a mind made of them.
    ``merged`` is set while the author's whole tree is measured against a merged tree that was measured before.
    """

    experiment: str
    agent: str
    candidate: str = ""
    main: str = ""
    how: How = "cherry-pick"
    measured: ev.LandingMeasured | None = None
    conflict: tuple[str, ...] = ()
    resolution: ev.MergeResolved | None = None
    merged: "Merged | None" = None


@dataclass(frozen=True)
class Merged:
    """A merged tree that was measured against main."""

    candidate: str
    how: How
    measured: ev.LandingMeasured


@dataclass(frozen=True)
class Proof:
    """That the ledger holds the verification of ``commit`` as the successor of ``before``; made by ``pending``."""

    experiment: str
    commit: str
    before: str
    how: How
    gain: Estimate
    duties: tuple[str, ...]


@dataclass
class DirectionState:
    """A claim and what came of it so far. ``seconds`` are the agents that work in it without owning it."""

    claim: Direction
    standing: Standing = Standing.OPEN
    why: str = ""
    goes_on: bool = False
    seconds: dict[str, None] = field(default_factory=dict[str, None])
    tries: int = 0
    keeps: int = 0


@dataclass
class CampaignState:
    """Everything the coordinator knows. ``verdicts`` holds the ids of judged experiments in the order of judgement,
    ``levels`` the log gain over the baseline of every kept or landed commit as its steps add up,
    ``lineage`` which changes such a commit contains, ``bad_pairs`` the compositions that did not pay,
    ``credits`` the keeps by search and source, ``reverted`` the techniques that the team tried and did not keep,
    ``lost`` how many verdicts are LOST,
    ``claims`` the open direction of each claimed category, ``dealt`` the round that directions were dealt for last.

    ``planned`` counts admitted plans by technique, ``swept`` says of each closed item of the tactical sweep why,
    ``closed`` names categories that are closed to all, ``rechecks`` holds None while a report is awaited,
    ``unprofiled`` is the large gain of main that nobody has profiled (``unprofiled_twin`` the same tree under its
    author's commit), ``recalibrate`` the devices that owe an A/A calibration and why.
    """

    start: ev.CampaignStarted | None = None
    agents: dict[str, AgentState] = field(default_factory=dict[str, AgentState])
    experiments: Archive[ExperimentState] = field(default_factory=Archive[ExperimentState])
    noise: dict[str, Noise] = field(default_factory=dict[str, Noise])
    baselines: Archive[ev.BaselineMeasured] = field(default_factory=Archive[ev.BaselineMeasured])
    baseline_refused: str = ""
    main: str = ""
    levels: dict[str, float] = field(default_factory=dict[str, float])
    landings: dict[str, LandingState] = field(default_factory=dict[str, LandingState])
    landed: list[ev.Landed] = field(default_factory=list[ev.Landed])
    lineage: Lineage = field(default_factory=Lineage)
    bad_pairs: list[ev.InteractsBadly] = field(default_factory=list[ev.InteractsBadly])
    crash_streaks: dict[str, int] = field(default_factory=dict[str, int])
    abandoned: list[Approach] = field(default_factory=list[Approach])
    searches: Archive[SearchReport] = field(default_factory=Archive[SearchReport])
    reverted: set[str] = field(default_factory=set[str])
    verdicts: list[str] = field(default_factory=list[str])
    lost: int = 0
    credits: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    planned: dict[str, int] = field(default_factory=dict[str, int])
    swept: dict[str, str] = field(default_factory=dict[str, str])
    sweep_flights: dict[str, str] = field(default_factory=dict[str, str])
    tail: Tail = field(default_factory=Tail)
    stuck_in_a_row: int = 0
    proposed: str = ""
    closed: dict[str, str] = field(default_factory=dict[str, str])
    rechecks: dict[str, RecheckReport | None] = field(default_factory=dict[str, RecheckReport | None])
    owes_research: str = ""
    insights: list[Insight] = field(default_factory=list[Insight])
    unprofiled: str = ""
    unprofiled_twin: str = ""
    main_profile: ProfileReport | None = None
    recalibrate: dict[str, str] = field(default_factory=dict[str, str])
    symptoms: Symptoms = field(default_factory=Symptoms)
    main_measured: list[ev.MainMeasured] = field(default_factory=list[ev.MainMeasured])
    ablations: list[ev.MethodAblated] = field(default_factory=list[ev.MethodAblated])
    measured_in_round: int = 0
    measured_at: int = 0
    numbered: int = 0
    duties: int = 0
    rounds: int = 0
    round_from: int = 0
    categories: dict[str, Category] = field(default_factory=dict[str, Category])
    directions: dict[str, DirectionState] = field(default_factory=dict[str, DirectionState])
    claims: dict[str, str] = field(default_factory=dict[str, str])
    dealt: int = 0
    round_log: list[ev.RoundEnded] = field(default_factory=list[ev.RoundEnded])
    round_mains: list[str] = field(default_factory=list[str])
    round_began: float = 0.0
    round_idle: float = 0.0
    team_over: str = ""
    noted: ev.NotesWritten | None = None
    notes_failed: str = ""
    findings: Roll[Finding] = field(default_factory=Roll[Finding])
    found_in: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    tampered: list[int] = field(default_factory=list[int])
    branches: dict[str, str] = field(default_factory=dict[str, str])
    stop: str = ""
    paused: str = ""
    paused_at: float = 0.0
    wrap_up: str = ""
    finished: str = ""
    submitted: ev.Submitted | None = None
    submissions: list[SubmissionState] = field(default_factory=list[SubmissionState])
    pushed: list[ev.Pushed] = field(default_factory=list[ev.Pushed])
    dollars: float = 0.0
    tokens: int = 0
    calls: int = 0
    first_time: float = 0.0
    last_time: float = 0.0
    idle_time: float = 0.0
    last_seq: int = 0
    index: Index = field(default_factory=Index)

    def failing(self, agent: AgentState) -> bool:
        """Whether an agent's mind failed so often in a row that it is not asked any more."""
        return agent.failures >= self.policy.mind_failures

    @property
    def policy(self) -> Policy:
        """The law's numbers for this campaign."""
        return (self.start or self.started).policy

    @property
    def started(self) -> ev.CampaignStarted:
        """The first event; there is none before it."""
        if self.start is None:
            raise ValueError("the ledger holds no campaign yet")
        return self.start

    @property
    def judged(self) -> list[ExperimentState]:
        """Experiments with a verdict, in the order of their numbers."""
        done = [e for e in self.experiments.values() if e.verdict is not None]
        return sorted(done, key=lambda e: e.number)

    def paused_for(self, now: float) -> float:
        """Seconds of a pause that lasts until ``now``; 0 when there is none. They cost nobody's time."""
        return max(0.0, now - self.paused_at) if self.paused else 0.0

    def steps_to(self, commit: str) -> list[Estimate]:
        """Verified gains of the landings up to ``commit``, which main may have left behind meanwhile."""
        commits = [landed.commit for landed in self.landed]
        reached = commits.index(commit) + 1 if commit in commits else 0
        return [landed.gain for landed in self.landed[:reached]]

    def device_of(self, agent: AgentState) -> str:
        """The device that an agent works on: the one it joined with, else the one it was meant to get."""
        return agent.device.id if agent.device else agent.member.device

    def sku_of(self, agent: AgentState) -> str:
        """The kind of device that an agent works on: times of different kinds are never compared."""
        told = agent.device
        return f"{told.name} {told.details.get('memory bytes', '')}".strip() if told else agent.member.device

    def partners(self, experiment: ExperimentState) -> tuple[ExperimentState, ...]:
        """What main holds and the experiment's own tree does not, in the order of their numbers."""
        ours, theirs = self.lineage.apart(self.main, experiment.commit)
        return tuple(sorted((self.experiments[name] for name in ours - theirs), key=lambda e: e.number))

    def head_of(self, agent: str) -> str:
        """The commit that the agent's next experiment starts from.

        Its newest kept commit that is not settled yet, unless the base that it would start from otherwise has overtaken
        it: nobody polishes a kernel that is slower. That base is main, or the one that the last round's outcome lets it
        keep, for as long as main is not ahead of that by a one-sided win.
        """
        start, waiting = self._start_of(agent), self.agents[agent].unsettled
        if not waiting:
            return start
        own = self.experiments[waiting[-1]].commit
        if self.policy.allow_mixed:
            return own  # its level and the other's may come from different kinds of devices
        return own if self.levels.get(own, 0.0) >= self.levels.get(start, 0.0) else start

    def _start_of(self, agent: str) -> str:
        kept = self.agents[agent].kept_base
        ahead = self.levels.get(self.main, 0.0) - self.levels.get(kept, 0.0)
        return kept if kept and ahead < log1p(self.policy.one_sided_gain) else self.main

"""What happened, typed: one class per kind of ledger event. The state of a campaign is the fold of these.

``SCHEMA`` is stored with every event. A reader meets only the fields of its own schema; a newer one is refused with a
sentence instead of being misread.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, cast, get_args

from pydantic import ConfigDict, Field, TypeAdapter

from protocol.hardware import Hardware
from protocol.messages import (
    Advice,
    Category,
    Decision,
    DeviceInfo,
    Direction,
    Duty,
    Estimate,
    Measurement,
    Message,
    ModelCall,
    Noise,
    Parameter,
    PassedOver,
    Plan,
    ProfileReport,
    RecheckReport,
    ResearchReport,
    Role,
    SearchReport,
    Standing,
    Strategy,
    Verdict,
)
from protocol.methods import Ablation, Sanitized, SassCheck
from protocol.policy import Policy
from protocol.problem import Problem

SCHEMA = 1


class Body(Message):
    """Base of all event bodies."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Member(Message):
    """One agent as the campaign was started with it."""

    name: str
    role: Role
    mind: str
    device: str = Field(description="device id that the agent is pinned to")
    options: dict[str, Any] = Field(default_factory=dict, description="the mind's own options; names of keys, no keys")


class CampaignStarted(Body):
    """The first event: scope, law and team."""

    kind: Literal["campaign_started"] = "campaign_started"
    campaign: str
    task: str
    operator: str
    language: Literal["cpp", "cuda", "triton"]
    numerics: Literal["reference", "strict", "approximate"]
    task_path: str = Field(description="task folder relative to the repository's root")
    repository: str = Field(description="the user's repository")
    commit: str = Field(description="main at the start: the baseline")
    workloads: dict[str, dict[str, int]]
    weights: dict[str, float]
    editable: tuple[str, ...]
    policy: Policy
    members: tuple[Member, ...]
    seed: int
    hardware: Hardware | None = None
    problem: Problem | None = Field(default=None, description="the operator block")
    known_broken: dict[str, str] = Field(default_factory=dict, description="workload -> why it is in no verdict")
    tooling: tuple[str, ...] = Field(default=(), description="what it may use: compiler, flags, libraries, minds")
    advice: tuple[Advice, ...] = Field(default=(), description="what earlier campaigns taught, as it was at the start")
    submit: bool = Field(default=False, description="whether the result is submitted when the campaign ends")
    advice_note: str = Field(default="", description="where the advice comes from, or why there is none")
    categories: tuple[Category, ...] = Field(
        default=(), description="what directions are made of; without any there are no directions"
    )
    strategy: Strategy = Field(default_factory=Strategy, description="what the law must know of the catalog")


class AgentJoined(Body):
    """An agent's process started (or started again) on its device."""

    kind: Literal["agent_joined"] = "agent_joined"
    incarnation: str
    device: DeviceInfo
    pid: int


class AgentLost(Body):
    """An agent's process died."""

    kind: Literal["agent_lost"] = "agent_lost"
    why: str


class BaselineMeasured(Body):
    """A/A at the baseline on one device: the noise, the kernel's times, and whether a planted gain was found."""

    kind: Literal["baseline_measured"] = "baseline_measured"
    duty: str
    device: str
    noise: Noise
    baseline_ns: dict[str, float] = Field(description="median nanoseconds per launch by workload")
    null_kept: bool = Field(description="True when A/A was (wrongly) found to be faster: no campaign")
    planted_found: bool
    planted: Estimate
    planted_gain: float = Field(0.0, ge=0.0, description="log gain that was planted; 0: as the policy says")
    measurement: Measurement


class BaselineRefused(Body):
    """The baseline does not build, is wrong, or the device is too noisy. It stops the campaign."""

    kind: Literal["baseline_refused"] = "baseline_refused"
    duty: str
    why: str


class DutyGiven(Body):
    """A duty was handed to an agent; it stays open until it is reported or lost."""

    kind: Literal["duty_given"] = "duty_given"
    ask: str = Field(description="id of the request that it answers; the same request gets the same duty")
    incarnation: str
    duty: Duty


class DutyLost(Body):
    """A duty other than an experiment ended without a report; it is handed out again when it is still owed."""

    kind: Literal["duty_lost"] = "duty_lost"
    duty: str
    why: str


class PlanAdmitted(Body):
    """The law lets this plan run; its commits (one per variant) exist already."""

    kind: Literal["plan_admitted"] = "plan_admitted"
    experiment: str
    plan: Plan
    commits: tuple[str, ...]
    dollars: float = 0.0


class PlanRefused(Body):
    """The law does not let this plan run. What it cost was spent all the same."""

    kind: Literal["plan_refused"] = "plan_refused"
    experiment: str
    plan: Plan
    why: str
    dollars: float = 0.0


class DutyFailed(Body):
    """The mind failed at a duty that is not an experiment. What it cost was spent; the duty is still owed."""

    kind: Literal["duty_failed"] = "duty_failed"
    duty: str
    why: str
    dollars: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)


class ModelCalled(Body):
    """A model answered a mind. Counted at once, so that a process that dies takes no cost with it."""

    kind: Literal["model_called"] = "model_called"
    call: ModelCall


class NothingProposed(Body):
    """The mind has no admissible idea on this base; or it ``failed`` to answer, which says nothing about its ideas."""

    kind: Literal["nothing_proposed"] = "nothing_proposed"
    experiment: str
    why: str
    failed: bool = False
    dollars: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    passed_over: tuple[PassedOver, ...] = Field(
        default=(), description="what the law wanted next, each with the reason that stands against it"
    )


class ExperimentReported(Body):
    """The raw result of one experiment."""

    kind: Literal["experiment_reported"] = "experiment_reported"
    experiment: str
    commit: str
    parameters: dict[str, Parameter]
    screened: tuple[tuple[dict[str, Parameter], float | None], ...]
    measurement: Measurement
    lines: tuple[int, int] = Field(default=(0, 0), description="added and removed lines of the commit")
    dollars: float = Field(default=0.0, ge=0.0, description="what the repair of a build failure cost")


class ExperimentJudged(Body):
    """The law's word on one experiment. Appended in one transaction with the report that it judges."""

    kind: Literal["experiment_judged"] = "experiment_judged"
    experiment: str
    verdict: Verdict
    reason: str
    decision: Decision | None = None


class SearchReported(Body):
    """A search duty was done."""

    kind: Literal["search_reported"] = "search_reported"
    report: SearchReport


class ProfileReported(Body):
    """A profile duty was done."""

    kind: Literal["profile_reported"] = "profile_reported"
    duty: str
    report: ProfileReport


class LandingConflicted(Body):
    """A kept commit does not apply on main: a mind is asked to resolve it."""

    kind: Literal["landing_conflicted"] = "landing_conflicted"
    experiment: str
    main: str
    files: tuple[str, ...]


class MergeResolved(Body):
    """What a mind made of a conflict: a commit on main, or none and the reason."""

    kind: Literal["merge_resolved"] = "merge_resolved"
    duty: str
    experiment: str
    commit: str = Field(default="", description="empty when the mind cannot resolve it")
    why: str = Field(description="how it was resolved, or why it cannot be")
    dollars: float = Field(default=0.0, ge=0.0)


class RecheckReported(Body):
    """A technique that regressed was compared with its card."""

    kind: Literal["recheck_reported"] = "recheck_reported"
    report: RecheckReport


class ResearchReported(Body):
    """The record was read with a clean mind."""

    kind: Literal["research_reported"] = "research_reported"
    report: ResearchReport


class TeamStuck(Body):
    """Every agent is stuck at once: each owes a search and gets a fresh direction."""

    kind: Literal["team_stuck"] = "team_stuck"
    times: int = Field(ge=1, description="how often in a row, without a KEEP between")


class SubmissionProposed(Body):
    """The team was stuck twice in a row: near the ceiling. The user may wrap up; the campaign goes on until then."""

    kind: Literal["submission_proposed"] = "submission_proposed"
    why: str


class LandingPrepared(Body):
    """A kept commit was put on top of main in the coordinator's worktree and waits for its verification."""

    kind: Literal["landing_prepared"] = "landing_prepared"
    experiment: str
    candidate: str = Field(description="the merged commit")
    main: str
    how: Literal["cherry-pick", "resolved", "whole tree"]
    against: str = Field(default="", description="measured against this merged tree instead of main")


class InteractsBadly(Body):
    """A merged tree was no better than the better of its parents: these experiments do not go together."""

    kind: Literal["interacts_badly"] = "interacts_badly"
    experiment: str
    others: tuple[str, ...] = Field(min_length=1, description="experiments that main holds and its tree did not")
    candidate: str = Field(description="the merged tree")
    why: str


class LandingMeasured(Body):
    """The merged tree against main, measured afresh."""

    kind: Literal["landing_measured"] = "landing_measured"
    duty: str
    experiment: str
    device: str
    measurement: Measurement
    decision: Decision | None = None
    sanitized: tuple[Sanitized, ...] = Field(default=(), description="what compute-sanitizer said of the candidate")


class Landed(Body):
    """Main moved forward to a verified commit."""

    kind: Literal["landed"] = "landed"
    experiment: str
    commit: str
    before: str
    gain: Estimate
    how: Literal["cherry-pick", "resolved", "whole tree"] = "cherry-pick"


class Mended(Body):
    """What was found broken on disk when the coordinator started, and mended: one sentence each."""

    kind: Literal["mended"] = "mended"
    what: tuple[str, ...] = Field(min_length=1)


class LandingRefused(Body):
    """A kept commit did not reach main."""

    kind: Literal["landing_refused"] = "landing_refused"
    experiment: str
    why: str


class MainMeasured(Body):
    """Main against the baseline, directly; the product of the landed gains must agree with it."""

    kind: Literal["main_measured"] = "main_measured"
    duty: str
    base: str
    commit: str
    device: str
    estimate: Estimate | None
    workloads: dict[str, Estimate] = Field(default_factory=dict)
    product: float = Field(description="sum of the landed log gains")
    compared: bool = Field(default=True, description="false when steps were measured on another SKU than this")
    agrees: bool
    measurement: Measurement


class MethodAblated(Body):
    """Main was measured against itself without one of its landings, and looked for in the machine code."""

    kind: Literal["method_ablated"] = "method_ablated"
    experiment: str = Field(description="the landed experiment that was taken out")
    commit: str = Field(description="main, with it")
    device: str = Field(default="", description="empty when nothing was measured")
    ablation: Ablation
    sass: SassCheck
    measurement: Measurement | None = Field(default=None, description="raw; left out of the state")


class DirectionClaimed(Body):
    """An agent owns a direction from now on; nobody else may claim its categories while it is open."""

    kind: Literal["direction_claimed"] = "direction_claimed"
    direction: Direction


class DirectionSeconded(Body):
    """Nothing is left to claim for this agent: it works in another agent's direction without owning it."""

    kind: Literal["direction_seconded"] = "direction_seconded"
    direction: str
    why: str


class DirectionClosed(Body):
    """A claim ended; its categories are free."""

    kind: Literal["direction_closed"] = "direction_closed"
    direction: str
    standing: Standing
    why: str
    goes_on: bool = Field(default=False, description="its owner claims the same again in the next round")


class DirectionProposed(Body):
    """A mind or a person proposes a direction. ``refused`` is empty when the claim follows, else one sentence."""

    kind: Literal["direction_proposed"] = "direction_proposed"
    name: str
    about: str
    allowed: tuple[str, ...]
    source: str = Field(description="who or what proposed it: a search by its id, or a person")
    refused: str = ""


class RoundEnded(Body):
    """A planning horizon ended: its recap, its outcome by RULES (A to D), and what follows for each agent.

    ``keeps_base``: agents that go on from their own base for one more round; ``searches``: agents that owe a search.
    """

    kind: Literal["round_ended"] = "round_ended"
    number: int
    recap: tuple[str, ...]
    outcome: Literal["A", "B", "C", "D"] = "C"
    winners: tuple[str, ...] = ()
    best: float = Field(default=0.0, description="largest log gain of the round's KEEPs")
    keeps_base: dict[str, str] = Field(default_factory=dict, description="agent -> commit")
    searches: tuple[str, ...] = ()
    stuck: bool = Field(default=False, description="cut short because the whole team was stuck: it is not a dry round")


class TeamPhaseEnded(Body):
    """No more rounds and claims: every agent works by itself on main with what is left of the budget."""

    kind: Literal["team_phase_ended"] = "team_phase_ended"
    why: str
    branches: dict[str, str] = Field(description="agent -> where its branch stands, to be tagged")


class NotesWritten(Body):
    """The notes and tags of the hub are up to date with so many verdicts, landings and rounds."""

    kind: Literal["notes_written"] = "notes_written"
    commit: str
    verdicts: int
    landed: int
    rounds: int
    finished: bool


class NotesFailed(Body):
    """The notes could not be written; they are tried again."""

    kind: Literal["notes_failed"] = "notes_failed"
    why: str


class StopRequested(Body):
    """Drain: no new experiment, finish what runs, land what is verified."""

    kind: Literal["stop_requested"] = "stop_requested"
    why: str


class Paused(Body):
    """Nobody gets a new duty until the pause ends; what runs is finished."""

    kind: Literal["paused"] = "paused"
    why: str


class PauseEnded(Body):
    """Duties are handed out again."""

    kind: Literal["pause_ended"] = "pause_ended"
    why: str


class WrapUpRequested(Body):
    """Phase C now: drain, and then submit what is on main."""

    kind: Literal["wrap_up_requested"] = "wrap_up_requested"
    why: str


class Resumed(Body):
    """The campaign goes on after a stop or a crash."""

    kind: Literal["resumed"] = "resumed"
    lost: tuple[str, ...] = ()


class Finished(Body):
    """The last word of a run: why it ended."""

    kind: Literal["finished"] = "finished"
    why: str


class SubmissionStarted(Body):
    """Phase C of one commit under one tag began. One that was broken off goes on under the same version."""

    kind: Literal["submission_started"] = "submission_started"
    tag: str
    version: int = Field(ge=1)
    evaluated: str = Field(description="main as it is submitted")
    device: str
    noise: Noise


class SubmissionMeasured(Body):
    """One full evaluation in the clean clone against the baseline: all workloads correct, times paired."""

    kind: Literal["submission_measured"] = "submission_measured"
    tag: str
    version: int
    run: int = Field(ge=1)
    estimate: Estimate
    workloads: dict[str, Estimate]
    measurement: Measurement | None = Field(description="raw; left out of the state")


class SubmissionRefused(Body):
    """The final commit is not fit to submit. Nothing was brought anywhere."""

    kind: Literal["submission_refused"] = "submission_refused"
    tag: str
    version: int
    why: str
    workload: str = ""


class Submitted(Body):
    """The result was brought to the user's repository."""

    kind: Literal["submitted"] = "submitted"
    commit: str
    branch: str
    tag: str = ""
    version: int = 0
    name: str = Field(default="", description="the git tag, submission-TAG-vN")
    artifact: str = Field(default="", description="folder of the regenerated artifact")
    hashes: dict[str, str] = Field(default_factory=dict, description="file of the artifact -> sha256")


class Pushed(Body):
    """A submission went to a remote of the user's repository, because that was asked for."""

    kind: Literal["pushed"] = "pushed"
    name: str
    remote: str


AnyBody = Annotated[
    CampaignStarted
    | AgentJoined
    | AgentLost
    | BaselineMeasured
    | BaselineRefused
    | DutyGiven
    | DutyLost
    | DutyFailed
    | PlanAdmitted
    | PlanRefused
    | ModelCalled
    | NothingProposed
    | ExperimentReported
    | ExperimentJudged
    | SearchReported
    | ProfileReported
    | LandingConflicted
    | MergeResolved
    | RecheckReported
    | ResearchReported
    | TeamStuck
    | SubmissionProposed
    | LandingPrepared
    | LandingMeasured
    | InteractsBadly
    | Landed
    | LandingRefused
    | Mended
    | MainMeasured
    | MethodAblated
    | DirectionClaimed
    | DirectionSeconded
    | DirectionClosed
    | DirectionProposed
    | RoundEnded
    | TeamPhaseEnded
    | NotesWritten
    | NotesFailed
    | StopRequested
    | Paused
    | PauseEnded
    | WrapUpRequested
    | Resumed
    | Finished
    | SubmissionStarted
    | SubmissionMeasured
    | SubmissionRefused
    | Submitted
    | Pushed,
    Field(discriminator="kind"),
]
_ADAPTER: TypeAdapter[AnyBody] = TypeAdapter(AnyBody, config=ConfigDict(defer_build=True))
_BY_KIND: dict[str, type[Body]] = {one.model_fields["kind"].default: one for one in get_args(get_args(AnyBody)[0])}


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the ledger. ``time`` is seconds since the epoch, as the coordinator's clock said."""

    seq: int
    time: float
    agent: str
    body: AnyBody


def body_from(raw: dict[str, Any]) -> AnyBody:
    """A body from what the ledger stored; only the kinds that occur are made ready to be read. ``ValidationError`` for
    anything that is no body."""
    kind: Any = raw.get("kind") if isinstance(raw, dict) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    known = _BY_KIND.get(kind) if isinstance(kind, str) else None
    return cast(AnyBody, known.model_validate(raw)) if known else _ADAPTER.validate_python(raw)

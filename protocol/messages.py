"""What the members of the team say to each other. Frozen, typed, and refused when a field is unknown.

Everything here crosses a process boundary as msgpack of ``model_dump()`` (see ``protocol.wire``); nothing is pickled.
Times of kernels are nanoseconds per launch; gains are natural-log ratios ``ln(base / candidate)`` unless a name says
``speedup`` (a plain ratio, > 1 is faster).
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from protocol.pairs import Pair, Pairs
from protocol.policy import Policy


class Message(BaseModel):
    """Base of everything that is said: immutable, and unknown fields are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, ser_json_inf_nan="constants")


class Role(StrEnum):
    """How an agent spends its experiments."""

    EXPLORER = "explorer"
    EXPLOITER = "exploiter"


class Phase(StrEnum):
    """Where an agent's search stands, by experiment count; plateau overrides."""

    EARLY = "early"
    MID = "mid"
    LATE = "late"
    PLATEAU = "plateau"


class Position(StrEnum):
    """Where the incumbent stands on the hardware, by profile."""

    COMPUTE = "compute"
    BANDWIDTH = "bandwidth"
    OCCUPANCY = "occupancy"
    LATENCY = "latency"
    BALANCED = "balanced"
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """What the judge saw. It decides nothing: the verdict is the coordinator's, by the law."""

    MEASURED = "measured"
    TAMPERED = "tampered"
    BUILD_FAILED = "build_failed"
    INCORRECT = "incorrect"
    CRASHED = "crashed"
    TIMEOUT = "timeout"


class Verdict(StrEnum):
    """What the law says about one experiment."""

    KEEP = "KEEP"
    KEEP_SIMPLER = "KEEP_SIMPLER"
    REVERT = "REVERT"
    UNRESOLVED = "UNRESOLVED"
    TAMPERED = "TAMPERED"
    BUILD_FAILED = "BUILD_FAILED"
    INCORRECT = "INCORRECT"
    CRASHED = "CRASHED"
    TIMEOUT = "TIMEOUT"
    LOST = "LOST"

    @property
    def kept(self) -> bool:
        """True when the experiment's commit stays on its agent's branch."""
        return self in (Verdict.KEEP, Verdict.KEEP_SIMPLER)


# ---------------------------------------------------------------- plans and proposals

Parameter = int | float | str | bool
SITE, TEXT = "site", "text"
"""Parameters by which a mind knows its own tries again: where it edited, and a digest of what it wrote. No settings."""


class Excuse(StrEnum):
    """The only reasons that count for passing over a heavy lift or an item of the tactical sweep."""

    PREREQUISITE = "missing prerequisite"
    REFERENCE = "missing reference"
    HARDWARE = "hardware limit"


class PassedOver(Message):
    """Something that the law wanted next and that cannot be done: a technique, or an item of the sweep, by name."""

    name: str = Field(min_length=1)
    kind: Excuse
    reason: str = Field(min_length=1, description="what is missing, in one sentence")


class Plan(Message):
    """One change, argued before it is run. All fields are required by the law except those with a default."""

    technique: str = Field(min_length=1, description="card name in roles/techniques, or a short slug for a new idea")
    category: str = Field(min_length=1, description="category of the technique; directions claim categories")
    bottleneck: str = Field(min_length=1, description="what limits the kernel now")
    evidence: str = Field(min_length=1, description="where that is seen: profile, remark, source line, measurement")
    change: str = Field(min_length=1, description="the one change, in one line")
    mechanism: str = Field(min_length=1, description="why it should help")
    expected_gain: float = Field(
        allow_inf_nan=False, description="expected log gain; negative is allowed for a simplification"
    )
    disproof: str = Field(min_length=1, description="what observation would refute the mechanism")
    fallback: str = Field(min_length=1, description="what to try when it is refuted")
    cell: str = Field(min_length=1, description="strategy-matrix cell, 'position/phase'")
    rewrite: str = Field(default="", description="the design in one sentence when this is a principled rewrite")
    differs: str = Field(default="", description="what is different from the team's reverted try of the same technique")
    cites: str = Field(default="", description="id of the search that inspired it, when a search duty was owed")
    source: str = Field(default="", description="the one source of that search that it rests on, by locator")
    sweep: str = Field(default="", description="item of the tactical sweep that this experiment is, when it is one")
    passed_over: tuple[PassedOver, ...] = Field(
        default=(), description="heavy lifts and sweep items that are due and not taken, each with its reason"
    )


class Variant(Message):
    """One parameter setting of the plan's change: the full new text of every file it touches."""

    parameters: dict[str, Parameter] = {}
    files: dict[str, str] = Field(min_length=1, description="path relative to the task folder -> new content")


class Proposal(Message):
    """What a mind answers: a plan and the parameter variants of its one change.

    A few for texts of their own, as the law's ``variants`` says, more for settings of constants (``settings``).
    """

    plan: Plan
    variants: tuple[Variant, ...] = Field(min_length=1, max_length=256)
    dollars: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)


class Source(Message):
    """Where a finding of a search comes from."""

    title: str = Field(min_length=1)
    locator: str = Field(min_length=1, description="URL, or a citation when offline")


class SearchReport(Message):
    """The answer to a search duty: queries, sources, the technique chosen and why."""

    id: str
    queries: tuple[str, ...] = Field(min_length=1)
    sources: tuple[Source, ...] = Field(min_length=1)
    technique: str = Field(min_length=1)
    category: str = Field(min_length=1)
    why: str = Field(min_length=1, description="why this technique was chosen")
    dollars: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)


class Compared(Message):
    """One line of a re-check: what the card says against what is seen."""

    what: str
    card: str = Field(description="what the card asks for or promises")
    seen: str = Field(description="what the site, the profile or the failure shows")
    holds: bool


class RecheckReport(Message):
    """The answer to a re-check duty: card against evidence, and whether something else spoiled the technique."""

    id: str
    experiment: str
    technique: str
    compared: tuple[Compared, ...] = Field(min_length=1)
    suspect: str = Field(default="", description="the orthogonal fault that would explain the regression; empty: none")
    dollars: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)

    @property
    def closes(self) -> bool:
        """True when nothing but the technique itself explains the regression."""
        return not self.suspect


class Insight(Message):
    """One thing that the record of the campaign shows: what, why it is so, and what to do next."""

    what: str = Field(min_length=1)
    why: str = Field(min_length=1)
    next: str = Field(min_length=1)


class ResearchReport(Message):
    """The answer to a research duty: what a clean reading of the record shows."""

    id: str
    insights: tuple[Insight, ...] = Field(min_length=1)
    dollars: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)


class Reading(Message):
    """One metric of a kernel: the house's name, the profiler's name, and the value (percentages as shares of 1)."""

    metric: str
    source: str = Field(description="as the profiler calls it")
    value: float = Field(allow_inf_nan=False)
    unit: str = ""


class KernelProfile(Message):
    """One kernel launch of the one call of ``solve`` that was profiled. A metric that is not there is unknown."""

    name: str
    grid: str = ""
    block: str = ""
    duration_ns: float | None = Field(default=None, gt=0.0)
    readings: tuple[Reading, ...] = ()

    @property
    def metrics(self) -> dict[str, float]:
        """Values by the house's names."""
        return {reading.metric: reading.value for reading in self.readings}


class Roofline(Message):
    """How near one workload is to its binding roof: the floor's time over the time taken.

    That is achieved / min(peak, intensity x bandwidth), also where there are no operations to count. Without the task's
    model or without measured roofs there is no share, and ``mode`` says that only gaps of utilisation are known.
    """

    workload: str
    mode: Literal["workload_model", "bottleneck_gap_heuristic"]
    time_ns: float = Field(gt=0.0, allow_inf_nan=False)
    flops: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    bytes_min: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    roof: Literal["compute", "memory", ""] = Field(default="", description="which roof binds")
    floor_ns: float | None = Field(default=None, gt=0.0, description="time at the binding roof (nanoseconds)")

    @property
    def share(self) -> float | None:
        """Share of the binding roof that is reached."""
        return None if self.floor_ns is None else self.floor_ns / self.time_ns

    @property
    def intensity(self) -> float | None:
        """Operations per byte that must move."""
        return self.flops / self.bytes_min if self.flops is not None and self.bytes_min else None

    @property
    def achieved_flops_per_s(self) -> float | None:
        """Operations of the model per second."""
        return None if self.flops is None else self.flops / self.time_ns * 1e9


class AxisGaps(Message):
    """Unused share of each axis between 0 and 1; None is unknown, which is no gap and not zero."""

    compute: float | None = Field(default=None, ge=0.0, le=1.0)
    memory: float | None = Field(default=None, ge=0.0, le=1.0)
    latency: float | None = Field(default=None, ge=0.0, le=1.0)


class ProfileReport(Message):
    """The answer to a profile duty. ``tool`` names what was used; a missing metric is absent, never zero.

    ``level`` caps what may be claimed: hardware counters, times of launches only, or only what a compiler says.
    """

    commit: str
    tool: str
    position: Position = Position.UNKNOWN
    metrics: dict[str, float] = {}
    remarks: tuple[str, ...] = ()
    claim: str = Field(default="", description="how far the evidence carries, in one sentence")
    level: Literal["counters", "timing", "compiler"] = "compiler"
    workload: str = Field(default="", description="the workload whose launch was profiled")
    kernels: tuple[KernelProfile, ...] = Field(default=(), description="every launch of that call, the longest first")
    top: dict[str, tuple[Reading, ...]] = Field(default={}, description="axis -> the metrics that say most about it")
    gaps: AxisGaps = Field(default_factory=AxisGaps)
    rooflines: tuple[Roofline, ...] = ()
    near_peak: bool = Field(default=False, description="every workload is near its binding roof; never by heuristic")
    bundle: str = Field(default="", description="the profiler's set of metrics: full or light; pinned per campaign")
    file: str = Field(default="", description="where the profiler's own report is kept")
    sass: dict[str, dict[str, int]] = Field(default={}, description="function -> its most frequent opcodes and counts")


# ---------------------------------------------------------------- what the judge saw


class Restart(Message):
    """Pairs measured between two process restarts, per workload name. All workloads are measured in every restart."""

    pairs: dict[str, Pairs]

    @classmethod
    def of(cls, pairs: Mapping[str, Iterable[Pair]]) -> "Restart":
        """From single pairs by workload."""
        return cls(pairs={name: Pairs.of(each) for name, each in pairs.items()})


class WorkloadCheck(Message):
    """Correctness of one workload over all seeds and value profiles."""

    workload: str
    checks: int = Field(ge=0, description="outputs compared")
    worst: float = Field(ge=0.0, description="largest error as a share of its tolerance; <= 1 passes")
    outputs: dict[str, float] = Field(default_factory=dict, description="the same by output")


class Build(Message):
    """How one side was built. Flags belong to the judge and are equal on both sides."""

    compiler: str
    flags: tuple[str, ...]
    seconds: float
    artifact: str = Field(description="sha256 of the artifact, checked again when it is loaded")
    cached: bool = False
    remarks: tuple[str, ...] = ()


class DeviceInfo(Message):
    """What a measurement ran on. Peaks are measured, never looked up; absent when not measured."""

    kind: Literal["cpu", "cuda"]
    id: str = Field(description="GPU UUID, or 'cpu:0' / 'cpu:0-1' for a core set")
    name: str
    details: dict[str, str] = {}
    peaks: dict[str, float] = Field(default_factory=dict, description="e.g. copy_bytes_per_s, fp32_flops_per_s")


class Measurement(Message):
    """Everything the judge saw of one base/candidate comparison, raw."""

    outcome: Outcome
    detail: str = Field(default="", description="one sentence: what happened and where")
    workload: str = Field(default="", description="the workload on which it happened, when there is one")
    restarts: tuple[Restart, ...] = ()
    checks: tuple[WorkloadCheck, ...] = ()
    base_build: Build | None = None
    candidate_build: Build | None = None
    device: DeviceInfo | None = None
    discarded: int = Field(default=0, description="disturbed blocks thrown away")
    launching: dict[str, str] = Field(
        default_factory=dict, description="on a GPU, by workload: how launches were timed and why not in a graph"
    )
    regimes: dict[str, dict[str, tuple[float, float]]] = Field(
        default_factory=dict,
        description="regime -> workload -> ns per launch of (base, candidate); reported, not judged",
    )
    seconds: dict[str, float] = Field(default_factory=dict, description="wall time by part: build, check, measure")
    simplicity: dict[str, tuple[int, int]] = Field(
        default_factory=dict, description="tokens, branches, knobs: (base, candidate)"
    )
    held_out: tuple[Restart, ...] = Field(
        default=(), description="samples on shapes that no mind is told of, taken where a landing is verified"
    )

    def without_samples(self) -> "Measurement":
        """The same without its raw pairs: what the state of a campaign keeps. The ledger keeps them all."""
        return self.model_copy(update={"restarts": (), "held_out": ()})

    @property
    def pairs(self) -> int:
        """Pairs measured, over all restarts, of the workload with the fewest."""
        counts: dict[str, int] = {}
        for restart in self.restarts:
            for name, pairs in restart.pairs.items():
                counts[name] = counts.get(name, 0) + len(pairs)
        return min(counts.values(), default=0)


class Noise(Message):
    """What an A/A calibration found for one device and task. Standard deviations of log ratios."""

    restart_sd: float = Field(ge=0.0, description="between restarts: the bias that pairs cannot average away")
    restart_df: int = Field(ge=1, description="degrees of freedom behind restart_sd")
    pair_sd: float = Field(ge=0.0, description="of one pair within a restart, all workloads combined by weight")
    floor: float = Field(ge=0.0, description="smallest log gain this device and task can tell from nothing")


class Estimate(Message):
    """What the samples say about one log gain: estimate and interval at the test's error level."""

    gain: float
    low: float
    high: float
    pairs: int
    restarts: int

    @property
    def speedup(self) -> float:
        """The estimate as a plain ratio; > 1 is faster."""
        from math import exp

        return exp(self.gain)


class Decision(Message):
    """What the sequential test says at one look."""

    state: Literal["keep", "revert", "continue", "unresolved"]
    reason: str
    overall: Estimate
    workloads: dict[str, Estimate] = {}


# ---------------------------------------------------------------- duties


class Experiment(Message):
    """Propose and run one change."""

    kind: Literal["experiment"] = "experiment"
    id: str
    base: str = Field(description="commit the change starts from")
    direction: str = ""


class Baseline(Message):
    """Judge the kernel as it stands and calibrate the noise floor (A/A, and A/A plus a known extra)."""

    kind: Literal["baseline"] = "baseline"
    id: str
    commit: str


class Search(Message):
    """Look for a technique the team has not tried. Until it is reported the agent's experiments are refused."""

    kind: Literal["search"] = "search"
    id: str
    why: str


class Profile(Message):
    """Profile one commit before the next plan."""

    kind: Literal["profile"] = "profile"
    id: str
    commit: str


class VerifyLanding(Message):
    """Measure the merged tree against main, with fresh inputs and processes."""

    kind: Literal["verify"] = "verify"
    id: str
    experiment: str
    candidate: str
    main: str
    against: str = Field(default="", description="the merged tree that it is measured against instead of main")
    technique: str = Field(default="", description="of the experiment's plan: it says what else is checked")

    @property
    def base(self) -> str:
        """What the candidate is measured against."""
        return self.against or self.main


class ResolveMerge(Message):
    """Bring a kept change onto a main that holds conflicting ones: both plans are here, the texts are in git."""

    kind: Literal["resolve"] = "resolve"
    id: str
    experiment: str
    base: str = Field(description="what the change was made on")
    candidate: str = Field(description="the kept commit")
    main: str
    files: tuple[str, ...] = Field(description="where git found the conflict, relative to the repository")
    plan: Plan
    parameters: dict[str, Parameter] = {}
    main_plans: tuple[Plan, ...] = Field(default=(), description="what main holds that the kept commit does not")


class Remeasure(Message):
    """Measure two commits of main directly: at a round's end, and before the campaign's last word."""

    kind: Literal["remeasure"] = "remeasure"
    id: str
    base: str
    candidate: str
    why: str


class Recheck(Message):
    """Compare a catalogued technique that regressed with its card, and look for an orthogonal fault."""

    kind: Literal["recheck"] = "recheck"
    id: str
    experiment: str
    technique: str
    base: str = Field(description="commit that the regressed experiment started from")


class Research(Message):
    """Read the record of the campaign with a clean mind: it is given nothing else."""

    kind: Literal["research"] = "research"
    id: str
    why: str


class Rest(Message):
    """Nothing to do now; ask again after this many seconds."""

    kind: Literal["rest"] = "rest"
    seconds: float
    why: str


class Stop(Message):
    """The campaign ends for this agent."""

    kind: Literal["stop"] = "stop"
    why: str


Duty = Annotated[
    Experiment
    | Baseline
    | Search
    | Profile
    | Recheck
    | Research
    | VerifyLanding
    | ResolveMerge
    | Remeasure
    | Rest
    | Stop,
    Field(discriminator="kind"),
]


# ---------------------------------------------------------------- directions


class Category(Message):
    """A kind of change. Directions claim sets of these; ``role`` says who takes it first."""

    name: str = Field(min_length=1)
    role: Role
    about: str = Field(default="", description="what such changes do, in one line")


class Standing(StrEnum):
    """What became of a direction."""

    OPEN = "open"
    WON = "won"
    FAILED = "failed"
    CLOSED = "closed"


class Direction(Message):
    """A claim: for one round its owner, and nobody else, makes changes of these categories."""

    id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    about: str = Field(default="", description="what it is about, in one line")
    allowed: tuple[str, ...] = Field(min_length=1, description="categories that it may touch")
    forbidden: tuple[str, ...] = Field(default=(), description="categories that it must not touch: others hold them")
    owner: str
    round: int = Field(ge=1)
    follows: str = Field(default="", description="the direction of the round before that it goes on with")


# ---------------------------------------------------------------- findings


class Finding(Message):
    """One thing that the team knows now, with its evidence. Negative ones are findings too."""

    id: str
    kind: Literal["gain", "no gain", "wrong", "tampered", "landed", "not landed", "search"]
    what: str = Field(description="the change, or the technique that a search found, in one line")
    technique: str
    category: str
    agent: str
    device: str = Field(default="", description="where it was measured; empty when nothing was")
    gain: float | None = Field(default=None, description="log gain against its base; None when nothing was measured")
    low: float | None = None
    high: float | None = None
    commit: str = ""
    source: str = Field(description="experiment, landing or search that it comes from, with its reason or reference")

    @property
    def positive(self) -> bool:
        """True when it speaks for the technique."""
        return self.kind in ("gain", "landed")


# ---------------------------------------------------------------- the strategy matrix, as the law knows it


class HeavyLift(Message):
    """A structural technique of the matrix's plateau cell."""

    technique: str
    category: str
    needs: str = Field(default="", description="what must hold before it is due")


class SweepItem(Message):
    """One item of the tactical sweep. A plan that names it must use one of its techniques, unless it lists none."""

    name: str
    title: str
    techniques: tuple[str, ...] = ()
    categories: tuple[str, ...] = Field(default=(), description="categories of its techniques; a closed one bars it")


class Strategy(Message):
    """What the law must know of the technique catalog; the team fills it in when a campaign starts."""

    heavy_lifts: dict[Position, tuple[HeavyLift, ...]] = Field(
        default_factory=dict[Position, tuple[HeavyLift, ...]],
        description="position -> the heavy lifts of its plateau cell",
    )
    sweep: tuple[SweepItem, ...] = Field(default=(), description="the tactical sweep, in its order")
    field_evidence: dict[str, str] = Field(
        default_factory=dict[str, str], description="technique -> the figure from the field that its card carries"
    )


# ---------------------------------------------------------------- what a mind is told


class PastExperiment(Message):
    """One line of the team's history, as every mind may see it."""

    id: str
    agent: str
    role: Role
    plan: Plan
    parameters: dict[str, Parameter] = {}
    verdict: Verdict
    reason: str
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    base: str
    commit: str
    screened: tuple[tuple[dict[str, Parameter], float | None], ...] = Field(
        default=(), description="every variant's parameters with its screened log gain, None when it failed"
    )


class Runnerup(Message):
    """A variant that ran and beat its base, but was not its experiment's champion: a text to start from later."""

    experiment: str
    technique: str
    parameters: dict[str, Parameter] = {}
    gain: float = Field(description="log gain over its experiment's base that the race saw")
    files: dict[str, str] = Field(default_factory=dict, description="path -> text; left out where nobody reads it")


class Advice(Message):
    """What earlier campaigns on the same operator say of a technique (see ``protocol.memory``). Advice, not law."""

    technique: str
    category: str
    word: Literal["prefer", "caution"]
    positives: int = Field(ge=0, description="measurements that speak for it")
    negatives: int = Field(ge=0, description="measurements that speak against it")
    gain: float = Field(default=0.0, description="largest log gain that was measured")
    campaigns: tuple[str, ...] = ()


class BadPair(Message):
    """Changes that did not pay together: a merged tree was no better than the better of its parents."""

    experiment: str
    technique: str
    others: dict[str, str] = Field(description="experiment -> technique of what main held already")
    why: str


class ModelCall(Message):
    """One answered request of a mind to a model's API, and what it cost."""

    duty: str
    number: int = Field(ge=1, description="of the duty's answered requests, from 1 on without a gap")
    model: str
    input_tokens: int = Field(ge=0, description="neither written to a cache nor read from one")
    cache_write_tokens: int = Field(default=0, ge=0)
    cache_read_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(ge=0)
    searches: int = Field(default=0, ge=0, description="searches of the web that the API did")
    dollars: float = Field(ge=0.0, allow_inf_nan=False)

    @property
    def tokens(self) -> int:
        """All tokens, whatever each cost."""
        return self.input_tokens + self.cache_write_tokens + self.cache_read_tokens + self.output_tokens


class Means(Message):
    """What a mind may spend on one duty, and whose records it may go on from. None: that is not limited."""

    duty: str = ""
    dollars: float | None = None
    tokens: int | None = None
    calls: int | None = None
    lost: tuple[str, ...] = Field(
        default=(), description="this agent's duties of the same kind that were lost since it last did one"
    )


class Chronicle(Message):
    """The ledger's rendering for a research duty: what was done and what came of it, and no source text."""

    task: str
    language: Literal["cpp", "cuda", "triton"]
    numerics: Literal["reference", "strict", "approximate"]
    floors: dict[str, float] = Field(description="device -> smallest log gain that it can tell from nothing")
    threshold: float = Field(description="smallest log gain that is kept")
    history: tuple[PastExperiment, ...] = ()
    profile: ProfileReport | None = None
    means: Means = Field(default_factory=Means)


class Briefing(Message):
    """Everything a mind gets for one proposal, built from the ledger and never from memory."""

    agent: str
    role: Role
    number: int = Field(description="experiments of this agent so far")
    task: str
    language: Literal["cpp", "cuda", "triton"]
    numerics: Literal["reference", "strict", "approximate"]
    editable: dict[str, str] = Field(description="path -> text at the base commit")
    base: str
    workloads: dict[str, dict[str, int]]
    phase: Phase
    position: Position
    direction: str = ""
    round: int = Field(default=1, ge=1)
    allowed_categories: tuple[str, ...] = Field(default=(), description="empty means any")
    forbidden_categories: tuple[str, ...] = Field(default=(), description="claimed by others in this round")
    findings: tuple[Finding, ...] = Field(
        default=(), description="what the team knows, most relevant to the direction first"
    )
    closed_categories: tuple[str, ...] = ()
    abandoned: tuple[str, ...] = Field(default=(), description="techniques that the team abandoned after crashes")
    search: SearchReport | None = Field(default=None, description="the next plan must cite it when present")
    advice: tuple[Advice, ...] = Field(default=(), description="of earlier campaigns, the most promising first")
    lifts: tuple[HeavyLift, ...] = Field(
        default=(), description="on a plateau: untried heavy lifts, each to be taken or passed over with a reason"
    )
    sweep: tuple[SweepItem, ...] = Field(
        default=(), description="open items of the tactical sweep while it is due; the next plan is the first of them"
    )
    insights: tuple[Insight, ...] = Field(default=(), description="what research in the record found, newest last")
    warnings: tuple[str, ...] = Field(default=(), description="failure modes that the record shows now")
    history: tuple[PastExperiment, ...] = ()
    profile: ProfileReport | None = None
    refused: tuple[str, ...] = Field(default=(), description="why this experiment's earlier plans were refused")
    bad_pairs: tuple[BadPair, ...] = Field(default=(), description="compositions that did not pay; not to be repeated")
    law: Policy = Field(default_factory=Policy, description="every number that a prompt may name")
    max_variants: int = 4
    max_settings: int = Field(
        default=1, ge=1, description="variants of a change that only sets constants of a text, where that is more"
    )
    dollars: float | None = Field(
        default=None, description="the most that this duty may cost, repair included; None when money is not limited"
    )
    means: Means = Field(default_factory=Means)
    frontier: tuple[Runnerup, ...] = Field(
        default=(), description="for an exploiter: valid variants that lost their race, with their texts"
    )
    place: int = Field(default=0, ge=0, description="of this agent among all agents of the team, from 0")
    team_size: int = Field(default=1, ge=1, description="agents of the team, this one included")
    cores: int = Field(default=1, ge=1, description="CPU cores that the judge lends one runner")
    seed: int = 0


# ---------------------------------------------------------------- merging


class Merge(Message):
    """Everything a mind gets to resolve one conflict. Texts are whole files, by path relative to the task folder."""

    duty: ResolveMerge
    briefing: Briefing = Field(description="as for an experiment on main: its ``editable`` holds main's texts")
    base: dict[str, str]
    theirs: dict[str, str] = Field(description="the kept commit's texts")
    main_diff: str = Field(description="base to main, a unified patch")
    their_diff: str = Field(description="base to the kept commit, a unified patch")


class Resolution(Message):
    """What a mind answers: the full new text, on top of main, of every file that the merged change touches."""

    files: dict[str, str] = Field(min_length=1)
    how: str = Field(min_length=1, description="how both changes were brought together, in one sentence")
    dollars: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)

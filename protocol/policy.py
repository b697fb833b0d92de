"""Every number of the law, in one place. A campaign file may override a field by name; an unknown name is an error.

The defaults are those of DESIGN section 4 and of RULES. No other module holds a threshold of its own.
"""

from pydantic import BaseModel, ConfigDict, Field


class Policy(BaseModel):
    """The law's numbers. Gains and bounds are fractions (0.01 is 1 %), times seconds unless a name says otherwise."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    # What it takes to keep an experiment.
    threshold: float = Field(
        default=0.01, ge=0.0, description="smallest gain worth keeping; the noise floor may only raise it"
    )
    total_error: float = Field(
        default=0.005, gt=0.0, lt=1.0, description="false keeps allowed per A/A experiment, all looks together"
    )
    looks: tuple[int, ...] = Field(
        default=(8, 16, 32, 64, 128), description="pairs after which the sequential test may decide"
    )
    futility_error: float = Field(
        default=0.01, gt=0.0, description="chance to stop a true threshold-sized gain for futility, per look"
    )
    worst_workload_loss: float = Field(
        default=0.05, gt=0.0, description="loss of one workload, beyond doubt, that vetoes a keep"
    )
    simpler_flat_band: float = Field(
        default=0.005, gt=0.0, description="largest loss that still counts as flat for KEEP_SIMPLER"
    )
    simpler_token_drop: float = Field(
        default=0.02, gt=0.0, description="fewer tokens by at least this share counts as simpler"
    )
    pairs_per_restart: int = Field(
        default=4, ge=1, description="pairs measured before both runners are replaced by fresh processes"
    )
    struck_restarts: int = Field(
        default=2, ge=0, description="a keep must still stand without this many of its best restarts (bad ones happen)"
    )
    uncalibrated_sd: float = Field(
        default=0.10, gt=0.0, description="restart scatter assumed while a single restart is all that is known"
    )
    sample_ns: int = Field(
        default=200_000, gt=0, description="shortest timed sample; launches are batched into it (nanoseconds)"
    )
    timeout_factor: float = Field(
        default=3.0, gt=1.0, description="evaluation longer than this times the baseline's is killed"
    )
    clock_disagreement: float = Field(
        default=0.05, gt=0.0, description="runner's clock against the judge's wall clock; more is TAMPERED"
    )
    alarm_restarts: int = Field(
        default=4, ge=2, description="fresh restarts on which an alarm of the clocks must be raised again to accuse"
    )
    floor_margin: float = Field(
        default=0.9, gt=0.0, le=1.0, description="times under this share of the roofline floor are TAMPERED"
    )
    variants: int = Field(default=4, ge=1, le=8, description="parameter variants (K) raced within one experiment")
    settings: int = Field(
        default=64,
        ge=1,
        le=256,
        description="settings of a text's constants that one experiment screens at most; one is measured afresh",
    )
    screening_s: float = Field(
        default=4.0,
        gt=0.0,
        description="time that building them may take, which with the machine's cores decides how many they are",
    )
    finalists: int = Field(
        default=6,
        ge=1,
        description="of more variants than are raced: those timed once more, together, for the last word",
    )
    screen_pairs: int = Field(
        default=4, ge=1, description="pairs per variant in the race that picks the champion; never reused"
    )
    race_rounds: int = Field(
        default=3, ge=1, description="restarts of the race at most; a variant that cannot win any more leaves it"
    )
    race_error: float = Field(
        default=0.05, gt=0.0, lt=1.0, description="chance per bound that a variant leaves the race for nothing"
    )
    frontier: int = Field(default=4, ge=0, description="variants that lost a race and are offered to exploiters")
    frontier_reach: float = Field(
        default=0.5, ge=0.0, description="log gain by which such a variant may lie behind the fastest on its base"
    )

    compile_jobs: int | None = Field(
        default=None, ge=1, description="compilations side by side per judge; None: as cores and free memory allow"
    )

    # Calibration.
    calibration_restarts: int = Field(default=24, ge=4, description="restarts of the A/A calibration at the baseline")
    planted_gain: float = Field(
        default=0.02, gt=0.0, description="known extra work that a campaign's own check must find"
    )

    # Counters and what they trigger.
    stuck_after: int = Field(
        default=3, ge=1, description="reverts or crashes in a row of one agent that trigger the search duty"
    )
    abandon_after: int = Field(
        default=3, ge=1, description="crashes in a row of one approach that abandon it for the team"
    )
    mind_failures: int = Field(
        default=3, ge=1, description="failures of one mind in a row after which its agent counts as out of ideas"
    )
    close_category_after: int = Field(default=3, ge=1, description="same-category reverts in a row that force a switch")
    profile_gain: float = Field(
        default=0.05, gt=0.0, description="a KEEP of at least this gain triggers the profile duty"
    )
    plateau_gain: float = Field(default=0.02, gt=0.0, description="KEEPs below this gain count towards the plateau")
    plateau_after: int = Field(
        default=5, ge=1, description="small KEEPs in a row, or reverts in a row, that mean plateau"
    )
    bound_above: float = Field(
        default=0.70, gt=0.0, le=1.0, description="share of a peak above which a kernel is bound by it"
    )
    idle_below: float = Field(
        default=0.40, gt=0.0, le=1.0, description="share of both peaks below which neither bounds a kernel"
    )
    few_warps_below: float = Field(
        default=0.40, gt=0.0, le=1.0, description="occupancy below which a kernel that neither bounds is limited by it"
    )
    many_warps_above: float = Field(
        default=0.60, gt=0.0, le=1.0, description="occupancy above which a kernel that neither bounds waits on latency"
    )
    near_peak_within: float = Field(
        default=0.15,
        gt=0.0,
        lt=1.0,
        description="distance to the binding roof within which a workload is near its peak",
    )
    gap_from: float = Field(
        default=0.10, ge=0.0, lt=1.0, description="unused share of an axis from which it is worth a method"
    )
    axis_methods: int = Field(default=3, ge=1, description="methods that one iteration may change, over all axes")
    axis_cap: int = Field(default=2, ge=1, description="methods that one iteration may change on one axis")
    full_profile_below_ms: float = Field(
        default=10.0, gt=0.0, description="calls that take longer are profiled with the light set (milliseconds)"
    )
    polish_after: int = Field(
        default=5, ge=1, description="experiments in a row of one category without effect that close it like reverts"
    )
    ceiling_after: int = Field(
        default=2, ge=1, description="times in a row that the whole team is stuck until submission is proposed"
    )
    sweep_after: int = Field(
        default=2, ge=1, description="same-category reverts in a row that begin the tactical sweep after phase early"
    )
    research_after: int = Field(default=5, ge=2, description="experiments so close to each other that research is owed")
    research_within: float = Field(default=0.05, gt=0.0, description="spread of speeds that counts as so close")
    research_after_incorrect: int = Field(
        default=3, ge=1, description="different approaches of one agent that were incorrect until research is owed"
    )
    insights: int = Field(default=12, ge=1, description="newest insights of research that every mind is shown")
    chased_after: int = Field(
        default=2, ge=1, description="small gains not found again at landing until their device is calibrated again"
    )
    one_change_lines: int = Field(
        default=200, ge=1, description="changed lines over which a KEEP that is no rewrite cannot be attributed"
    )
    error_growth_after: int = Field(default=3, ge=2, description="KEEPs in a row with growing error that are a drift")
    error_near_tolerance: float = Field(
        default=0.5, gt=0.0, le=1.0, description="share of its tolerance from which a growing error is acted upon"
    )
    rewrite_resets_at: float = Field(
        default=0.10, gt=0.0, description="a rewrite's KEEP of this gain returns its agent to early"
    )
    mid_from: int = Field(default=10, ge=1, description="experiments of an agent after which it is in phase mid")
    late_from: int = Field(default=30, ge=1, description="experiments of an agent after which it is in phase late")
    round_experiments: int = Field(
        default=8, ge=1, description="experiments of up to two agents that make a round; of more, more in proportion"
    )
    round_minutes: float = Field(
        default=60.0, gt=0.0, description="a round with a verdict in it ends after this time at the latest (minutes)"
    )
    direction_tries: int = Field(
        default=4, ge=1, description="experiments without a KEEP after which a direction has failed at its round's end"
    )
    one_sided_gain: float = Field(
        default=0.10, gt=0.0, description="a round's lone win of at least this gain moves everybody to it at once"
    )
    dry_gain: float = Field(default=0.02, gt=0.0, description="a round without a KEEP above this gain is dry")
    dry_rounds: int = Field(default=3, ge=1, description="dry rounds in a row that end the team phase")
    clear_winner_rounds: int = Field(
        default=3, ge=1, description="rounds in a row that one agent won alone, after which it is the clear winner"
    )
    briefing_findings: int = Field(default=24, ge=1, description="findings of the team that a mind is told at most")
    absent_after: float = Field(
        default=120.0,
        gt=0.0,
        description="seconds after which the team no longer waits for an agent whose process is gone",
    )
    recheck_every: int = Field(default=25, ge=1, description="experiments after which the incumbent is measured again")

    # Devices.
    allow_mixed: bool = Field(
        default=False, description="whether agents may have devices of different SKUs; they are never compared"
    )

    # Submission.
    submission_runs: int = Field(default=5, ge=1, description="full evaluations of the final commit that are averaged")

    # Ablation.
    ablation_minutes: float | None = Field(
        default=None,
        gt=0.0,
        description="wall clock for measuring main without each of its landings when the campaign ends (minutes); "
        "None: only on request",
    )

    # Strategy memory.
    prefer_after: int = Field(
        default=2, ge=1, description="measurements for a technique, with none against it, after which it is preferred"
    )

    # What a mind is told.
    briefed: int = Field(
        default=400, ge=1, description="newest experiments of the team that a mind is told of; of its own it gets all"
    )

    # Budget. None means that this limit does not apply.
    max_experiments: int | None = Field(default=24, ge=1, description="experiments of the whole team")
    max_minutes: float | None = Field(default=None, gt=0.0, description="wall clock of the campaign (minutes)")
    max_dollars: float | None = Field(
        default=None, ge=0.0, description="money spent by minds, in-flight included (US dollars)"
    )
    max_tokens: int | None = Field(default=None, ge=1, description="tokens of models, read and written, of the team")
    max_calls: int | None = Field(default=None, ge=1, description="answers of models to the team")
    max_agent_dollars: float | None = Field(default=None, ge=0.0, description="money that one agent's mind may spend")
    max_agent_tokens: int | None = Field(default=None, ge=1, description="tokens that one agent's mind may use")
    max_agent_calls: int | None = Field(default=None, ge=1, description="answers of models that one agent may get")
    duty_share: float = Field(
        default=0.04,
        gt=0.0,
        le=0.25,
        description="share of the money, tokens and calls that one duty of a mind may cost; it counts as spent while "
        "the duty is open",
    )
    search_domains: tuple[str, ...] = Field(
        default=(
            "docs.nvidia.com",
            "developer.nvidia.com",
            "forums.developer.nvidia.com",
            "arxiv.org",
            "github.com",
            "triton-lang.org",
            "pytorch.org",
            "agner.org",
            "gcc.gnu.org",
            "llvm.org",
            "stackoverflow.com",
        ),
        min_length=1,
        description="the only domains in which a model may search, and from which its sources may be",
    )
    search_uses: int = Field(default=5, ge=1, description="searches of the web within one search duty")
    target_speedup: float | None = Field(
        default=None, gt=1.0, description="speedup over the baseline that may end the search early"
    )
    stop_after_reverts: int = Field(default=5, ge=1, description="reverts in a row that an early stop needs")
    stop_after_directions: int = Field(default=2, ge=1, description="directions over which those must be spread")

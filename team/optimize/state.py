"""``state.json``: schema version 5 of the optimizer skills and more; written whole, by one process at a time.

The state is all that a resumed run needs. An iteration changes it in one step, keyed by its number, so that doing so
twice, after a death between publishing and saving, changes nothing.
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protocol.messages import Noise, PastExperiment
from team.errors import UserError
from team.optimize.artifacts import Folder, write_json
from team.optimize.options import Options

SCHEMA = 5


class Champion(BaseModel):
    """The kernel that stands: the baseline or an iteration's."""

    model_config = ConfigDict(extra="forbid")
    iter: int
    kernel: str
    average_ms: float
    artifact_manifest: str = ""
    commit: str = ""


class State(BaseModel):
    """Everything about a run. Fields that the skills' version 5 does not have are at the end."""

    model_config = ConfigDict(extra="forbid")
    schema_version: int = SCHEMA
    run_dir: str
    baseline_file: str
    baseline_file_original: str
    ref_file: str
    best_file: str = ""
    best_metric_ms: float | None = None
    best_ncu_rep: str = ""
    best_build_manifest: str = ""
    env: str = "env.json"
    iterations_total: int
    ncu_num: int
    branches: int
    noise_threshold_pct: float
    ptr_size: int
    gpu: int
    gpu_uuid: str = ""
    compile_jobs: str
    numerics_mode: str
    archetype: str
    validation_seeds: tuple[int, ...]
    workload_matrix: list[dict[str, Any]] = Field(default_factory=list)
    max_working_set_mb: float
    hard_working_set_mb: float
    adaptive_downscale: bool
    oom_retries: int
    timing_batches: int
    timing_repeats: int
    scale_weights: dict[str, float] = Field(default_factory=dict)
    stability_policy: dict[str, float] = Field(default_factory=dict)
    large_regression_gate: float = 5.0
    timing_policy: str = "paired, sequential, against the current best, at the user's own shape and smaller scales"
    profiling_policy: dict[str, Any] = Field(default_factory=dict)
    global_champion: Champion | None = None
    run_status: Literal["initializing", "ready", "running", "completed", "stopped"] = "initializing"
    generation_allowed: bool = False
    stop_reason: str = ""
    stop_stage: str = ""
    stop_iteration: int | None = None
    terminal_iteration_status: str = ""
    hardware_attempts: int = 0
    verified_iterations: int = 0
    last_verified_iter: int = 0
    baseline_verified: bool = False
    baseline_ncu_rep: str = ""
    baseline_ncu_top: str = ""
    contract_policy: str = "one parser; both sides are held to the baseline's signature"
    build_cache_dir: str = ".build-cache"
    dims: dict[str, int]
    selected_methods: list[str] = Field(default_factory=list)
    effective_methods: list[dict[str, Any]] = Field(default_factory=list)
    ineffective_methods: list[str] = Field(default_factory=list)
    implementation_failed_methods: list[str] = Field(default_factory=list)
    unverified_methods: list[str] = Field(default_factory=list)
    history: list[dict[str, Any]] = Field(default_factory=list)
    roofline_history: list[dict[str, Any]] = Field(default_factory=list)
    frontier: list[dict[str, Any]] = Field(default_factory=list)
    created_at: str

    options: Options
    notes: list[str] = Field(default_factory=list)
    baseline_commit: str = ""
    baseline_ms: float | None = None
    noise: Noise | None = None
    experiments: list[PastExperiment] = Field(default_factory=list)
    dollars: float = 0.0
    calls: dict[str, float] = Field(default_factory=dict, description="answer of a model -> dollars, each once")
    signature: str = ""
    dtype: str = Field(default="float32", description="of the first floating-point output, as roofs are named")
    floors: dict[str, dict[str, float]] = Field(default_factory=dict)
    best_ns: dict[str, float] = Field(default_factory=dict, description="median of the best by workload (nanoseconds)")
    final: dict[str, Any] = Field(default_factory=dict, description="the best against the baseline, measured directly")
    claim: str = ""
    finished_iterations: int = Field(default=0, description="iterations that have ended, verified or not")

    def closed(self, number: int) -> bool:
        """Whether an iteration's end is in this state already."""
        return any(row["iter"] == number for row in self.history)


class Store:
    """``state.json`` of one run, held against a second process."""

    def __init__(self, folder: Folder, state: State) -> None:
        self._path = folder.path / "state.json"
        self.state = state

    def save(self) -> None:
        """Durable when this returns."""
        write_json(self._path, self.state.model_dump(mode="json"))


def read_state(folder: Folder) -> State:
    """The state of a run; a sentence says why there is none, or none that may go on."""
    path = folder.path / "state.json"
    try:
        raw = json.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"{folder.path} holds no run.", "Name a folder run_YYYYMMDD_HHMMSS of: optimize") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}.", "Start a new run.") from None
    version = raw.get("schema_version") if isinstance(raw, dict) else None
    if version != SCHEMA:
        raise UserError(f"{path} has schema version {version}: it can be read and not resumed.", "Start a new run.")
    try:
        return State.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{path} is not a state of ours: {where}: {first['msg']}.", "Start a new run.") from None


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a run's folder; a second process is refused, and the kernel lets go when the holder dies."""
    with (folder / "state.lock").open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"The run {folder.name} is going on in another process.", "Wait for it, or end it."
            ) from None
        yield

"""What ``kernelteam optimize`` was asked: every flag of the optimizer skills with its default, and a few of our own.

A flag whose meaning our judge replaces is still read: ``notices`` says in one line each what happens instead.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from team.campaign import read_campaign

SEEDS = (7, 19, 41, 73, 101)
Numerics = Literal["reference", "strict", "approximate"]


class Options(BaseModel):
    """One run's options; they go into ``state.json``, so that a resumed run goes on with them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    baseline: Path = Field(description="the kernel to make faster: .cu, .cpp or Triton .py")
    ref: Path = Field(description="module with reference(**kwargs)")
    dims: dict[str, int] = Field(default_factory=dict, description="every integer parameter: the user's full shape")
    scalars: dict[str, float] = Field(default_factory=dict, description="every floating-point parameter")
    shapes: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="pointer -> extents by dims")
    iterations: int = Field(default=3, ge=1, description="the most iterations")
    ncu_num: int = Field(default=5, ge=1, description="metrics per axis in ncu_top.json")
    branches: int = Field(
        default=4, ge=1, le=8, description="kernels of an iteration; the last ones may hold several methods"
    )
    noise_threshold_pct: float = Field(default=2.0, ge=0.0, description="smallest gain worth keeping (%)")
    ptr_size: int = Field(default=0, ge=0, description="elements of every pointer; 0: found out")
    compile_jobs: int | None = Field(default=None, ge=1, description="compilations side by side; None: auto")
    numerics_mode: Numerics = "reference"
    archetype: str = "generic"
    validation_seeds: tuple[int, ...] = Field(default=SEEDS, min_length=1)
    workload_matrix: Path | None = None
    max_working_set_mb: float = Field(default=384.0, gt=0.0, description="target of the smaller scales (MiB)")
    hard_working_set_mb: float = Field(default=512.0, gt=0.0, description="limit of the smaller scales (MiB)")
    adaptive_downscale: bool = True
    oom_retries: int = Field(default=3, ge=0)
    timing_batches: int = Field(default=5, ge=1)
    timing_repeats: int = Field(default=30, ge=1)
    env_out: Path | None = None
    warmup: int = Field(default=10, ge=0)
    repeat: int = Field(default=20, ge=1)
    gpu: int = Field(default=0, ge=0, description="which visible GPU")
    atol: float = Field(default=1e-4, ge=0.0)
    rtol: float = Field(default=1e-3, ge=0.0)
    seed: int = Field(default=42, description="of the mind; the judge's inputs cannot be foreseen")
    nvcc_bin: Path | None = None
    benchmark: str = ""
    arch: str = ""
    backend: Literal["auto", "cuda", "cutlass", "triton", "cpp"] = "auto"
    mind: str = "catalog"
    ncu_policy: Literal["required", "optional"] = "optional"
    law: Path | None = Field(default=None, description="campaign.toml with overrides of the law's numbers")
    dollars: float | None = Field(default=None, ge=0.0, description="the most that the mind may spend (US dollars)")

    @property
    def mind_options(self) -> dict[str, Any]:
        """What the campaign file says to the mind of this name."""
        members = read_campaign(self.law).agents
        return next((dict(one.options) for one in members if one.mind == self.mind), {})

    @property
    def language(self) -> Literal["cpp", "cuda", "triton"]:
        """The language of the baseline, by its suffix."""
        if self.baseline.suffix == ".py":
            return "triton"
        return "cuda" if self.baseline.suffix == ".cu" else "cpp"


def notices(options: Options) -> Iterator[str]:
    """One line for every flag that was given and that our judge reads in its own way."""
    plain = Options(baseline=options.baseline, ref=options.ref)
    own = {
        "warmup": "warm launches before a sample are the judge's to choose",
        "repeat": "the sequential test takes pairs until it can decide, never a fixed number",
        "timing_batches": "batches are restarts of both processes, as many as the sequential test needs",
        "timing_repeats": "pairs are taken until the sequential test can decide",
        "oom_retries": "sizes are never shrunk behind your back: both sides run the same shape or none",
        "validation_seeds": "inputs are drawn afresh and cannot be foreseen; as many draws as there are seeds are "
        "compared bit by bit under strict numerics",
        "benchmark": f"{options.benchmark} is not run: the judge times base and candidate in pairs",
        "arch": "the judge builds for the GPU that is there, with all its features",
    }
    for name, said in own.items():
        if getattr(options, name) != getattr(plain, name):
            yield f"--{name.replace('_', '-')}: {said}"
    if options.noise_threshold_pct < 1.0:
        yield "--noise-threshold-pct: the law's bar of 1 % can be raised and not lowered"
    if options.gpu and options.language == "cpp":
        yield "--gpu: a C++ kernel runs on CPU cores"
    if options.nvcc_bin and options.language == "cpp":
        yield "--nvcc-bin: a C++ kernel is built with g++"

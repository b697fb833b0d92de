"""``task.toml`` as types: every field with a sentence and a unit; an unknown key is an error.

Human-owned: a campaign never changes this file, and the judge reads it from the baseline commit only.
"""

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from protocol.policy import Policy
from team.errors import UserError

HELD_OUT = "held_out.toml"
"""Beside task.toml: shapes that minds never see, and that landings and submissions are held to."""
REACH = 16  # how far below a listed dim a shape that the task does not list may lie


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Workload(_Strict):
    """One shape on which the kernel must be right and, by its weight, fast."""

    name: str = Field(min_length=1)
    dims: dict[str, int] = Field(description="every integer parameter of the kernel by name")
    scalars: dict[str, float] = Field(default_factory=dict, description="every floating-point scalar parameter by name")
    weight: float = Field(default=1.0, gt=0.0, description="share in the weighted geometric mean")


class KnownBroken(_Strict):
    """A workload on which the baseline fails and everybody knows: it takes no part in any verdict, and is shown."""

    workload: str = Field(description="its name among the workloads")
    reason: str = Field(min_length=1, description="what is wrong, in one sentence")


class Argument(_Strict):
    """One pointer parameter of the kernel; of a Triton kernel, one tensor."""

    shape: tuple[str | int, ...] = Field(description="extents: dim names, integers or products such as 'M*K'")
    role: Literal["input", "output", "inout"] | None = Field(
        default=None, description="default: a const pointer is an input, any other an output; a tensor is an input"
    )
    dtype: str = Field(default="float32", description="of a Triton kernel's tensor; a pointer's is in the source")
    values: Literal["normal", "uniform", "positive", "integers"] = Field(
        default="normal", description="distribution of an input that the reference module does not make itself"
    )
    low: int = Field(default=0, description="smallest value of 'integers'")
    high: int = Field(default=2**15, description="one past the largest value of 'integers'")


class Tolerance(_Strict):
    """|got - want| <= atol + rtol * |want|, element by element."""

    atol: float = Field(default=1e-4, ge=0.0)
    rtol: float = Field(default=1e-4, ge=0.0)


class BuildSpec(_Strict):
    """What the judge passes to the compiler, on both sides alike."""

    flags: tuple[str, ...] | None = Field(default=None, description="replaces the default '-O3 -march=native'")
    timeout_s: float = Field(default=120.0, gt=0.0, description="one compilation (seconds)")
    binding: Literal["tvm-ffi"] | None = Field(
        default=None, description="'tvm-ffi': built with the headers and the library of the package apache-tvm-ffi"
    )


class ScreenSpec(_Strict):
    """The static screen of candidates' text: what this task permits beyond the rules (``team/judge/screen``)."""

    active: bool = Field(default=True, description="false leaves candidates to the judge's other layers alone")
    headers: tuple[str, ...] = Field(default=(), description="further headers that a kernel may include, as written")
    libraries: bool = Field(
        default=False, description="whether vendors' libraries, and torch's own compute calls, may be used"
    )


class ShapesSpec(_Strict):
    """Correctness on shapes that the task does not list: near the smallest workload, drawn anew by every judge."""

    unlisted: bool = Field(default=True, description="whether such shapes are checked")
    reason: str = Field(default="", description="why not; required where they are not")
    fixed: tuple[str, ...] = Field(default=(), description="dims that stay as listed")
    multiples: dict[str, int] = Field(default_factory=dict, description="dims that must stay multiples of a number")

    @model_validator(mode="after")
    def _reasoned(self) -> "ShapesSpec":
        if not self.unlisted and not self.reason:
            raise ValueError("unlisted = false needs a reason")
        if any(step < 1 for step in self.multiples.values()):
            raise ValueError("a multiple must be at least 1")
        return self


class TaskSpec(_Strict):
    """A task: what is to be made faster, on what, and what counts as right."""

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    contract: Literal["solve", "triton"] = "solve"
    device: Literal["cpu", "cuda"] = "cpu"
    operator: str = Field(default="", description="what it computes, for strategy memory; default: the task's name")
    source: str = Field(description="the file that defines the kernel's entry point")
    editable: tuple[str, ...] = Field(
        default=(), description="files an experiment may change; default: the source alone"
    )
    reference: str = Field(
        default="reference.py", description="module with reference(**kwargs), trusted and human-owned"
    )
    numerics: Literal["reference", "strict", "approximate"] = Field(
        default="reference", description="'approximate' alone permits fast-math flags and intrinsics"
    )
    objective: Literal["geomean"] = "geomean"
    arguments: dict[str, Argument] = Field(default_factory=dict, description="pointer parameters by name")
    tolerance: dict[str, Tolerance] = Field(
        default_factory=dict, description="per output name; 'default' holds for the rest"
    )
    workloads: tuple[Workload, ...] = Field(min_length=1)
    known_broken: tuple[KnownBroken, ...] = Field(
        default=(), description="workloads on which the baseline fails, each with the reason; never checked or timed"
    )
    checked: tuple[Workload, ...] = Field(
        default=(), description="further shapes on which a kernel must be right; they are never timed"
    )
    held_out: tuple[Workload, ...] = Field(
        default=(), description="read from held_out.toml, which no mind sees; landings and submissions are held to them"
    )
    interpreted: tuple[Workload, ...] = Field(
        default=(), description="small shapes for Triton's interpreter, which stands in where there is no GPU"
    )
    build: BuildSpec = BuildSpec()
    screen: ScreenSpec = ScreenSpec()
    shapes: ShapesSpec = ShapesSpec()
    policy: Policy = Field(default_factory=Policy, description="overrides of the law's numbers, by name")

    @model_validator(mode="after")
    def _coherent(self) -> "TaskSpec":
        for workloads in ((*self.workloads, *self.checked, *self.held_out), self.interpreted):
            names = [workload.name for workload in workloads]
            if len(set(names)) != len(names):
                raise ValueError("two workloads have the same name")
        dims = {name for workload in self.workloads for name in workload.dims}
        for name in (*self.shapes.fixed, *self.shapes.multiples):
            if name not in dims:
                raise ValueError(f"shapes names '{name}', which is no dim of a workload")
        for entry in self.known_broken:
            if entry.workload not in [workload.name for workload in self.workloads]:
                raise ValueError(f"known_broken names '{entry.workload}', which is no workload")
        for path in (self.source, self.reference, *self.editable):
            if Path(path).is_absolute() or ".." in Path(path).parts:
                raise ValueError(f"path '{path}' leaves the task folder")
        if {self.reference, "task.toml", HELD_OUT} & set(self.editable):
            raise ValueError(f"the reference, task.toml and {HELD_OUT} can never be editable")
        return self

    @property
    def editable_files(self) -> tuple[str, ...]:
        """The files that an experiment may change."""
        return self.editable or (self.source,)

    @property
    def broken(self) -> dict[str, str]:
        """Known-broken workloads with their reasons."""
        return {entry.workload: entry.reason for entry in self.known_broken}

    @property
    def must_pass(self) -> tuple[Workload, ...]:
        """The workloads that count: right on all of them, or not kept."""
        return tuple(workload for workload in self.workloads if workload.name not in self.broken)

    def tolerance_of(self, output: str) -> Tolerance:
        """The tolerance of one output."""
        return self.tolerance.get(output) or self.tolerance.get("default") or Tolerance()


class _HeldOut(_Strict):
    """``held_out.toml``: the names in it are for whoever wrote it."""

    workloads: tuple[Workload, ...] = Field(min_length=1)


def _held_out(path: Path, spec: TaskSpec) -> list[dict[str, Any]]:
    """The shapes of ``held_out.toml``, under names that say nothing: reasons and tables are read by minds."""
    found = _HeldOut.model_validate(_read(path)).workloads
    listed = [(one.dims, one.scalars) for one in (*spec.workloads, *spec.checked)]
    for one in found:
        if (one.dims, one.scalars) in listed:
            raise UserError(f"{path}: the shape of '{one.name}' is listed in task.toml as well.", "Take another one.")
    return [{**one.model_dump(), "name": f"held-out {number}"} for number, one in enumerate(found, start=1)]


def _no_task(place: Path) -> UserError:
    """What is there in place of a task's folder, and what to type instead."""
    if place.is_dir():
        return UserError(f"There is no task.toml in {place}.", "Write one with: kernelteam init KERNEL_FILE")
    if place.exists():
        return UserError(f"{place} is a file, and a task is a folder.", f"Make one with: kernelteam init {place}")
    return UserError(f"There is no folder {place}.", "Name the folder of a task, as examples/matmul_cpu is one.")


def read_spec(folder: Path) -> TaskSpec:
    """The spec of the task in ``folder``; a ``UserError`` names the first thing that is wrong."""
    path = folder / "task.toml"
    if not path.is_file():
        raise _no_task(folder)
    raw = _read(path)
    if HELD_OUT.removesuffix(".toml") in raw:
        raise UserError(
            f"{path} holds held-out shapes, and every mind may read it.", f"Move them to {folder / HELD_OUT}."
        )
    try:
        spec, path = TaskSpec.model_validate(raw), folder / HELD_OUT
        held_out = _held_out(path, spec) if path.is_file() else []
        return TaskSpec.model_validate({**raw, "held_out": held_out}) if held_out else spec
    except ValidationError as error:
        first = min(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
        where = ".".join(str(part) for part in first["loc"]) or path.name
        if first["type"] == "extra_forbidden":
            remedy = "Remove it or correct its spelling."
            if where.endswith("held_out"):
                remedy = f"Move that workload to {folder / HELD_OUT}."
            raise UserError(f"{path} has an unknown key '{where}'.", remedy) from None
        raise UserError(f"{path}: {where}: {first['msg']}.", "Correct that value.") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid TOML: {error}.", "Correct that line.") from None

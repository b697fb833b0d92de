"""Which shapes a run is judged on: the user's own, never shrunk, and smaller scales of it with honest byte counts.

``large`` is always the shape that was given. The smaller ones scale the dims of the archetype, are kept to what divides
the given dims, and must fit the working-set limits by the bytes that their buffers really have.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from team.errors import UserError
from team.tasks.skill_inputs import Read
from team.tasks.spec import Workload

WEIGHTS = {"small": 0.2, "medium": 0.3, "large": 0.5}
FACTORS = {"small": 0.5, "medium": 0.75}
_STEPS = 28  # of the bisection that fits a scale into its limit
_ALIGNMENTS = (16, 8, 4, 2)
_AXES = {
    "attention": ("S", "B", "H"),
    "attention_decode": ("S", "B", "H"),
    "attention_prefill": ("S", "B", "H"),
    "sparse_attention": ("S", "B", "H"),
    "gemm": ("M", "N", "K"),
    "quantized_inference": ("M", "N", "K"),
    "sparse_gemm": ("M", "N", "K"),
    "moe": ("T", "E"),
    "reduction": ("N", "M", "L"),
    "convolution": ("N", "H", "W", "C"),
    "batched_small_gemm": ("M", "N", "B"),
}


class MatrixFile(BaseModel):
    """``--workload-matrix``: shapes of one's own, or which dims scale, by what step and down to where."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    scales: dict[str, dict[str, int]] = Field(default_factory=dict)
    scale_axes: tuple[str, ...] = ()
    alignment: dict[str, int] | int = Field(default_factory=dict)
    minimum_dims: dict[str, int] = Field(default_factory=dict)

    def step(self, name: str, full: int) -> int:
        """What a scaled dim is a multiple of."""
        given = self.alignment if isinstance(self.alignment, int) else self.alignment.get(name, 0)
        return given or next((one for one in _ALIGNMENTS if full % one == 0 and full > one), 1)


def read_matrix(path: Path | None) -> MatrixFile:
    """The file, or the defaults; a sentence says what is wrong with it."""
    if path is None:
        return MatrixFile()
    try:
        return MatrixFile.model_validate(json.loads(path.read_text()))
    except FileNotFoundError:
        raise UserError(f"There is no workload matrix {path}.", "Give the path of an existing JSON file.") from None
    except (json.JSONDecodeError, UnicodeDecodeError, ValidationError) as error:
        said = " ".join(str(error).split())
        raise UserError(f"{path} is no workload matrix: {said}.", 'Give JSON such as {"scale_axes": ["M"]}.') from None


def workloads(
    read: Read, archetype: str, matrix: MatrixFile, limits_mb: tuple[float, float], adaptive: bool
) -> tuple[tuple[Workload, ...], tuple[str, ...]]:
    """The workloads, ``large`` last, and what is to be said about them. ``limits_mb``: target and hard limit."""
    full, scalars = dict(read.inputs.dims), dict(read.inputs.scalars)
    shapes: dict[str, dict[str, int]] = {}
    notes: list[str] = []
    for name, factor in FACTORS.items():
        given = matrix.scales.get(name)
        dims = {**full, **given} if given else _scaled(full, _axes(read, archetype, matrix), factor, matrix)
        dims, said = _fitted(read, name, dims, matrix, limits_mb[1], adaptive)
        notes += said
        if dims != full and dims not in shapes.values():
            shapes[name] = dims
    large = {**full, **matrix.scales.get("large", {})}
    if large != full:
        raise UserError(f"The workload matrix shrinks your shape {full} to {large}.", "Give that shape as the dims.")
    notes += _about_large(read, full, limits_mb)
    shapes["large"] = full
    made = [Workload(name=name, dims=dims, scalars=scalars, weight=WEIGHTS[name]) for name, dims in shapes.items()]
    return tuple(made), tuple(notes)


def _axes(read: Read, archetype: str, matrix: MatrixFile) -> tuple[str, ...]:
    """Dims that scale: the file's, the archetype's, or the up to three largest that buffers are made of."""
    for named in (matrix.scale_axes, _AXES.get(archetype, ())):
        there = tuple(name for name in named if name in read.varying)
        if there:
            return there
    return tuple(sorted(read.varying, key=lambda name: -read.inputs.dims[name])[:3])


def _scaled(full: Mapping[str, int], axes: Sequence[str], factor: float, matrix: MatrixFile) -> dict[str, int]:
    dims = dict(full)
    for name in axes:
        step = matrix.step(name, full[name])
        least = matrix.minimum_dims.get(name, 1)
        dims[name] = min(full[name], max(least, step * max(1, round(full[name] * factor / step))))
    return dims


def _fitted(
    read: Read, name: str, dims: dict[str, int], matrix: MatrixFile, hard_mb: float, adaptive: bool
) -> tuple[dict[str, int], list[str]]:
    """A smaller scale within the limit, by bisection on its factor."""
    if _mb(read, dims) <= hard_mb:
        return dims, []
    if not adaptive:
        raise UserError(
            f"The scale '{name}' needs {_mb(read, dims):,.0f} MiB, more than {hard_mb:,.0f}.",
            "Raise --hard-working-set-mb, or let it shrink with --adaptive-downscale.",
        )
    low, high, best = 0.0, 1.0, None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        tried = _scaled(dims, read.varying, middle, matrix)
        if _mb(read, tried) <= hard_mb:
            low, best = middle, tried
        else:
            high = middle
    if best is None:
        return dims, [f"the scale '{name}' does not fit {hard_mb:,.0f} MiB at any size and is kept"]
    return best, [f"the scale '{name}' is {best}, so that it fits {hard_mb:,.0f} MiB"]


def _about_large(read: Read, full: Mapping[str, int], limits_mb: tuple[float, float]) -> list[str]:
    size = _mb(read, full)
    if size <= limits_mb[0]:
        return []
    limit = "--hard-working-set-mb" if size > limits_mb[1] else "--max-working-set-mb"
    return [f"your shape needs {size:,.0f} MiB, more than {limit}: it is kept, and both sides run it as it is"]


def _mb(read: Read, dims: Mapping[str, int]) -> float:
    """MiB of all buffers of one launch; 0 where nobody knows before ``setup`` has run."""
    return (read.bytes_of(dims) or 0) / 2**20

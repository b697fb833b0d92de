"""Which of a definition's workloads become a task's, what each of them is in a task's terms, and why others do not."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from team.errors import UserError
from team.tasks.formats.flashinfer.dataset import blob_of
from team.tasks.formats.flashinfer.extents import broken_constraint
from team.tasks.formats.flashinfer.inputs import Case, dtype_of
from team.tasks.formats.flashinfer.schema import Definition, SafetensorsInput, ScalarInput, TensorSpec, Workload
from team.tasks.formats.flashinfer.work import size_of

FITS = 24 << 30  # bytes of one input set: the judge keeps several, and a reference in double precision, on one card


@dataclass(frozen=True)
class Planned:
    """One workload of the task: extents, numbers by type, and the files of its recorded tensors."""

    name: str
    axes: dict[str, int]
    integers: dict[str, int] = field(default_factory=dict[str, int])
    floats: dict[str, float] = field(default_factory=dict[str, float])
    recorded: dict[str, tuple[Path, str]] = field(default_factory=dict[str, tuple[Path, str]])
    weight: int = 1

    @property
    def identity(self) -> tuple[object, ...]:
        """Workloads that are equal in this are the same to a kernel."""
        numbers = (*self.axes.items(), *self.integers.items(), *self.floats.items())
        return (*numbers, *((name, str(path), key) for name, (path, key) in self.recorded.items()))


def planned(definition: Definition, workload: Workload, root: Path | None, fits: int = FITS) -> Planned:
    """The workload as the task has it; a ``UserError`` says in one sentence why it cannot be run."""
    missing = [axis for axis in definition.variables if axis not in workload.axes]
    if missing:
        raise _unfit(workload, f"it gives no value for the axis '{missing[0]}'")
    axes = definition.constants | {axis: workload.axes[axis] for axis in definition.variables}
    if broken := broken_constraint(definition, axes):
        raise _unfit(workload, f"its axes break the constraint '{broken}'")
    case = Case(definition, axes)
    specs: list[TensorSpec] = [*definition.tensors.values(), *definition.outputs.values()]
    for spec in specs:
        dtype_of(spec)
    if empty := next((axis for spec in specs for axis in spec.shape or () if not axes[axis]), ""):
        raise _unfit(workload, f"its axis '{empty}' is 0, so there is nothing to compute")
    size = sum(size_of(case, spec) for spec in specs)
    if size > fits:
        raise _unfit(workload, f"one set of its buffers has {size / 2**30:.0f} GiB, more than {fits >> 30} GiB")
    integers, floats = _numbers(definition, workload)
    return Planned(workload.uuid, axes, integers, floats, _recorded(definition, workload, root))


def merged(found: Sequence[Planned]) -> list[Planned]:
    """Workloads that are the same to a kernel as one, whose weight is their number."""
    kept: dict[tuple[object, ...], Planned] = {}
    for one in found:
        former = kept.get(one.identity)
        weight = former.weight + 1 if former else one.weight
        kept[one.identity] = Planned(
            former.name if former else one.name, one.axes, one.integers, one.floats, one.recorded, weight
        )
    return list(kept.values())


def spread(definition: Definition, found: Sequence[Planned], most: int) -> list[Planned]:
    """At most ``most`` of them, from the smallest to the largest at even distances."""
    ranked = sorted(found, key=lambda one: _elements(definition, one))
    if len(ranked) <= most:
        return ranked
    steps = [round(number * (len(ranked) - 1) / max(most - 1, 1)) for number in range(most)]
    return [ranked[step] for step in steps]


def _elements(definition: Definition, one: Planned) -> int:
    case = Case(definition, one.axes)
    return sum(math.prod(case.extents(spec)) for spec in definition.tensors.values())


def _numbers(definition: Definition, workload: Workload) -> tuple[dict[str, int], dict[str, float]]:
    """Numbers among the inputs, whole ones and others; what a workload does not give has its usual value."""
    integers: dict[str, int] = {}
    floats: dict[str, float] = {}
    for name, spec in definition.scalars.items():
        given = workload.inputs.get(name)
        value = given.value if isinstance(given, ScalarInput) else _usual(definition, name)
        if value is None:
            raise _unfit(workload, f"it gives no value for the number '{name}', which has no usual one")
        if spec.dtype.startswith(("int", "bool")):
            integers[name] = int(value)
        else:
            floats[name] = float(value)
    return integers, floats


def _usual(definition: Definition, name: str) -> float | None:
    """What the models that definitions were captured from use."""
    axes = definition.constants
    if name == "sm_scale" and "head_dim_ckv" in axes:
        return (128 + axes["head_dim_kpe"]) ** -0.5  # 128: the width of a head before absorption
    width = axes.get("head_dim", axes.get("qk_dim", axes.get("head_size")))
    if name in ("sm_scale", "scale") and width:
        return width**-0.5
    return {"local_expert_offset": 0.0, "routed_scaling_factor": 2.5}.get(name)


def _recorded(definition: Definition, workload: Workload, root: Path | None) -> dict[str, tuple[Path, str]]:
    found: dict[str, tuple[Path, str]] = {}
    for name in definition.tensors:
        spec = workload.inputs.get(name)
        if isinstance(spec, SafetensorsInput) and (path := blob_of(root, spec)) is not None:
            found[name] = path, spec.tensor_key
    return found


def _unfit(workload: Workload, clause: str) -> UserError:
    return UserError(f"Workload {workload.uuid} cannot be run: {clause}.", "Leave it out, or correct it.")

"""From a definition to a task folder: ``task.toml``, ``reference.py``, a first kernel, and the definition itself."""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from team.errors import UserError
from team.tasks.formats.flashinfer.bound import Bound
from team.tasks.formats.flashinfer.dataset import read_definition, root_of, workloads_of
from team.tasks.formats.flashinfer.extents import small_axes, usual_axes
from team.tasks.formats.flashinfer.plan import FITS, Planned, merged, planned, spread
from team.tasks.formats.flashinfer.schema import Definition, InputSpec, TensorSpec, Workload
from team.tasks.formats.flashinfer.served import CASE, DEFINITION, RECORDED, plain_lines

SOURCE = "kernel.py"
FITS_CPU = 1 << 30  # bytes of the buffers of a workload for a kernel on a CPU
INTERPRETED = 256 << 20  # bytes of the buffers of a workload for Triton's interpreter
MOST = 5  # workloads of a task, unless more are asked for: each is timed in every pair
_FIRST = Path(__file__).parent / "first"
_FOR_PYRIGHT = "# pyright: reportArgumentType=false, reportCallIssue=false\n"
_TOLERANCES = {"float32": (2e-3, 2e-3), "float16": (1e-2, 2e-3), "bfloat16": (2e-3, 1e-2)}
_ATTENTION = ("gqa_paged", "gqa_ragged", "mla_paged", "mla_ragged", "dsa_paged")
_ATTENTION_TOLERANCES = {  # weights are rounded to 8 bits before they meet values of up to 4; logarithms are not
    "bfloat16": (8e-3, 1e-2),
    "float32": (1e-3, 5e-4),
}
_FREE = {"gemm": {"M"}, "rmsnorm": {"batch_size"}}  # op types whose var axes depend on nothing


@dataclass(frozen=True)
class Imported:
    """What became of a definition: its folder, the task's workloads, why others are not among them, and remarks."""

    folder: Path
    workloads: tuple[str, ...]
    reasons: dict[str, str]
    remarks: tuple[str, ...]


def import_problem(
    path: Path, target: Path, most: int = MOST, first: str | Bound | None = None, sizes: Mapping[str, int] | None = None
) -> Imported:
    """Make the task folder ``target`` of the definition at ``path``. No file is ever overwritten.

    Workloads are those of the data set that ``path`` lies in: of all that can be run at most ``most``, spread over
    their sizes. ``sizes`` are the var axes of one workload in their place. ``first`` is the text of a first kernel in
    Triton, or a solution in C++ or CUDA; the default is a plain kernel where there is one.
    """
    definition, root = read_definition(path), root_of(path)
    if target.exists() and any(target.iterdir()):
        raise UserError(f"{target} exists and is not empty.", "Give another folder with --folder.")
    if strange := sorted((sizes or {}).keys() - set(definition.variables)):
        raise UserError(
            f"{definition.name} has no var axis '{strange[0]}'.", f"It has: {', '.join(definition.variables)}."
        )
    recorded = workloads_of(definition, root)
    numbers = _numbers(recorded)
    if sizes:
        recorded = (Workload(uuid="given", axes=dict(sizes), inputs=numbers),)
    offered = recorded or tuple(
        Workload(uuid=f"usual-{number}", axes=axes) for number, axes in enumerate(usual_axes(definition), start=1)
    )
    bound = first if isinstance(first, Bound) else None
    fits = FITS_CPU if bound is not None and bound.device == "cpu" else FITS
    fitting, reasons = sorted_out(definition, offered, root, fits)
    if not fitting:
        raise UserError(f"No workload of {definition.name} can be run: {next(iter(reasons.values()))}", "Add one.")
    chosen = spread(definition, merged(fitting), most)
    small = _small(definition, numbers) if bound is None else []
    kernel = first or first_kernel(definition)
    remarks = _remarks(definition, recorded, chosen)
    if isinstance(kernel, Bound):
        kernels = kernel.files
    else:
        kernels = {SOURCE: kernel or _stub(definition, chosen[0])}
        remarks += _interpreter_remarks(definition, small, kernel is None)
    target.mkdir(parents=True, exist_ok=True)
    files = {
        "task.toml": _toml(definition, chosen, small, remarks, bound),
        "reference.py": _reference(definition),
        DEFINITION: path.read_text(),
        **kernels,
    }
    for name, text in files.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text)
    _copy_recorded(target, chosen)
    return Imported(target, tuple(one.name for one in chosen), reasons, remarks)


def _numbers(recorded: tuple[Workload, ...]) -> dict[str, InputSpec]:
    """Numbers as the first recorded workload gives them, for workloads of our own."""
    return {name: spec for name, spec in recorded[0].inputs.items() if spec.type == "scalar"} if recorded else {}


def _small(definition: Definition, numbers: dict[str, InputSpec]) -> list[Planned]:
    """The workload for Triton's interpreter; none where const axes alone are too much for it."""
    try:
        workload = Workload(uuid="small", axes=small_axes(definition)[0], inputs=numbers)
        return [planned(definition, workload, None, fits=INTERPRETED)]
    except UserError:
        return []


def sorted_out(
    definition: Definition, workloads: tuple[Workload, ...] | list[Workload], root: Path | None, fits: int = FITS
) -> tuple[list[Planned], dict[str, str]]:
    """The workloads that can be run, and for each other one the sentence that says why not."""
    fitting: list[Planned] = []
    reasons: dict[str, str] = {}
    for workload in workloads:
        try:
            fitting.append(planned(definition, workload, root, fits))
        except UserError as error:
            reasons[workload.uuid] = error.what
    return fitting, reasons


def first_kernel(definition: Definition) -> str | None:
    """A plain kernel for a definition of this kind, None where there is none."""
    path = _FIRST / f"{kind_of(definition)}.py"
    return path.read_text().removeprefix(_FOR_PYRIGHT) if path.is_file() else None


def kind_of(definition: Definition) -> str:
    """The definition's name without its constants: definitions of one kind differ in these alone."""
    words = definition.name.split("_")
    constant = re.compile(r"(?!fp)[a-z]{1,4}\d+\Z")
    return "_".join(word for word in words if not constant.match(word))


def _remarks(definition: Definition, recorded: tuple[Workload, ...], chosen: list[Planned]) -> tuple[str, ...]:
    remarks: list[str] = []
    if not recorded:
        remarks.append("Nobody recorded a workload of it: these are of usual sizes.")
    if any(spec.type == "safetensors" for one in recorded for spec in one.inputs.values()) and not any(
        one.recorded for one in chosen
    ):
        remarks.append("Its recorded tensors are not there: inputs are drawn within what they mean.")
    return tuple(remarks)


def _interpreter_remarks(definition: Definition, small: list[Planned], unwritten: bool) -> tuple[str, ...]:
    remarks: list[str] = []
    if not small:
        remarks.append("It is too large for Triton's interpreter: whether a kernel is right needs a GPU.")
    if unwritten:
        remarks.append(f"There is no first kernel for {kind_of(definition)}: write run_kernel in {SOURCE}.")
    return tuple(remarks)


def _toml(
    definition: Definition,
    chosen: list[Planned],
    small: list[Planned],
    remarks: tuple[str, ...],
    bound: Bound | None,
) -> str:
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", definition.name).lstrip("_.-")
    lines = [f"# FlashInfer-Trace definition {definition.name}; {DEFINITION} beside this file is the whole of it."]
    lines += [f"# {remark}" for remark in remarks]
    lines += [
        f"name = {json.dumps(name)}",
        f"operator = {json.dumps(kind_of(definition))}",
        *(_called(bound) if bound else ['contract = "triton"', 'device = "cuda"', f"source = {json.dumps(SOURCE)}"]),
        'reference = "reference.py"',
        *(["", "[build]", 'binding = "tvm-ffi"'] if bound else []),
        "",
        "[arguments]",
    ]
    for role, specs in (("input", definition.tensors), ("output", definition.outputs)):
        lines += [_argument(definition, key, spec, role) for key, spec in specs.items()]
    lines += ["", "[tolerance]"]
    for key, spec in definition.outputs.items():
        atol, rtol = _TOLERANCES.get(spec.dtype, (0.0, 0.0))
        if definition.op_type in _ATTENTION:
            atol, rtol = _ATTENTION_TOLERANCES.get(spec.dtype, (atol, rtol))
        lines.append(f"{key} = {{ atol = {atol!r}, rtol = {rtol!r} }}")
    lines += ["", "[shapes]", *_shapes(definition)]
    recorded = any(one.recorded for one in chosen)
    for number, one in enumerate(chosen):
        lines += ["", "[[workloads]]", *_workload(one, {CASE: number} if recorded else {})]
    for one in small:
        lines += ["", "[[interpreted]]", *_workload(one, {})]
    return "\n".join([*lines, ""])


def _called(bound: Bound) -> list[str]:
    return [
        'contract = "solve"',
        f"device = {json.dumps(bound.device)}",
        f"source = {json.dumps(bound.source)}",
        f"editable = {json.dumps(list(bound.editable))}",
    ]


def _argument(definition: Definition, name: str, spec: TensorSpec, role: str) -> str:
    if spec.shape is None:
        raise UserError(
            f"The output '{name}' of {definition.name} is a Python number, which no kernel can write.",
            "Declare it as a tensor of shape [].",
        )
    shape = ", ".join(json.dumps(axis) for axis in spec.shape)
    return f'{name} = {{ shape = [{shape}], role = "{role}", dtype = "{spec.dtype}" }}'


def _shapes(definition: Definition) -> list[str]:
    if _FREE.get(definition.op_type, set()).issuperset(definition.variables):
        return [f"fixed = {json.dumps(list(definition.constants))}"]
    fixed = f"fixed = {json.dumps(list(definition.axes))}"
    return ["unlisted = false", 'reason = "its axes depend on one another"', fixed]


def _workload(one: Planned, more: dict[str, int]) -> list[str]:
    dims = ", ".join(f"{name} = {value}" for name, value in {**one.axes, **one.integers, **more}.items())
    lines = [f"name = {json.dumps(one.name)}", f"dims = {{ {dims} }}"]
    if one.floats:
        lines.append(f"scalars = {{ {', '.join(f'{name} = {value!r}' for name, value in one.floats.items())} }}")
    return [*lines, *([f"weight = {one.weight}.0"] if one.weight > 1 else [])]


def _reference(definition: Definition) -> str:
    return (
        f"# Reference of the FlashInfer-Trace definition {definition.name}: its own text, as {DEFINITION} has it.\n"
        f"# ruff: noqa\n{plain_lines(definition.reference)}\n\n\n"
        "from team.tasks.formats.flashinfer.served import serve\n\n"
        "reference, make_inputs, compare, workload_model = serve(__file__, run)\n"
    )


def _stub(definition: Definition, one: Planned) -> str:
    tensors = [*definition.tensors, *definition.outputs]
    numbers = [*one.floats, *one.integers, *definition.variables]
    return (
        f'"""{definition.name}: yet to be written."""\n\n'
        f"def run_kernel({', '.join([*tensors, *numbers])}):\n"
        f'    raise NotImplementedError("write it in Triton: results go into {", ".join(definition.outputs)}")\n'
    )


def _copy_recorded(target: Path, chosen: list[Planned]) -> None:
    """Recorded tensors beside the task, and which input of which case each is."""
    if not any(one.recorded for one in chosen):
        return
    cases: list[dict[str, list[str]]] = []
    for one in chosen:
        for path, _ in one.recorded.values():
            shutil.copyfile(path, target / path.name)
        cases.append({name: [path.name, key] for name, (path, key) in one.recorded.items()})
    (target / RECORDED).write_text(json.dumps(cases, indent=1))

"""``kernelteam init``: from a file with ``extern "C" void solve(...)``, or a Triton file, to a task that only lacks its
reference."""

import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from team.errors import UserError
from team.tasks.drafting import derived, quoted, reference_text, task_name, tolerance_lines, workload_lines
from team.tasks.extents import guess_shape
from team.tasks.signature import Parameter, Signature, parse_signature
from team.tasks.spec import TaskSpec

_CPP = (".cpp", ".cc", ".cxx")
_NARROW_HIGH = {"bool": 2, "int8": 2**7, "uint8": 2**8}


@dataclass(frozen=True)
class _Draft:
    """What is known of the task before it is written."""

    name: str
    source: str
    device: str
    signature: Signature
    shapes: dict[str, tuple[str, ...]]
    guessed: frozenset[str]
    dims: dict[str, int]
    scalars: dict[str, float]

    @property
    def inputs(self) -> list[str]:
        return [pointer.name for pointer in self.signature.pointers if pointer.const]

    @property
    def outputs(self) -> list[str]:
        return [pointer.name for pointer in self.signature.pointers if not pointer.const]


def scaffold(
    kernel_file: Path,
    folder: Path | None,
    dims: Mapping[str, int],
    shapes: Mapping[str, Sequence[str]] | None = None,
    scalars: Mapping[str, float] | None = None,
) -> Path:
    """Write ``task.toml`` and a ``reference.py`` to complete into ``folder``; the folder.

    ``dims`` and ``scalars`` give one value for every integer and floating-point parameter of ``solve``; ``shapes``
    gives extents of pointers that the source does not show. A Triton file says its tensors by its own ``setup``.
    ``UserError`` lists everything that is missing at once.
    No file is ever overwritten. The default is a new folder beside the kernel, with its name without suffix; a kernel
    that is not in the folder is copied there.
    """
    if not kernel_file.is_file():
        raise UserError(f"There is no file {kernel_file}.", 'Give a file with extern "C" void solve(...).')
    target = (folder or kernel_file.with_suffix("")).resolve()
    if kernel_file.suffix == ".py":
        from team.tasks.scaffold_triton import triton_files  # loads torch

        _write(target, triton_files(kernel_file, target, dims, shapes or {}, scalars or {}), kernel_file)
        return target
    draft = _draft(kernel_file, target, dims, shapes or {}, scalars or {})
    files = {"task.toml": _task_toml(draft), "reference.py": _reference(draft)}
    TaskSpec.model_validate(tomllib.loads(files["task.toml"]))
    _write(target, files, kernel_file)
    return target


def _write(target: Path, files: Mapping[str, str], kernel_file: Path) -> None:
    if (target / "task.toml").exists():
        raise UserError(f"{target / 'task.toml'} exists.", "Edit it, or give another folder with --folder.")
    copied = target / kernel_file.name
    if copied.exists() and copied.read_bytes() != kernel_file.read_bytes():
        raise UserError(f"{copied} exists and is another kernel.", "Give another folder with --folder.")
    target.mkdir(parents=True, exist_ok=True)
    if not copied.exists():
        shutil.copyfile(kernel_file, copied)
    for name, text in files.items():
        if not (target / name).exists():
            with (target / name).open("x", encoding="utf-8") as handle:
                handle.write(text)


def _draft(
    kernel_file: Path,
    target: Path,
    dims: Mapping[str, int],
    shapes: Mapping[str, Sequence[str]],
    scalars: Mapping[str, float],
) -> _Draft:
    device = _device(kernel_file)
    source = kernel_file.read_text(errors="replace")
    signature = parse_signature(source, "cuda" if device == "cuda" else "cpp")
    integers = [parameter.name for parameter in signature.parameters if parameter.is_integer]
    known = {pointer.name: tuple(shapes[pointer.name]) for pointer in signature.pointers if pointer.name in shapes}
    guesses = {
        pointer.name: guess_shape(source, pointer.name, integers)
        for pointer in signature.pointers
        if pointer.name not in known
    }
    _refuse_unknown(signature, dims, shapes, scalars)
    _refuse_missing(signature, dims, scalars, [name for name, guess in guesses.items() if guess is None])
    return _Draft(
        name=task_name(target),
        source=kernel_file.name,
        device=device,
        signature=signature,
        shapes=known | {name: guess for name, guess in guesses.items() if guess},
        guessed=frozenset(guesses),
        dims=dict(dims),
        scalars=dict(scalars),
    )


def _device(kernel_file: Path) -> str:
    if kernel_file.suffix == ".cu":
        return "cuda"
    if kernel_file.suffix in _CPP:
        return "cpu"
    known = ", ".join((".cu", *_CPP, ".py with run_kernel"))
    problems = "a problem of KernelBench (.py), FlashInfer-Trace (.json) or GPU MODE (task.yml)"
    raise UserError(
        f"{kernel_file.name} is no kernel source that is known.", f"Give a file that ends in {known}, or {problems}."
    )


def _refuse_unknown(
    signature: Signature, dims: Mapping[str, int], shapes: Mapping[str, object], scalars: Mapping[str, float]
) -> None:
    for option, given, fits in (
        ("--dim", dims, [p.name for p in signature.parameters if p.is_integer]),
        ("--shape", shapes, [p.name for p in signature.pointers]),
        ("--scalar", scalars, [p.name for p in signature.parameters if p.is_real]),
    ):
        for name in given:
            if name not in fits:
                known = ", ".join(fits) or "none"
                raise UserError(f"solve has no parameter '{name}' for {option}.", f"It has for {option}: {known}.")
    for name, value in dims.items():
        if value < 1 and not _is_flag(signature, name):
            raise UserError(f"The dim {name} = {value} is no size.", "Give a value >= 1.")


def _is_flag(signature: Signature, name: str) -> bool:
    return any(parameter.name == name and parameter.dtype == "bool" for parameter in signature.parameters)


def _refuse_missing(
    signature: Signature, dims: Mapping[str, int], scalars: Mapping[str, float], shapeless: Sequence[str]
) -> None:
    sizes = [p.name for p in signature.parameters if p.is_integer and p.name not in dims]
    reals = [p.name for p in signature.parameters if p.is_real and p.name not in scalars]
    wanted = [f"--dim {name}=SIZE" for name in sizes]
    wanted += [f"--scalar {name}=VALUE" for name in reals]
    wanted += [f"--shape {name}=DIM,DIM" for name in shapeless]
    if wanted:
        names = ", ".join([*sizes, *reals, *(f"the shape of {name}" for name in shapeless)])
        raise UserError(f"The source of {signature} does not say: {names}.", f"Add: {' '.join(wanted)}")


# ---------------------------------------------------------------- the two files


def _task_toml(draft: _Draft) -> str:
    parts = [
        f"name = {quoted(draft.name)}",
        'contract = "solve"',
        f"device = {quoted(draft.device)}",
        f"source = {quoted(draft.source)}",
        'reference = "reference.py"',
        "",
        "[arguments]",
        *(_argument(draft, pointer) for pointer in draft.signature.pointers),
        "",
        *tolerance_lines([pointer.dtype for pointer in draft.signature.pointers if not pointer.const]),
        "",
        *workload_lines(derived(draft.dims, _sizes(draft)), _sizes(draft), draft.scalars),
    ]
    return "\n".join(parts)


def _argument(draft: _Draft, pointer: Parameter) -> str:
    extents = ", ".join(quoted(extent) if not extent.isdigit() else extent for extent in draft.shapes[pointer.name])
    fields = [f"shape = [{extents}]"]
    if pointer.const and not pointer.dtype.startswith(("float", "bfloat")):
        fields += ['values = "integers"', f"high = {_NARROW_HIGH.get(pointer.dtype, 2**15)}"]
    note = "  # shape read from its subscripts: check it" if pointer.name in draft.guessed else ""
    return f"{pointer.name} = {{ {', '.join(fields)} }}{note}"


def _sizes(draft: _Draft) -> list[str]:
    """Dims that are extents of some buffer; only these are varied."""
    used = {factor.strip() for shape in draft.shapes.values() for extent in shape for factor in extent.split("*")}
    return [name for name in draft.dims if name in used]


def _reference(draft: _Draft) -> str:
    parameters = [p for p in draft.signature.parameters if not p.is_stream]
    numbers = [parameter.name for parameter in parameters if not parameter.pointer]
    return reference_text(draft.name, [p.name for p in parameters], numbers, draft.inputs, draft.outputs, draft.shapes)

"""The inputs of kernel-optimizing skills as a task: one kernel file, one ``ref.py``, dims on the command line.

A ``.cu`` (or ``.cpp``) file with ``extern "C" void solve(...)`` or a Triton file with ``setup`` and ``run_kernel``, and
a module with ``reference(**kwargs)`` become a task folder in a git repository of its own, so that judge, minds and
reports work on it as on any other. The reference is given flat buffers, as those skills do, except where shapes are
given.

What the skills leave open is decided here and said. A pointer's size comes, in this order, from ``--shape`` or the
reference's ``shapes``, from ``--ptr-size``, from running the reference on small shapes (``team.tasks.sizes``), from the
subscripts in the kernel, and at last is the product of all dims, outside of which no honest index can lie.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

from team.errors import UserError
from team.tasks.extents import guess_shape
from team.tasks.signature import Parameter, Signature, parse_signature
from team.tasks.sizes import Need, needs_of
from team.tasks.skill_inputs import Read, SkillInputs
from team.tasks.task import load_reference

CAP = 1 << 28  # elements of a buffer of which nothing but the product of all dims is known
BARE = 1 << 20  # elements of every buffer of a kernel that takes no dims
_CPP = (".cpp", ".cc", ".cxx")


def read_inputs(inputs: SkillInputs) -> Read:
    """Understand the inputs, or a ``UserError`` that says what is wrong with them (the skills' preflight)."""
    for path, what in ((inputs.kernel, "kernel"), (inputs.reference, "reference")):
        if not path.is_file():
            raise UserError(f"There is no {what} file {path}.", "Correct the path.")
    module = load_reference(inputs.reference)
    tolerance = _tolerances(module, inputs)
    modelled = callable(getattr(module, "workload_model", None))
    if inputs.kernel.suffix == ".py":
        notes = () if inputs.dims else ("no dims were given: setup is called with its own defaults",)
        return Read(inputs, "triton", "cuda", None, {}, {}, tolerance, modelled, notes)
    signature, device = _signature(inputs.kernel)
    notes = _cover(signature, inputs)
    given = {**_shapes_of(module, inputs), **inputs.shapes}
    needs = needs_of(_by_name(module), signature, _dims(signature, inputs), inputs.scalars)
    _refuse_silence(needs, inputs.reference)
    extents, told = _extents(signature, inputs, needs, given)
    roles = {name: need.role for name, need in needs.items() if need.role == "inout"}
    told += tuple(f"'{name}' keeps or builds on what is in it: it is given contents" for name in roles)
    told += tuple(f"integers in '{p.name}' stay below the smallest dim" for p in _drawn_integers(signature, module))
    return Read(inputs, "solve", device, signature, extents, roles, tolerance, modelled, (*notes, *told))


# ---------------------------------------------------------------- what was given


def _signature(kernel: Path) -> tuple[Signature, str]:
    if kernel.suffix == ".cu":
        return parse_signature(kernel.read_text(errors="replace"), "cuda"), "cuda"
    if kernel.suffix in _CPP:
        return parse_signature(kernel.read_text(errors="replace"), "cpp"), "cpu"
    raise UserError(f"{kernel.name} is no kernel that is known.", "Give a .cu, a .py for Triton, or a .cpp file.")


def _dims(signature: Signature, inputs: SkillInputs) -> dict[str, int]:
    wanted = [p.name for p in signature.parameters if p.is_integer]
    return {name: inputs.dims[name] for name in wanted}


def _cover(signature: Signature, inputs: SkillInputs) -> tuple[str, ...]:
    """Refuse what solve takes and nobody gave; a note on what was given and solve does not take."""
    integers = [p.name for p in signature.parameters if p.is_integer]
    reals = [p.name for p in signature.parameters if p.is_real]
    missing = [f"--{name}=SIZE" for name in integers if name not in inputs.dims]
    missing += [f"--{name}=VALUE" for name in reals if name not in inputs.scalars]
    if missing:
        raise UserError(f"{signature} needs more than was given.", f"Add: {' '.join(missing)}")
    extra = [name for name in (*inputs.dims, *inputs.scalars) if name not in (*integers, *reals)]
    return (f"solve takes no {', '.join(extra)}: not used",) if extra else ()


def _by_name(module: ModuleType) -> Callable[[Mapping[str, Any]], Any]:
    """The reference, called with those arguments that it names."""
    reference = module.reference
    named = inspect.signature(reference).parameters
    everything = any(one.kind is one.VAR_KEYWORD for one in named.values())
    return lambda given: reference(**{name: one for name, one in given.items() if everything or name in named})


def _tolerances(module: ModuleType, inputs: SkillInputs) -> dict[str, tuple[float, float]]:
    """By output; the reference's own ``atol`` and ``rtol`` come before the command line, ``tolerances`` before both."""
    atol = float(getattr(module, "atol", inputs.atol))
    rtol = float(getattr(module, "rtol", inputs.rtol))
    named = getattr(module, "tolerances", {})
    return {"default": (atol, rtol), **{str(name): (float(pair[0]), float(pair[1])) for name, pair in named.items()}}


def _shapes_of(module: ModuleType, inputs: SkillInputs) -> dict[str, Sequence[str]]:
    """``shapes`` of the reference: pointer -> extents by the names of dims."""
    shapes = getattr(module, "shapes", {})
    if not isinstance(shapes, dict):
        raise UserError(f"'shapes' in {inputs.reference} is no dict.", 'Write it as shapes = {"A": ("M", "K")}.')
    return {str(name): [str(extent) for extent in extents] for name, extents in shapes.items()}


def _refuse_silence(needs: Mapping[str, Need], reference: Path) -> None:
    for name, need in needs.items():
        if need.silent:
            raise UserError(
                f"The reference in {reference} neither writes nor returns '{name}', so any kernel would pass.",
                f"Write into '{name}' in place, return it, or make the pointer const.",
            )


# ---------------------------------------------------------------- sizes


def _extents(
    signature: Signature, inputs: SkillInputs, needs: Mapping[str, Need], given: Mapping[str, Sequence[str]]
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Extents of every pointer, and what is to be said about how they are known."""
    source, dims = inputs.kernel.read_text(errors="replace"), list(_dims(signature, inputs))
    found: dict[str, tuple[str, ...]] = {}
    notes: list[str] = []
    for name in given:
        if name not in [pointer.name for pointer in signature.pointers]:
            raise UserError(f"solve has no pointer '{name}' to give a shape to.", f"It is {signature}.")
    for pointer in signature.pointers:
        name = pointer.name
        need = needs.get(name)
        if name in given:
            found[name] = tuple(given[name])
        elif inputs.ptr_size > 0:
            found[name] = (str(inputs.ptr_size),)
        elif need and need.extent:
            found[name] = (need.extent,)
            notes.append(f"'{name}' has {need.extent} elements, as the reference uses it")
        elif guess := guess_shape(source, name, dims):
            found[name] = ("*".join(guess),) if needs else guess  # a reference that refuses flat buffers gets shapes
            notes.append(f"'{name}' has {'*'.join(guess)} elements, as the kernel indexes it")
        else:
            extent, why = _largest(_dims(signature, inputs))
            found[name] = (extent,)
            notes.append(f"nothing says how long '{name}' is: {why}; say it with --shape {name}=... or --ptr-size")
    return found, tuple(notes)


def _largest(dims: Mapping[str, int]) -> tuple[str, str]:
    if not dims:
        return str(BARE), f"{BARE} elements are lent"
    if prod(dims.values()) > CAP:
        return str(CAP), f"{CAP} elements are lent, the most that is lent without being asked"
    return "*".join(dims), "the product of all dims is lent"


def _drawn_integers(signature: Signature, module: ModuleType) -> list[Parameter]:
    """Integer inputs that the judge draws: indices as well as numbers, for all it knows."""
    if callable(getattr(module, "make_inputs", None)):
        return []
    return [p for p in signature.pointers if p.const and p.dtype.startswith(("int", "uint"))]

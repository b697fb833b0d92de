"""From a KernelBench problem file to a task folder: the problem, a reference that runs it, and a first kernel."""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from team.errors import UserError
from team.tasks.first_kernel.given import given_kernel
from team.tasks.first_kernel.names import safe_name
from team.tasks.first_kernel.trace import draws, traced
from team.tasks.first_kernel.writing import SUFFIXES, FirstKernel, Function, Language, first_kernel, small_dims
from team.tasks.formats.imported import Imported, argument_lines, workload_lines
from team.tasks.formats.kernelbench.problem import TOLERANCES, Built, Problem, result_names
from team.tasks.spec import read_spec

PROBLEM = "problem.py"
INTERPRETED = 1 << 12  # elements of a launch that Triton's interpreter is asked for
_DEVICES: dict[Language, str] = {"triton": "cuda", "cuda": "cuda", "cpp": "cpu"}


def import_problem(problem: Problem, folder: Path, language: Language, own: Path | None = None) -> Imported:
    """Write the task into the new folder ``folder``; ``UserError`` where the first kernel cannot be written.

    ``own``: a person's kernel in that language, which takes its place.
    """
    if (folder / "task.toml").exists():
        raise UserError(f"{folder / 'task.toml'} exists.", "Edit it, or give another folder with --folder.")
    problem = replace(problem, training=problem.training and not _draws(problem))
    kernel = _first(problem, language) if own is None else _given(problem, language, own)
    small = small_dims(kernel.dims, lambda sizes: _elements(problem, sizes), INTERPRETED) if kernel.dims else {}
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(problem.path, folder / PROBLEM)
    source = f"{_name(folder)}{SUFFIXES[language]}"
    (folder / source).write_text(kernel.text)
    (folder / "reference.py").write_text(_reference(problem, kernel))
    (folder / "task.toml").write_text(_toml(problem, kernel, language, source, _name(folder), small))
    return Imported(folder, read_spec(folder), _notes(problem, kernel, language))


def _draws(problem: Problem) -> bool:
    """Whether the model draws random numbers."""
    function = _function(problem, {})
    return draws(traced(function.call, list(function.arguments.values())))


def _first(problem: Problem, language: Language) -> FirstKernel:
    said = f"What {problem.path.name} computes, its operators one after the other."
    return first_kernel(lambda changes: _function(problem, changes), _candidates(problem), language, said)


def _given(problem: Problem, language: Language, own: Path) -> FirstKernel:
    return given_kernel(lambda changes: _function(problem, changes), _candidates(problem), own, language)


def _candidates(problem: Problem) -> dict[str, int]:
    """The sizes that may become dims: those whose names are free."""
    return {name: size for name, size in problem.constants.items() if safe_name(name, ()) == name}


def _function(problem: Problem, changes: Mapping[str, int]) -> Function:
    built = problem.built(changes)
    names = list(built.tensors())

    def call(*tensors: object) -> tuple[object, ...]:
        return built.call(dict(zip(names, tensors, strict=True)))  # type: ignore[arg-type]

    return Function(call, built.tensors(), result_names(_results(built), names))


def _results(built: Built) -> int:
    try:
        return len(built.call(built.tensors()))
    except UserError:
        raise
    except Exception as error:  # human-owned code may raise anything
        raise UserError(f"The model's forward raised {type(error).__name__}: {error}.", "Correct it.") from error


def _elements(problem: Problem, sizes: Mapping[str, int]) -> int | None:
    """Elements of all arguments at some sizes; None where the model does not run so."""
    try:
        built = problem.built(sizes)
        results = built.call(built.tensors())
    except Exception:  # noqa: BLE001  human-owned code may raise anything at sizes that nobody planned
        return None
    return sum(one.numel() for one in (*built.tensors().values(), *results))


def small_sizes(problem: Problem, most: int) -> dict[str, int]:
    """The problem's sizes, smaller, so that a launch has at most ``most`` elements as far as its model runs so."""
    return small_dims(problem.constants, lambda sizes: _elements(problem, sizes), most)


@cache
def _name(folder: Path) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.name).lstrip("_.-0123456789") or "problem"


def _reference(problem: Problem, kernel: FirstKernel) -> str:
    fixed = {name: size for name, size in problem.sizes.items() if name not in kernel.dims}
    options = f', precision="{problem.precision}"' if problem.precision != "fp32" else ""
    options += f", sizes={json.dumps(fixed)}" if fixed else ""
    options += "" if problem.training else ", training=False"
    read = {one.name for one in kernel.inputs}
    unread = [name for name in problem.built({}).tensors() if name not in read]
    options += f", unread={json.dumps(unread)}" if unread else ""
    return f'''"""What {problem.path.name} computes: its own Model, on the weights that are given."""

from pathlib import Path

from team.tasks.formats.kernelbench.judged import Judged

_judged = Judged(Path(__file__).with_name("{PROBLEM}"){options})
reference = _judged.reference
make_inputs = _judged.make_inputs
workload_model = _judged.workload_model
'''


def _toml(
    problem: Problem, kernel: FirstKernel, language: Language, source: str, name: str, small: Mapping[str, int]
) -> str:
    tolerance = TOLERANCES[problem.precision]
    lines = [
        f'name = "{name}"',
        f'contract = "{"triton" if language == "triton" else "solve"}"',
        f'device = "{_DEVICES[language]}"',
        f'source = "{source}"',
        'reference = "reference.py"',
        "",
        *argument_lines(kernel),
        "",
        f"# As the benchmark has it in {problem.precision}: |got - want| <= atol + rtol * |want|.",
        "[tolerance]",
        f"default = {{ atol = {tolerance}, rtol = {tolerance} }}",
        "",
        *workload_lines("workloads", "problem", kernel.dims),
    ]
    if language == "triton" and small and small != dict(kernel.dims):
        lines += ["# For Triton's interpreter, where there is no GPU.", *workload_lines("interpreted", "small", small)]
    return "\n".join(lines)


def _notes(problem: Problem, kernel: FirstKernel, language: Language) -> tuple[str, ...]:
    fixed = [name for name in problem.constants if name not in kernel.dims]
    notes = [] if problem.training else ["its model draws random numbers in training mode: it is taken in eval mode"]
    notes += [f"sizes that stay as they are: {', '.join(fixed)}"] if fixed else []
    if language == "triton" and not kernel.dims:
        notes.append("without a GPU it can be checked at its own sizes alone, which may take long: no size is a dim")
    return tuple(notes)

"""From a GPU MODE problem to a task folder: benchmarks are timed, tests must be right, the first kernel is written."""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from team.errors import UserError
from team.tasks.first_kernel.names import safe_name
from team.tasks.first_kernel.writing import SUFFIXES, FirstKernel, Function, Language, first_kernel, small_dims
from team.tasks.formats.gpu_mode.problem import CASE, REFERENCE, Problem
from team.tasks.formats.imported import Imported, argument_lines, workload_lines
from team.tasks.formats.kernelbench.problem import result_names
from team.tasks.spec import read_spec

PLACE = "problem"
INTERPRETED = 1 << 12  # elements of a launch that Triton's interpreter is asked for
_TOLERANCES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 2e-2, 5e-2, 1e-1)
_DEVICES: dict[Language, str] = {"triton": "cuda", "cuda": "cuda", "cpp": "cpu"}


def import_problem(problem: Problem, folder: Path, language: Language) -> Imported:
    """Write the task into the new folder ``folder``; ``UserError`` where the first kernel cannot be written."""
    if (folder / "task.toml").exists():
        raise UserError(f"{folder / 'task.toml'} exists.", "Edit it, or give another folder with --folder.")
    timed, tested = problem.cases("benchmarks"), problem.cases("tests")
    model = min([*timed, *tested], key=lambda case: _elements(problem, case) or 0)
    kernel = _first(problem, model, language)
    fixed = _fixed(kernel, [*timed, *tested])
    tolerance = _tolerance(problem, model)
    folder.mkdir(parents=True, exist_ok=True)
    _copy(problem, folder / PLACE)
    source = f"{_name(folder)}{SUFFIXES[language]}"
    unread = [name for name in problem.data(model, 0).names if name not in {one.name for one in kernel.inputs}]
    (folder / source).write_text(kernel.text)
    (folder / "reference.py").write_text(_reference(problem, fixed, unread))
    (folder / "task.toml").write_text(_toml(problem, kernel, language, folder, source, tolerance))
    return Imported(folder, read_spec(folder), _notes(problem))


def _first(problem: Problem, case: Mapping[str, Any], language: Language) -> FirstKernel:
    said = f"What {problem.folder.name} asks for, the reference's operators one after the other."
    dims = {name: value for name, value in case.items() if type(value) is int and safe_name(name, ()) == name}

    def at(changes: Mapping[str, int]) -> Function:
        data = problem.data({**case, **changes}, 0)
        count = len(problem.results(data.filled({})))
        meta = {name: value.to("meta") for name, value in data.named().items()}

        def call(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return problem.results(data.filled(dict(zip(meta, tensors, strict=True))))

        return Function(call, meta, result_names(count, list(meta)))

    return first_kernel(at, dims, language, said)


def _elements(problem: Problem, case: Mapping[str, Any]) -> int | None:
    try:
        return sum(one.numel() for one in problem.data(case, 0).tensors)
    except UserError:
        return None


def _fixed(kernel: FirstKernel, cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Arguments that are no dims; where they differ between cases there is no one kernel."""
    fixed: dict[str, Any] = {}
    for case in cases:
        for name, value in case.items():
            if name not in kernel.dims and fixed.setdefault(name, value) != value:
                raise UserError(
                    f"'{name}' differs between the cases, and the first kernel cannot take it as a size.",
                    f"Leave one value of '{name}' in {CASE}, or write a kernel for a task of your own.",
                )
    return fixed


def _tolerance(problem: Problem, case: Mapping[str, Any]) -> float:
    """The largest of some tolerances, absolute and relative, within which the problem's own check takes an answer."""
    data = problem.data(case, 0)
    want = problem.results(data.filled({}))
    found = 0.0
    for tolerance in _TOLERANCES:
        signs = [torch.where(torch.arange(one.numel()).view(one.shape) % 2 == 0, 1.0, -1.0) for one in want]
        moved = [
            (one.double() + 0.98 * tolerance * sign * (1.0 + one.double().abs())).to(one.dtype)
            if one.is_floating_point()
            else one
            for one, sign in zip(want, signs, strict=True)
        ]
        answer = moved[0] if len(moved) == 1 else tuple(moved)
        if not problem.accepts(data.filled({}), answer):
            break
        found = tolerance
    return found


def _copy(problem: Problem, folder: Path) -> None:
    folder.mkdir()
    files = {CASE: problem.folder / CASE, REFERENCE: problem.folder / REFERENCE, **problem.support()}
    for name, path in files.items():
        shutil.copyfile(path, folder / name)


def _name(folder: Path) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.name).lstrip("_.-0123456789") or "problem"


def _reference(problem: Problem, fixed: Mapping[str, Any], unread: Sequence[str]) -> str:
    options = f", fixed={dict(fixed)!r}" if fixed else ""
    options += f", unread={json.dumps(list(unread))}" if unread else ""
    return f'''"""What {problem.folder.name} asks for: its own reference. It decides what is correct."""

from pathlib import Path

from team.tasks.formats.gpu_mode.judged import Judged

_judged = Judged(Path(__file__).parent / "{PLACE}"{options})
reference = _judged.reference
make_inputs = _judged.make_inputs
workload_model = _judged.workload_model
'''


def _toml(
    problem: Problem, kernel: FirstKernel, language: Language, folder: Path, source: str, tolerance: float
) -> str:
    lines = [
        f'name = "{_name(folder)}"',
        f'contract = "{"triton" if language == "triton" else "solve"}"',
        f'device = "{_DEVICES[language]}"',
        f'source = "{source}"',
        'reference = "reference.py"',
        "",
        *argument_lines(kernel),
        "",
        "# What the problem's own check_implementation accepts.",
        "[tolerance]",
        f"default = {{ atol = {tolerance}, rtol = {tolerance} }}",
        "",
        "# The benchmarks, which are timed; the geometric mean over them counts.",
        *_tables("workloads", problem.cases("benchmarks"), kernel),
        "# The tests, on which a kernel must be right.",
        *_tables("checked", problem.cases("tests"), kernel),
    ]
    if language == "triton" and kernel.dims:
        small = small_dims(
            kernel.dims, lambda dims: _elements(problem, {**_others(problem, kernel), **dims}), INTERPRETED
        )
        lines += ["# For Triton's interpreter, where there is no GPU.", *workload_lines("interpreted", "small", small)]
    return "\n".join(lines)


def _others(problem: Problem, kernel: FirstKernel) -> dict[str, Any]:
    return {name: value for name, value in problem.cases("benchmarks")[0].items() if name not in kernel.dims}


def _tables(table: str, cases: Sequence[Mapping[str, Any]], kernel: FirstKernel) -> list[str]:
    lines: list[str] = []
    seen: set[str] = set()
    for case in cases:
        dims = {name: int(value) for name, value in case.items() if name in kernel.dims}
        name = " ".join(f"{key}={value}" for key, value in dims.items()) or "only"
        if name not in seen:
            seen.add(name)
            lines += workload_lines(table, name if table == "workloads" else f"test {name}", dims)
    return lines


def _notes(problem: Problem) -> tuple[str, ...]:
    ranking = str(problem.told.get("ranking_by", "geom"))
    notes = [] if ranking == "geom" else [f"the problem ranks by '{ranking}'; here the geometric mean counts"]
    if (problem.folder / "submission.py").is_file():
        notes.append("submission.py is not read: the first kernel is written from ref_kernel")
    return tuple(notes)

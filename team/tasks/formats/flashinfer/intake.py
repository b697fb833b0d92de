"""A file of a FlashInfer-Trace data set, a definition or a solution, as ``kernelteam init`` is given it."""

import json
from collections.abc import Mapping
from pathlib import Path

from team.errors import UserError
from team.tasks.formats.flashinfer.bound import bound_files, is_bound
from team.tasks.formats.flashinfer.calling import as_kernel
from team.tasks.formats.flashinfer.dataset import read_definition, root_of
from team.tasks.formats.flashinfer.importing import Imported, import_problem
from team.tasks.formats.flashinfer.packing import read_solution, safe


def import_file(path: Path, folder: Path | None, sizes: Mapping[str, int]) -> Imported:
    """Make a task of a definition, or of a solution with the definition that lies in the same data set.

    ``sizes`` give the var axes of one workload, in place of the recorded ones. The default folder is a new one here,
    with the definition's name: a data set is no place for tasks.
    """
    definition, first = path, None
    if "sources" in json.loads(path.read_text()):
        solution = read_solution(path)
        definition = definition_of(path, solution.definition)
        first = (bound_files if is_bound(solution) else as_kernel)(read_definition(definition), solution)
    target = folder or Path(safe(read_definition(definition).name))
    return import_problem(definition, target.resolve(), first=first, sizes=sizes)


def definition_of(solution_file: Path, name: str) -> Path:
    """The file of the definition ``name`` in the data set that a solution lies in."""
    for parent in solution_file.resolve().parents:
        found = sorted((parent / "definitions").rglob(f"{name}.json")) if (parent / "definitions").is_dir() else []
        if found and root_of(found[0]) is not None:
            return found[0]
    raise UserError(f"No data set around {solution_file} holds the definition {name}.", "Put the solution into it.")


def notes_of(made: Imported) -> tuple[str, ...]:
    """What is to be said about a new task."""
    return (f"Workloads: {len(made.workloads)}.", *made.remarks, *made.reasons.values())

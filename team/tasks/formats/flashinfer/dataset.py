"""A folder of FlashInfer-Trace records: ``definitions/``, ``workloads/``, and blobs where they are present.

A record that cannot be read is a sentence beside the others, never the end of the whole. The folder is foreign: a path
that leaves it is refused.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from team.errors import UserError
from team.tasks.formats.flashinfer.schema import Definition, SafetensorsInput, Trace, Workload


@dataclass(frozen=True)
class Dataset:
    """Definitions by name, workloads by definition, and what could not be read, by file."""

    root: Path
    definitions: dict[str, Definition]
    workloads: dict[str, tuple[Workload, ...]]
    faults: dict[str, str]


def read_dataset(root: Path) -> Dataset:
    """Everything below ``root``; raises ``UserError`` when it is no data set."""
    if not (root / "definitions").is_dir():
        raise UserError(f"{root} has no folder 'definitions'.", "Give the root of a FlashInfer-Trace data set.")
    definitions: dict[str, Definition] = {}
    faults: dict[str, str] = {}
    for path in sorted((root / "definitions").rglob("*.json")):
        try:
            found = read_definition(path)
        except UserError as error:
            faults[str(path.relative_to(root))] = error.what
            continue
        if found.name in definitions:
            faults[str(path.relative_to(root))] = f"A second definition is named {found.name}."
        definitions.setdefault(found.name, found)
    workloads: dict[str, list[Workload]] = {}
    for path in sorted((root / "workloads").rglob("*.jsonl")):
        try:
            for name, workload in _lines(path):
                workloads.setdefault(name, []).append(workload)
        except UserError as error:
            faults[str(path.relative_to(root))] = error.what
    return Dataset(root, definitions, {name: tuple(found) for name, found in workloads.items()}, faults)


def read_definition(path: Path) -> Definition:
    """One definition; a ``UserError`` says what is wrong with it."""
    try:
        return Definition.model_validate(json.loads(path.read_text()))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise UserError(
            f"{path} is no FlashInfer-Trace definition: {_first(error)}.", "Give a file of a data set's definitions/."
        ) from None


def root_of(definition_file: Path) -> Path | None:
    """The data set that a definition's file belongs to."""
    return next((folder.parent for folder in definition_file.resolve().parents if folder.name == "definitions"), None)


def workloads_of(definition: Definition, root: Path | None) -> tuple[Workload, ...]:
    """The recorded workloads of one definition."""
    if root is None:
        return ()
    files = sorted((root / "workloads").rglob(f"{definition.name}.jsonl"))
    return tuple(workload for path in files for name, workload in _lines(path) if name == definition.name)


def blob_of(root: Path | None, spec: SafetensorsInput) -> Path | None:
    """The file of a recorded tensor, None where it is absent; ``UserError`` when its path leaves the data set."""
    if Path(spec.path).is_absolute() or ".." in Path(spec.path).parts:
        raise UserError(f"The recorded tensor '{spec.path}' lies outside the data set.", "Put it below its root.")
    path = None if root is None else root / spec.path
    return path if path is not None and path.is_file() else None


def _lines(path: Path) -> Iterator[tuple[str, Workload]]:
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if not line.strip():
            continue
        try:
            trace = Trace.model_validate(json.loads(line))
        except ValueError as error:
            raise UserError(f"Line {number} of {path} is no workload: {_first(error)}.", "Correct it.") from None
        yield trace.definition, trace.workload


def _first(error: Exception) -> str:
    """The first thing that is wrong, as a clause."""
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        place = ".".join(str(part) for part in fault["loc"])
        return f"{place}: {fault['msg']}" if place else fault["msg"]
    return str(error)

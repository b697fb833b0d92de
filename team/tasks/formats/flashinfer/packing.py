"""Solutions as files: a landed tree becomes one, a solution becomes a folder and again one, and the contest's layout.

Everything is explicit in what is written, also what equals a default; names are unique by content, so that a benchmark
that remembers failures by name never takes one version for another.
"""

import hashlib
import json
import re
from pathlib import Path

from pydantic import ValidationError

from team.errors import UserError
from team.tasks.formats.flashinfer.bound import SOLUTION
from team.tasks.formats.flashinfer.calling import with_entry_point
from team.tasks.formats.flashinfer.dataset import read_definition
from team.tasks.formats.flashinfer.schema import BuildSpec, Definition, Solution, SourceFile
from team.tasks.formats.flashinfer.served import CASE, DEFINITION
from team.tasks.spec import read_spec

METADATA = "solution.json"  # of an unpacked solution: everything but its sources
SUFFIXES = (".py", ".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp")
AUTHOR = "kernelteam"


def is_imported(trusted: Path) -> bool:
    """Whether a task was made of a definition."""
    return (trusted / DEFINITION).is_file()


def pack(trusted: Path, tree: Path, author: str = AUTHOR) -> Solution:
    """The solution of a tree of the imported task in ``trusted``; files in subfolders keep their places."""
    spec, definition = read_spec(trusted), read_definition(trusted / DEFINITION)
    texts = {name: _text(tree / name) for name in spec.editable_files if name.endswith(SUFFIXES)}
    if (trusted / SOLUTION).is_file():
        return _named(definition.name, definition.name, author, _told(trusted / SOLUTION)[0], texts)
    if spec.source not in texts:
        raise UserError(f"There is no {spec.source} in {tree}.", "Export a tree of this task.")
    if any(CASE in workload.dims for workload in spec.workloads) and f"{CASE}=" in texts[spec.source]:
        raise UserError(f"The kernel asks for '{CASE}', which only this task has.", "Take the recorded tensors alone.")
    texts[spec.source], symbol, in_place = with_entry_point(definition, texts[spec.source])
    build = BuildSpec(
        language="triton",
        target_hardware=("cuda",),
        entry_point=f"{spec.source}::{symbol}",
        destination_passing_style=in_place,
    )
    return _named(definition.name, definition.name, author, build, texts)


def solution_text(solution: Solution) -> str:
    """The solution as JSON, nothing left to defaults."""
    return json.dumps(solution.model_dump(mode="json"), indent=2) + "\n"


def read_solution(path: Path) -> Solution:
    """A solution's file; a ``UserError`` says what is wrong with it."""
    try:
        return Solution.model_validate(json.loads(path.read_text()))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise UserError(f"{path} is no FlashInfer-Trace solution: {_first(error)}.", "Correct it.") from None


def unpack(solution: Solution, place: Path) -> Path:
    """Write a solution's sources and metadata into a new folder below ``place``; the folder."""
    folder = place / safe(solution.name)
    if folder.exists():
        raise UserError(f"{folder} exists.", "Remove it, or unpack elsewhere.")
    for source in solution.sources:
        path = folder / source.path
        if path == folder / METADATA:
            raise UserError(f"Solution {solution.name} has a source named {METADATA}.", "Rename it.")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source.content)
    told = solution.model_dump(mode="json", exclude={"sources"})
    (folder / METADATA).write_text(json.dumps(told, indent=2) + "\n")
    return folder


def pack_folder(folder: Path) -> Solution:
    """An unpacked solution again, with a name by its present content."""
    build, base, definition, author = _told(folder / METADATA)
    texts: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or name == METADATA:
            continue
        if path.suffix not in SUFFIXES or path.is_symlink():
            raise UserError(f"{path} is no source file.", f"Remove it: a solution holds {', '.join(SUFFIXES)}.")
        texts[name] = _text(path)
    return _named(re.sub(r"_[0-9a-f]{8}$", "", base), definition, author, build, texts)


def write_contest(solution: Solution, repository: Path) -> Path:
    """The layout of the kernel contest: one folder for each definition, with ``config.toml`` and ``solution/``."""
    folder = repository / safe(solution.definition)
    if (folder / "solution").exists():
        raise UserError(f"{folder / 'solution'} exists.", "Remove it: two versions must not mix.")
    for source in solution.sources:
        path = folder / "solution" / source.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source.content)
    spec = solution.spec
    sections = {
        "solution": {"name": solution.name, "definition": solution.definition, "author": solution.author},
        "build": {
            "language": spec.language,
            "entry_point": spec.entry_point,
            "destination_passing_style": spec.destination_passing_style,
            **({"binding": spec.binding} if spec.binding else {}),
        },
    }
    lines: list[str] = []
    for title, values in sections.items():
        lines += [f"[{title}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items()), ""]
    (folder / "config.toml").write_text("\n".join(lines))
    return folder


def place_in_dataset(solution: Solution, definition: Definition, root: Path) -> Path:
    """Write a solution where a data set keeps it; its file."""
    path = root / "solutions" / safe(solution.author) / definition.op_type / definition.name
    path.mkdir(parents=True, exist_ok=True)
    (path / f"{safe(solution.name)}.json").write_text(solution_text(solution))
    return path / f"{safe(solution.name)}.json"


def safe(name: str) -> str:
    """A name as one part of a path."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip(".-") or "solution"


def _named(base: str, definition: str, author: str, build: BuildSpec, texts: dict[str, str]) -> Solution:
    sources = tuple(SourceFile(path=path, content=text) for path, text in sorted(texts.items()))
    parts = [definition, build.model_dump(mode="json"), [[source.path, source.content] for source in sources]]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]
    try:
        return Solution(name=f"{base}_{digest}", definition=definition, author=author, spec=build, sources=sources)
    except ValidationError as error:
        raise UserError(f"These files are no solution: {_first(error)}.", "Correct the metadata.") from None


def _told(path: Path) -> tuple[BuildSpec, str, str, str]:
    """What a solution's metadata says: how it is built, its name, its definition, its author."""
    try:
        told = json.loads(path.read_text())
        build = BuildSpec.model_validate(told["spec"])
        return build, str(told["name"]), str(told["definition"]), str(told["author"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} cannot be used: {_first(error)}.", "Unpack a solution first.") from None


def _text(path: Path) -> str:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}.", "A solution holds text alone.") from None
    if not text.strip():
        raise UserError(f"{path} is empty.", "Remove it, or write it: a solution has no empty file.")
    return text


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        return f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}".removeprefix(": ")
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)

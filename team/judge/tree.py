"""Which text is judged: the editable files from a tree, everything else from the trusted task folder. Trusted."""

import os
import stat
from pathlib import Path

from protocol.messages import Outcome
from team.judge.failures import Failed, Side
from team.tasks.spec import TaskSpec

MAX_SOURCE = 4 << 20  # bytes of one source file
_HEADERS = (".h", ".hpp", ".hh", ".cuh", ".inc")
_IGNORED = frozenset({".git", "__pycache__"})


def editable_text(spec: TaskSpec, tree: Path, side: Side) -> dict[str, str]:
    """The editable files of a tree; anything but regular text files is tampering."""
    return {name: _read(tree, name, side) for name in spec.editable_files}


def build_files(spec: TaskSpec, task_folder: Path, editable: dict[str, str]) -> dict[str, str]:
    """What the compiler sees: the editable text, and beside it the task's own headers and its source."""
    names = {str(path.relative_to(task_folder)) for path in _files(task_folder) if path.suffix in _HEADERS}
    fixed = {name: (task_folder / name).read_text(errors="replace") for name in names | {spec.source}}
    return {**fixed, **editable}


def refuse_other_edits(spec: TaskSpec, task_folder: Path, tree: Path, side: Side) -> None:
    """Raise TAMPERED when a file of the task that is not editable differs in ``tree``; absent files are fine."""
    editable = set(spec.editable_files)
    for path in _files(task_folder):
        name = str(path.relative_to(task_folder))
        theirs = tree / name
        if name in editable or not os.path.lexists(theirs):
            continue
        if theirs.is_symlink() or not theirs.is_file() or theirs.read_bytes() != path.read_bytes():
            raise Failed(
                side, Outcome.TAMPERED, f"'{name}' differs from the task's own copy and is not among the editable files"
            )


def _files(folder: Path) -> list[Path]:
    """Every regular file under ``folder``, sorted, without version control and caches."""
    found: list[Path] = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _IGNORED and not name.startswith("."))
        found += [Path(where) / name for name in sorted(names) if not name.startswith(".")]
    return [path for path in found if path.is_file() and not path.is_symlink()]


def _read(tree: Path, name: str, side: Side) -> str:
    path = tree / name
    for part in (path, *path.parents[: len(Path(name).parts) - 1]):
        if part.is_symlink():
            raise Failed(side, Outcome.TAMPERED, f"'{name}' is reached through a symbolic link")
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode) or state.st_size > MAX_SOURCE:
            raise Failed(side, Outcome.TAMPERED, f"'{name}' is not a regular file of at most {MAX_SOURCE} bytes")
        return path.read_text()
    except FileNotFoundError:
        raise Failed(side, Outcome.BUILD_FAILED, f"the tree has no file '{name}'") from None
    except UnicodeDecodeError:
        raise Failed(side, Outcome.BUILD_FAILED, f"'{name}' is not UTF-8 text") from None

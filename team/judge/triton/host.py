"""How a Python process that runs foreign code is started: what it may read, its uid, what it finds. Trusted."""

import importlib.util
import os
import stat
import sys
from functools import cache
from pathlib import Path

from team.errors import UserError
from team.judge.artifact import Artifact
from team.judge.build import Builder, Recipe

HERE = Path(__file__).parent
_RUNNER = HERE.parent / "runner"
_PACKAGES = ("torch", "triton", "msgpack", "numpy")
_NOBODY = 65534


def require_triton() -> str:
    """Triton's version; a ``UserError`` where it is not installed."""
    found = importlib.util.find_spec("triton")
    if found is None or found.origin is None:
        raise UserError("Triton is not installed.", "Install it: pip install 'kernelteam[triton]'")
    from importlib.metadata import version

    return version("triton")


def tool(name: str) -> str:
    """A program that Triton brings along."""
    found = importlib.util.find_spec("triton")
    assert found is not None
    assert found.origin is not None
    return str(Path(found.origin).parent / "backends" / "nvidia" / "bin" / name)


def seal_recipe() -> Recipe:
    """How to build the sandbox's library for Python processes."""
    files = {name: (_RUNNER / name).read_text() for name in ("python.cpp", "sandbox.h")}
    return Recipe(files, "python.cpp", ("-O2", "-std=c++17", "-fPIC", "-shared"), ours=True)


def seal(builder: Builder) -> Artifact:
    """The sandbox's library, verified."""
    built = builder.build(seal_recipe())
    built.verified_bytes()
    return built


@cache
def package_folders() -> tuple[str, ...]:
    """Folders that hold the packages a candidate's process needs."""
    found: list[str] = []
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            found.append(str(Path(spec.origin).parent.parent))
    return tuple(dict.fromkeys(found))


@cache
def readable_paths() -> tuple[str, ...]:
    """Everything that such a process reads: the interpreter, its packages, and the two scripts here."""
    python = {sys.prefix, sys.base_prefix, str(Path(os.path.realpath(sys.executable)).parent.parent)}
    return (*package_folders(), *sorted(python), str(HERE))


@cache
def must_keep_uid() -> bool:
    """Whether another uid could not read what the process needs, so that it keeps the judge's."""
    return os.geteuid() != 0 or not all(_open_to_all(Path(path)) for path in readable_paths())


def open_room(room: Path) -> None:
    """Let the process with its other uid work in ``room``, a folder in the system's temporary folder."""
    if must_keep_uid():
        return
    for path in (room, *room.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for path in (room, room / "cache"):
        os.chown(path, _NOBODY, _NOBODY)


def environment(room: Path, interpret: bool) -> dict[str, str]:
    """A clean environment: no keys, no GPU, everything that is written goes to ``room``."""
    libraries = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return libraries | {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "HOME": str(room),
        "USER": "candidate",  # the uid that it runs under may have no name, and torch asks for one
        "TMPDIR": str(room / "cache"),
        "PYTHONPATH": os.pathsep.join(package_folders()),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        "TRITON_CACHE_DIR": str(room / "cache"),
        "TRITON_CACHE_MANAGER": "caching:PlainCache",
        "TRITON_INTERPRET": "1" if interpret else "0",
    }


def write_sources(room: Path, files: dict[str, str]) -> None:
    """The candidate's files, as it finds them, and a folder that it may write to."""
    (room / "cache").mkdir()
    for name, text in files.items():
        path = room / "sources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    open_room(room)


def _open_to_all(path: Path) -> bool:
    """Whether every uid may enter the folder and read it."""
    real = path.resolve()
    try:
        walkable = all(parent.stat().st_mode & stat.S_IXOTH for parent in real.parents)
        return walkable and real.stat().st_mode & (stat.S_IROTH | stat.S_IXOTH) == stat.S_IROTH | stat.S_IXOTH
    except OSError:
        return False

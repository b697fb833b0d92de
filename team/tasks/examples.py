"""The examples that ship in the wheel, each copied into a git repository of its own."""

import os
import shutil
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

from team.errors import UserError

DEFAULT = "matmul_cpu"

_STRANGER = {
    "GIT_AUTHOR_NAME": "Kernel Team",
    "GIT_AUTHOR_EMAIL": "kernelteam@localhost",
    "GIT_COMMITTER_NAME": "Kernel Team",
    "GIT_COMMITTER_EMAIL": "kernelteam@localhost",
}


def example_names() -> tuple[str, ...]:
    """The examples that can be copied, in alphabetical order."""
    folders = (files("team") / "examples").iterdir()
    return tuple(sorted(folder.name for folder in folders if (folder / "task.toml").is_file()))


def copy_example(name: str, destination: Path) -> Path:
    """Copy example ``name`` into a new git repository with one commit at ``destination``; the task folder there.

    ``destination`` must not exist yet, or be an empty folder. The commit carries the user's identity when git knows
    one. On any failure nothing is left behind.
    """
    if name not in example_names():
        raise UserError(f"There is no example '{name}'.", f"Choose one of: {', '.join(example_names())}")
    destination = destination.resolve()
    if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
        raise UserError(f"{destination} exists and is not an empty folder.", "Name another folder.")
    destination.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=destination.parent))
    try:
        with as_file(files("team") / "examples" / name) as source:
            shutil.copytree(source, fresh, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        make_repository(fresh, f"The {name} example of Kernel Team, as it stands")
        fresh.chmod(0o755)
        os.replace(fresh, destination)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return destination


def make_repository(folder: Path, message: str) -> None:
    """One commit of everything in ``folder``, on branch main, by the user when git knows one."""
    import git

    (folder / ".gitignore").write_text("__pycache__/\n.kernelteam/\n")
    with git.Repo.init(folder, initial_branch="main") as repository:
        repository.git.add(all=True)
        known = all(repository.git.config(key, with_exceptions=False) for key in ("user.name", "user.email"))
        with repository.git.custom_environment(**({} if known else _STRANGER)):
            repository.git.commit("--quiet", "--no-gpg-sign", "--no-verify", "-m", message)

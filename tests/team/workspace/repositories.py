"""A user's repository as people have them: a task in a subfolder, another file beside it, a hook that must not run.

No ``conftest``: of that name there is one in every folder of tests, and which of them an import finds depends on what
else was collected.
"""

import hashlib
import os
import stat
import subprocess
from pathlib import Path

KERNEL = "void solve() {}\n// one\n// two\n// three\n"


def git(folder: Path, *arguments: str) -> str:
    """Plain git as the user would type it."""
    command = ["git", "-C", str(folder), "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file below ``folder``, .git included, with mode, content and modification time."""
    seen = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(status.st_mode) else ""
        link = os.readlink(path) if path.is_symlink() else ""
        when = status.st_mtime_ns if stat.S_ISREG(status.st_mode) else 0
        seen[str(path.relative_to(folder))] = f"{status.st_mode:o} {content} {link} {when}"
    return seen


def make_repository(root: Path, task: str) -> Path:
    """A repository with one commit on branch trunk; the folder of its task."""
    folder = root / task
    folder.mkdir(parents=True)
    git(root, "init", "--quiet", "--initial-branch=trunk")
    (root / "README").write_text("hello\n")
    (folder / "task.toml").write_text("name = 'x'\n")
    (folder / "kernel.cpp").write_text(KERNEL)
    (folder / "reference.py").write_text("# reference\n")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "first")
    hook = root / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho ran >> hook-ran\n")
    hook.chmod(0o755)
    return folder

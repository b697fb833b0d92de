"""The git executable behind one small typed layer.

Not GitPython: its environment can only be added to, and a campaign started from a hook or from ``git rebase --exec``
must *drop* ``GIT_DIR`` and ``GIT_INDEX_FILE``; its ``Repo`` objects also leak processes in long-lived actors.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from team.errors import UserError

_TIMEOUT_S = 300.0

# Settings of the user that would change what our commands do, in the user's repository as in the hub.
_QUIET = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false")


class GitFailed(Exception):
    """A git command that should have worked did not. Carries what was run, where, and what git said."""

    def __init__(self, arguments: tuple[str, ...], folder: Path, status: int, stderr: str) -> None:
        said = stderr.strip() or "nothing"
        super().__init__(f"git {' '.join(arguments)} in {folder} ended with status {status} and said: {said}")
        self.arguments = arguments
        self.folder = folder
        self.status = status
        self.stderr = stderr


@dataclass(frozen=True)
class Git:
    """Runs git in one folder, deaf to the caller's ``GIT_*`` variables, to hooks, prompts and automatic maintenance."""

    folder: Path

    def run(self, *arguments: str, data: bytes | None = None, env: Mapping[str, str] | None = None) -> bytes:
        """Standard output of ``git ARGUMENTS``; ``GitFailed`` when it does not exit 0."""
        done = self.attempt(*arguments, data=data, env=env)
        if done.returncode != 0:
            raise GitFailed(arguments, self.folder, done.returncode, done.stderr.decode(errors="replace"))
        return done.stdout

    def text(self, *arguments: str, data: bytes | None = None, env: Mapping[str, str] | None = None) -> str:
        """Like ``run``, as text without surrounding white space."""
        return self.run(*arguments, data=data, env=env).decode(errors="surrogateescape").strip()

    def names(self, *arguments: str) -> tuple[str, ...]:
        """Like ``run`` for commands that print NUL-separated names (``-z``)."""
        return tuple(os.fsdecode(name) for name in self.run(*arguments).split(b"\0") if name)

    def succeeds(self, *arguments: str) -> bool:
        """Whether the command exits 0."""
        return self.attempt(*arguments).returncode == 0

    def attempt(
        self, *arguments: str, data: bytes | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """The finished process, whatever its status."""
        executable = shutil.which("git")
        if executable is None:
            raise UserError("git is not installed.", "Install it, e.g. with: apt-get install git")
        command = [executable, *(part for setting in _QUIET for part in ("-c", setting)), *arguments]
        try:
            return subprocess.run(
                command,
                cwd=self.folder,
                env=_environment(env),
                input=data or b"",
                capture_output=True,
                timeout=_TIMEOUT_S,
            )
        except FileNotFoundError:
            raise GitFailed(arguments, self.folder, 128, "the folder is gone") from None
        except subprocess.TimeoutExpired:
            raise GitFailed(arguments, self.folder, 128, f"no end after {_TIMEOUT_S:.0f} s") from None


def _environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not _steers_git(name)}
    clean |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_LITERAL_PATHSPECS": "1"}
    return clean | dict(extra or {})


def _steers_git(name: str) -> bool:
    """Whether a variable picks another repository, index, identity or editor than the ones that we name."""
    return name.startswith("GIT_") and name not in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")

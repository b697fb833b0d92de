"""One agent's worktree: a folder and a branch of its own, mended whenever it is found broken."""

import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from team.tasks.spec import HELD_OUT
from team.workspace.command import Git, GitFailed
from team.workspace.locks import clear_stale, exclusive
from team.workspace.objects import Objects


@dataclass(frozen=True)
class Conflict:
    """A cherry-pick that did not apply; the worktree is clean again. ``files`` are relative to the repository."""

    files: tuple[str, ...]


@dataclass(frozen=True)
class Worktree:
    """A checkout at ``folder`` on ``branch``, belonging to the bare repository at ``hub``."""

    hub: Path
    name: str
    branch: str
    folder: Path
    task: str
    lock: Path

    @property
    def task_folder(self) -> Path:
        """The task's folder within this worktree."""
        return self.folder / self.task

    def head(self) -> str:
        """The commit that this worktree stands on."""
        return self._git.text("rev-parse", "HEAD")

    def reset(self, commit: str) -> tuple[str, ...]:
        """Back to ``commit`` exactly, whatever state anybody left: no change, no other file. Says what it mended."""
        mended = self.ensure(commit)
        try:
            self._stand_on(commit)
        except GitFailed:  # an index or a branch that a torn write or a hand left unreadable
            mended = (*mended, self._anew(commit))
            self._stand_on(commit)
        return mended

    def commit(
        self,
        files: Mapping[str, str],
        message: str,
        trailers: Mapping[str, str],
        editable: Collection[str],
    ) -> str:
        """Commit new text of editable files (paths relative to the task folder) on top of ``head``, and stand there."""
        made = Objects(Git(self.hub), self.task).commit(self.head(), files, message, trailers, editable)
        self._git.run("reset", "--quiet", "--hard", made)
        self._withhold()
        return made

    def cherry_pick(self, commit: str) -> str | Conflict:
        """Apply one commit on top of ``head``. On a conflict everything is as before, and the files are named."""
        before = self.head()
        done = self._git.attempt("cherry-pick", "-x", "--allow-empty", "--keep-redundant-commits", commit)
        if done.returncode == 0:
            return self.head()
        files = self._git.names("diff", "--name-only", "--diff-filter=U", "-z")
        self.reset(before)
        if not files:
            raise GitFailed(("cherry-pick", commit), self.folder, done.returncode, done.stderr.decode(errors="replace"))
        return Conflict(files)

    def ensure(self, start: str = "refs/heads/main") -> tuple[str, ...]:
        """Make the worktree whole: add it when it is missing, remove locks of dead processes. Says what it did.

        A branch that exists is kept where it is; a new one starts at ``start``.
        """
        if self._sound():
            stale = [path for path in self._lock_files() if path.exists()]
            return clear_stale(stale)
        with exclusive(self.lock):
            known = self._admin.exists()
            stale = clear_stale([path for path in self._lock_files() if path.exists()])
            self._add(start)
        again = (f"Made the worktree {self.folder} again, which was broken or deleted.",) if known else ()
        return (*stale, *again)

    def remove(self) -> None:
        """Delete the folder and git's record of it; the branch and its commits stay."""
        with exclusive(self.lock):
            self._discard()

    @property
    def _git(self) -> Git:
        return Git(self.folder)

    @property
    def _admin(self) -> Path:
        return self.hub / "worktrees" / self.folder.name

    def _sound(self) -> bool:
        if not (self.folder / ".git").is_file() or not (self._admin / "HEAD").is_file():
            return False
        if (self._admin / "locked").exists():  # git was killed while it made this worktree
            return False
        found = self._git.attempt("rev-parse", "--absolute-git-dir")
        return found.returncode == 0 and Path(found.stdout.decode().rstrip("\n")) == self._admin.resolve()

    def _lock_files(self) -> list[Path]:
        own = [*self._admin.glob("*.lock")] if self._admin.is_dir() else []
        return [*own, self.hub / "refs" / "heads" / f"{self.branch}.lock"]

    def _stand_on(self, commit: str) -> None:
        self._git.run("symbolic-ref", "HEAD", f"refs/heads/{self.branch}")
        self._git.run("reset", "--quiet", "--hard", commit)
        self._git.run("clean", "-ffdxq")
        self._withhold()

    def _withhold(self) -> None:
        """Minds may look into worktrees: shapes that they must not see are in no checkout, only in git's own store."""
        (self.task_folder / HELD_OUT).unlink(missing_ok=True)

    def _anew(self, start: str) -> str:
        """Make the worktree from nothing."""
        with exclusive(self.lock):
            self._add(start)
        return f"Made the worktree {self.folder} again: its index or its branch {self.branch} could not be read."

    def _add(self, start: str) -> None:
        self._discard()
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        hub = Git(self.hub)
        if not hub.succeeds("rev-parse", "--verify", "--quiet", f"refs/heads/{self.branch}^{{commit}}"):
            (self.hub / "refs" / "heads" / self.branch).unlink(missing_ok=True)  # git does not overwrite a broken one
            hub.run("update-ref", f"refs/heads/{self.branch}", hub.text("rev-parse", f"{start}^{{commit}}"))
        hub.run("worktree", "add", "--quiet", "--force", "--force", str(self.folder), self.branch)
        self._withhold()

    def _discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self._admin, ignore_errors=True)

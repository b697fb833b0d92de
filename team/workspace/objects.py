"""Commits and snapshots made straight in the object database: no checkout, so nothing to race on or to clean up.

All paths here are relative to the task folder, which sits at ``task`` in the repository.
"""

import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from team.workspace.command import Git

SIZE_CAP = 1 << 20

_FILE_MODES = ("100644", "100755")


class Refused(Exception):
    """A commit that the workspace does not make, and why, in one sentence."""


@dataclass(frozen=True)
class Objects:
    """The object database of the hub at ``git.folder``, seen from the task folder ``task``."""

    git: Git
    task: str

    def inside(self, path: str) -> str:
        """``path`` as the repository knows it; refuses anything but a plain relative path."""
        pure = PurePosixPath(path)
        plain = pure.parts and "\\" not in path and "\0" not in path and str(pure) == path
        if not plain or pure.is_absolute() or ".." in pure.parts or ".git" in {part.lower() for part in pure.parts}:
            raise Refused(f"'{path}' is not a plain path within the task folder.")
        return path if self.task == "." else f"{self.task}/{path}"

    def commit(
        self,
        parent: str,
        files: Mapping[str, str],
        message: str,
        trailers: Mapping[str, str],
        editable: Collection[str],
        size_cap: int = SIZE_CAP,
    ) -> str:
        """A commit on ``parent`` in which exactly ``files`` have new text. Every one of them must be in ``editable``.

        A commit that changes nothing is made all the same: an A/A experiment is an experiment. ``Refused`` names a path
        that is not editable, goes through or onto a symbolic link or submodule, or whose text exceeds ``size_cap``
        bytes.
        """
        for path, text in files.items():
            if path not in editable:
                raise Refused(f"'{path}' is not an editable file of the task.")
            if len(text.encode()) > size_cap:
                raise Refused(f"'{path}' has {len(text.encode())} bytes; the cap is {size_cap}.")
        entries = {}
        for path, text in files.items():
            mode = self._mode(parent, self.inside(path))
            blob = self.git.text("hash-object", "-w", "--no-filters", "--stdin", data=text.encode())
            entries[self.inside(path)] = f"{mode} {blob}"
        tree = self._tree(parent, entries)
        return self.commit_tree(tree, parent, message, trailers)

    def graft(
        self, tree_of: str, parent: str, message: str, trailers: Mapping[str, str], editable: Collection[str]
    ) -> str:
        """A commit on ``parent`` whose editable files are those of ``tree_of``; everything else stays as in ``parent``.

        For a landing whose cherry-pick conflicts: the agent's kernel as a whole, without the agent's older notes.
        """
        entries: dict[str, str] = {}
        for path in map(self.inside, sorted(editable)):
            mode, blob = self._entry(tree_of, path)
            entries[path] = f"{mode} {blob}" if mode in _FILE_MODES else f"0 {'0' * len(parent)}"
        return self.commit_tree(self._tree(parent, entries), parent, message, trailers)

    def overlay(
        self, parent: str, source: str, files: Mapping[str, str], message: str, trailers: Mapping[str, str]
    ) -> str:
        """A commit on ``parent`` with every file of ``source``, whatever its path, and ``files`` with new text.

        ``Refused`` when one of their folders is something else in ``parent``.
        """
        entries: dict[str, str] = {}
        for line in self.git.names("ls-tree", "-r", "-z", "--full-tree", source):
            told, path = line.split("\t", 1)
            mode, _, blob = told.split()
            entries[path] = f"{mode} {blob}"
        for path, text in files.items():
            blob = self.git.text("hash-object", "-w", "--no-filters", "--stdin", data=text.encode())
            entries[self.inside(path)] = f"100644 {blob}"
        for folder in dict.fromkeys(str(PurePosixPath(path).parent) for path in entries):
            self._mode(parent, f"{folder}/any")
        return self.commit_tree(self._tree(parent, entries), parent, message, trailers)

    def commit_tree(self, tree: str, parent: str, message: str, trailers: Mapping[str, str]) -> str:
        """A commit of ``tree`` on ``parent``. A trailer's value is put on one line."""
        lines = [f"{name}: {' '.join(str(value).split())}" for name, value in trailers.items()]
        body = message.strip() + ("\n\n" + "\n".join(lines) if lines else "") + "\n"
        return self.git.text("commit-tree", tree, "-p", parent, "-F", "-", data=body.encode())

    def read(self, paths: Collection[str], commit: str) -> dict[str, str]:
        """Text of ``paths`` at ``commit``; a path that is not a regular file there is left out."""
        texts = {}
        for path in paths:
            mode, blob = self._entry(commit, self.inside(path))
            if mode in _FILE_MODES:
                texts[path] = self.git.run("cat-file", "blob", blob).decode(errors="replace")
        return texts

    def export(self, commit: str, folder: Path, without: Collection[str] = ()) -> Path:
        """The task folder at ``commit`` as plain files under ``folder/COMMIT``; made once, and whole or not at all.

        Files ``without`` are left out.
        """
        target = folder / commit
        if target.is_dir():
            return target
        folder.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{commit[:12]}-", dir=folder))
        try:
            self._check_out(commit, fresh)
            for name in without:
                (fresh / name).unlink(missing_ok=True)
            fresh.chmod(0o755)
            os.rename(fresh, target)
        except OSError:
            if not target.is_dir():  # else another process was first, with the same content
                raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        return target

    def _check_out(self, commit: str, folder: Path) -> None:
        tree = f"{commit}^{{tree}}" if self.task == "." else f"{commit}:{self.task}"
        with tempfile.TemporaryDirectory(prefix="kernelteam-index-") as scratch:
            env = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
            self.git.run("read-tree", tree, env=env)
            self.git.run("--work-tree", str(folder.absolute()), "checkout-index", "--all", "--force", env=env)

    def _tree(self, parent: str, entries: Mapping[str, str]) -> str:
        """The tree of ``parent`` with ``entries`` (path -> 'mode object'; mode 0 removes) put in."""
        with tempfile.TemporaryDirectory(prefix="kernelteam-index-") as scratch:
            env = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
            self.git.run("read-tree", parent, env=env)
            records = "".join(f"{entry}\t{path}\0" for path, entry in entries.items())
            self.git.run("update-index", "-z", "--index-info", data=os.fsencode(records), env=env)
            return self.git.text("write-tree", env=env)

    def _mode(self, commit: str, path: str) -> str:
        """Mode for a file at ``path``: its own, or 100644 when new. Refuses links and submodules on the way."""
        parts = PurePosixPath(path).parts
        for depth in range(1, len(parts)):
            mode, _ = self._entry(commit, "/".join(parts[:depth]))
            if mode not in ("", "040000"):
                raise Refused(f"'{path}' goes through '{'/'.join(parts[:depth])}', which is not a plain folder.")
        mode, _ = self._entry(commit, path)
        if mode not in ("", *_FILE_MODES):
            raise Refused(f"'{path}' is a symbolic link, a submodule or a folder, not a regular file.")
        return mode or "100644"

    def _entry(self, commit: str, path: str) -> tuple[str, str]:
        """Mode and object of ``path`` at ``commit``; two empty strings when there is nothing."""
        found = self.git.run("ls-tree", "-z", "--full-tree", commit, "--", path)
        if not found:
            return "", ""
        mode, _, blob = found.split(b"\t", 1)[0].decode().split()
        return mode, blob

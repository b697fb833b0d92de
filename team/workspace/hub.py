"""The campaign's bare repository, cloned from the user's; every branch, tag and worktree of the campaign hangs here."""

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from protocol.record import Proof
from team.errors import UserError
from team.tasks.spec import HELD_OUT
from team.workspace import bundles, origin
from team.workspace.command import Git
from team.workspace.history import Entry, log
from team.workspace.locks import clear_stale, exclusive
from team.workspace.objects import Objects
from team.workspace.worktree import Worktree

MAIN = "main"
LANDING = "landing"

# Local settings win over the user's. Bytes are bytes: no line ending, filter or keyword is converted in the hub.
_SETTINGS = {
    "user.name": "Kernel Team",
    "user.email": "kernelteam@localhost",
    "core.hooksPath": "/dev/null",
    "core.autocrlf": "false",
    "core.fsmonitor": "false",
    "core.logAllRefUpdates": "always",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "rerere.enabled": "false",
    "fetch.writeCommitGraph": "false",
}
_ATTRIBUTES = "* -text -filter -ident -eol -working-tree-encoding merge=text\n"


class NotForward(Exception):
    """A branch was asked to move to a commit that is not verified as the successor of where it is."""

    def __init__(self, branch: str, now: str, asked: str) -> None:
        super().__init__(f"{branch} is at {now[:12]}; {asked[:12]} was not verified as its successor.")
        self.branch = branch
        self.now = now
        self.asked = asked


@dataclass(frozen=True)
class Hub:
    """``run_dir/hub.git``. ``task`` is the task folder relative to the repository's root, ``.`` for the root itself."""

    run_dir: Path
    task: str

    @classmethod
    def create(cls, run_dir: Path, task_folder: Path, needed: Sequence[str] = ("task.toml",)) -> "Hub":
        """Clone the repository that holds ``task_folder``; branch ``main`` stands at its HEAD. The origin is only read.

        ``needed``: the task's own files, relative to its folder. ``UserError`` when there is no repository, no commit,
        or something in the task folder that is not committed. Nothing is left behind then.
        """
        source = origin.inspect(task_folder, needed)
        hub = cls(run_dir.resolve(), source.task)
        with _becoming(hub.path) as fresh:
            _initialise(fresh, source.object_format, {"kernelteam.origin": str(source.root)}, source.task)
            origin.fetch_into(Git(fresh), source)
            Git(fresh).run("update-ref", "refs/kernelteam/baseline", source.head)
        return hub

    @classmethod
    def receive(cls, run_dir: Path, task: str, main: str, data: bytes) -> "Hub":
        """A hub on another node, from the bytes of ``hub.bundle([main], [])``."""
        hub = cls(run_dir.resolve(), task)
        with _becoming(hub.path) as fresh:
            _initialise(fresh, "sha256" if len(main) == 64 else "sha1", {}, task)
            bundles.unbundle(Git(fresh), data)
            for ref in (f"refs/heads/{MAIN}", "refs/kernelteam/baseline"):
                Git(fresh).run("update-ref", ref, main)
        return hub

    @classmethod
    def open(cls, run_dir: Path) -> "Hub":
        """The hub of a campaign that exists."""
        path = run_dir.resolve() / "hub.git"
        if not (path / "HEAD").is_file():
            raise UserError(f"There is no campaign in {run_dir}.", "Start one with: kernelteam run TASK")
        return cls(path.parent, Git(path).text("config", "kernelteam.task"))

    @property
    def path(self) -> Path:
        """The bare repository."""
        return self.run_dir / "hub.git"

    @property
    def git(self) -> Git:
        """git in the bare repository."""
        return Git(self.path)

    @property
    def objects(self) -> Objects:
        """Commits and snapshots without a checkout."""
        return Objects(self.git, self.task)

    @property
    def origin(self) -> Path | None:
        """Root of the user's repository; None on a node that received the hub."""
        found = self.git.attempt("config", "kernelteam.origin")
        return Path(os.fsdecode(found.stdout.rstrip(b"\n"))) if found.returncode == 0 else None

    @property
    def baseline(self) -> str:
        """The commit that the campaign started from."""
        return self.resolve("refs/kernelteam/baseline")

    @property
    def main(self) -> str:
        """The commit that branch ``main`` of the hub stands on."""
        return self.resolve(f"refs/heads/{MAIN}")

    # ------------------------------------------------------------ worktrees

    def worktree(self, name: str) -> Worktree:
        """The worktree of one agent on branch ``agent/NAME``; made, or mended, so that it is ready."""
        return self._worktree(name, f"agent/{name}")

    def landing(self) -> Worktree:
        """The coordinator's own worktree, where landings are prepared."""
        return self._worktree(LANDING, LANDING)

    def repair(self) -> tuple[str, ...]:
        """Remove locks in the bare repository that killed processes left. One sentence for each."""
        with exclusive(self._lock):
            roots = (self.path, *(self.path / name for name in ("refs", "logs")))
            locks = [*roots[0].glob("*.lock"), *(lock for root in roots[1:] for lock in root.rglob("*.lock"))]
            return clear_stale(locks)

    @property
    def _lock(self) -> Path:
        return self.run_dir / "hub.lock"

    def _worktree(self, name: str, branch: str) -> Worktree:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
            raise ValueError(f"'{name}' is no name for a worktree")
        folder = self.run_dir / "worktrees" / name
        tree = Worktree(hub=self.path, name=name, branch=branch, folder=folder, task=self.task, lock=self._lock)
        tree.ensure()
        return tree

    # ------------------------------------------------------------ commits

    def resolve(self, name: str) -> str:
        """The full id of the commit called ``name``; ``GitFailed`` when there is none."""
        return self.git.text("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether ``new`` contains ``old``; a commit contains itself."""
        return self.git.succeeds("merge-base", "--is-ancestor", old, new)

    def read(self, paths: Collection[str], commit: str) -> dict[str, str]:
        """Text of files of the task at ``commit``; those that do not exist there are left out."""
        return self.objects.read(paths, commit)

    def export(self, commit: str, folder: Path) -> Path:
        """The task folder at ``commit`` as plain files, at ``folder/COMMIT``; whole or not at all, made only once.

        Without the shapes that no mind may see.
        """
        return self.objects.export(self.resolve(commit), folder, without=[HELD_OUT])

    def entrust(self, commit: str, place: Path) -> None:
        """The task folder at ``commit`` as judges trust it, all of it, as the new folder ``place``."""
        made = self.objects.export(self.resolve(commit), place.with_name(f"{place.name}-at"))
        made.rename(place)
        made.parent.rmdir()

    def commit(
        self,
        parent: str,
        files: Mapping[str, str],
        message: str,
        trailers: Mapping[str, str],
        editable: Collection[str],
    ) -> str:
        """A commit on ``parent`` without any worktree (see ``Objects.commit``). No branch moves; anchor it."""
        return self.objects.commit(parent, files, message, trailers, editable)

    def merge_tree_commit(
        self, tree_of: str, parent: str, message: str, trailers: Mapping[str, str], editable: Collection[str]
    ) -> str:
        """A commit on ``parent`` with the editable files of ``tree_of`` as a whole (see ``Objects.graft``)."""
        return self.objects.graft(tree_of, parent, message, trailers, editable)

    def overlay(
        self, parent: str, source: str, files: Mapping[str, str], message: str, trailers: Mapping[str, str]
    ) -> str:
        """A commit on ``parent`` with every file of ``source`` and with ``files`` (see ``Objects.overlay``)."""
        return self.objects.overlay(parent, source, files, message, trailers)

    def changed(self, base: str, commit: str) -> tuple[str, ...]:
        """Paths relative to the repository that differ between two commits."""
        return self.git.names("diff-tree", "-r", "-z", "--name-only", "--no-renames", base, commit)

    def diff(self, base: str, commit: str) -> str:
        """The change as a unified patch."""
        return self.git.run("diff", "--no-color", "--no-ext-diff", base, commit).decode(errors="replace")

    def lines(self, base: str, commit: str) -> tuple[int, int]:
        """Added and removed lines of text between two commits."""
        rows = [row.split("\t")[:2] for row in self.git.text("diff", "--numstat", base, commit).splitlines()]
        counted = [(int(added), int(removed)) for added, removed in rows if added.isdigit()]
        return sum(added for added, _ in counted), sum(removed for _, removed in counted)

    def log(self, commit: str, since: str = "", limit: int = 1000) -> list[Entry]:
        """First-parent history of ``commit``, newest first, without what ``since`` contains."""
        return log(self.git, commit, since, limit)

    # ------------------------------------------------------------ names

    def anchor(self, name: str, commit: str) -> None:
        """Keep ``commit`` for good under ``refs/kernelteam/NAME``."""
        self.git.run("update-ref", f"refs/kernelteam/{name}", commit)

    def fast_forward(self, proof: Proof) -> None:
        """Move main forward to a commit that the ledger has verified, from where it was verified.

        Main moves in no other way, except that ``stray`` commits are put aside.

        ``NotForward`` when main stands elsewhere or the commit does not descend from it. Moving there again is fine.
        """
        now = self.main
        if now == proof.commit:
            return
        if now != proof.before or not self.is_ancestor(now, proof.commit):
            raise NotForward(MAIN, now, proof.commit)
        self.git.run("update-ref", f"refs/heads/{MAIN}", proof.commit, now)

    def standing(self) -> str:
        """The commit that main stands on, empty when the branch is gone or its commit cannot be read."""
        found = self.git.attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{MAIN}^{{commit}}")
        return found.stdout.decode().strip() if found.returncode == 0 else ""

    def put_back(self, verified: str, stray: str) -> None:
        """Main back to the last verified commit, from wherever a hand moved it; the stray commit is kept under a name.

        The one move of main that is not forward, for the recovery of a campaign alone.
        """
        if stray:
            self.anchor(f"strays/{stray[:12]}", stray)
        else:
            (self.path / "refs" / "heads" / MAIN).unlink(missing_ok=True)  # git does not overwrite a broken one
        self.git.run("update-ref", f"refs/heads/{MAIN}", verified)

    def lacking(self, commits: Sequence[str]) -> tuple[str, ...]:
        """Those commits of which some object, of theirs or of their history, is missing or unreadable."""
        return tuple(commit for commit in commits if not self._whole(commit))

    def _whole(self, commit: str) -> bool:
        if not self.git.succeeds("cat-file", "-e", f"{commit}^{{commit}}"):
            return False
        return self.git.succeeds("rev-list", "--objects", "--quiet", commit)

    def fetch_again(self) -> None:
        """Bring the objects of the origin once more, for a hub that lost some; no branch moves."""
        assert self.origin is not None
        self.git.attempt("fetch", "--quiet", "--refetch", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
                         str(self.origin), "HEAD")  # fmt: skip

    def tag(self, name: str, commit: str) -> None:
        """A tag that never moves: the same name again is fine for the same commit, ``GitFailed`` for another."""
        self.git.run("check-ref-format", f"refs/tags/{name}")
        if self.tags().get(name) != commit:
            self.git.run("update-ref", f"refs/tags/{name}", commit, "0" * len(commit))

    def tags(self) -> dict[str, str]:
        """The campaign's tags with their commits."""
        lines = self.git.text("for-each-ref", "--format=%(objectname) %(refname:strip=2)", "refs/tags").splitlines()
        return {name: commit for commit, name in (line.split(" ", 1) for line in lines)}

    def bundle(self, commits: Collection[str], known: Collection[str]) -> bytes:
        """``commits`` as bytes for a node that has ``known``; empty when it has them all."""
        return bundles.bundle(self.git, commits, known)

    def unbundle(self, data: bytes) -> tuple[str, ...]:
        """Take in the bytes of ``bundle``; the commits that they brought."""
        return bundles.unbundle(self.git, data)


@contextmanager
def _becoming(path: Path) -> Iterator[Path]:
    """A fresh folder that becomes ``path`` when the block succeeds and vanishes when it does not."""
    if path.exists():
        raise UserError(f"There is already a campaign in {path.parent}.", "Go on with it: kernelteam resume")
    made_parent = not path.parent.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".hub-", dir=path.parent))
    try:
        yield fresh
        fresh.chmod(0o755)
        fresh.rename(path)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        if made_parent:
            path.parent.rmdir()
        raise


def _initialise(path: Path, object_format: str, settings: Mapping[str, str], task: str) -> None:
    git = Git(path)
    git.run("init", "--quiet", "--bare", "--template=", f"--initial-branch={MAIN}", f"--object-format={object_format}")
    for name, value in {**_SETTINGS, **settings, "kernelteam.task": task}.items():
        git.run("config", name, value)
    (path / "info").mkdir(exist_ok=True)
    (path / "info" / "attributes").write_text(_ATTRIBUTES)

"""The user's repository, read only: where it is, what is committed, and whether a campaign may start from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from team.errors import UserError
from team.workspace.command import Git, GitFailed


@dataclass(frozen=True)
class Origin:
    """A task in the user's repository. ``task`` is relative to ``root``; ``.`` when it is the whole repository."""

    root: Path
    task: str
    head: str
    object_format: str


def inspect(task_folder: Path, needed: Sequence[str]) -> Origin:
    """The repository that holds ``task_folder``.

    ``needed`` are the task's own files, relative to it. A campaign starts from what is committed, so a modified file in
    the task folder, or a needed one that git does not know, is a ``UserError``: measuring an older kernel than the one
    that the user looks at would be a silent surprise.
    """
    folder = task_folder.resolve()
    if not folder.is_dir():
        raise UserError(f"There is no folder {task_folder}.", "Give the folder that holds task.toml.")
    git = Git(folder)
    root = _root(git)
    head = git.attempt("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if head.returncode != 0:
        raise UserError(f"The repository {root} has no commit yet.", _commit_command(folder, "."))
    origin = Origin(
        root=root,
        task=folder.relative_to(root).as_posix(),
        head=head.stdout.decode().strip(),
        object_format=git.text("rev-parse", "--show-object-format"),
    )
    _refuse_uncommitted(git, folder, needed)
    return origin


def _root(git: Git) -> Path:
    found = git.attempt("rev-parse", "--show-toplevel")
    if found.returncode == 0:
        return Path(found.stdout.decode(errors="surrogateescape").rstrip("\n")).resolve()
    if b"dubious ownership" in found.stderr:
        remedy = f"Trust it with: git config --global --add safe.directory {git.folder}"
        raise UserError(f"git refuses {git.folder} because another user owns it.", remedy)
    if b"must be run in a work tree" in found.stderr:
        raise UserError(f"{git.folder} is in a bare repository.", "Clone it and give the task folder in the clone.")
    remedy = f"Make it one with: git -C {git.folder} init && {_commit_command(git.folder, '.')}"
    raise UserError(f"{git.folder} is not in a git repository.", remedy)


def _refuse_uncommitted(git: Git, folder: Path, needed: Sequence[str]) -> None:
    changed = _changed(git)
    if changed:
        raise UserError(
            f"The task folder has changes that are not committed: {_some(changed)}.",
            _commit_command(folder, ".") + "  (or set them aside with: git stash)",
        )
    known = set(git.names("ls-tree", "-r", "-z", "--name-only", "HEAD"))
    missing = [name for name in needed if name not in known and (folder / name).exists()]
    if missing:
        raise UserError(
            f"git does not know these files of the task: {_some(missing)}.",
            _commit_command(folder, *missing),
        )


def _changed(git: Git) -> list[str]:
    # Renames off, so that each record is two status letters, a space and one path.
    records = git.names("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=no", "--", ".")
    return [record[3:] for record in records]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _commit_command(folder: Path, *paths: str) -> str:
    added = " ".join(f"'{path}'" if " " in path else path for path in paths)
    where = f"'{folder}'" if " " in str(folder) else str(folder)
    return f"Commit with: git -C {where} add {added} && git -C {where} commit -m 'Before the campaign'"


def fetch_into(hub: Git, origin: Origin) -> None:
    """Bring the origin's HEAD, attached or detached, into the hub as branch ``main``. The origin is only read."""
    try:
        hub.run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--update-shallow", "--no-auto-maintenance",
                "--no-recurse-submodules", "--no-prune", str(origin.root), "+HEAD:refs/heads/main")  # fmt: skip
    except GitFailed as failed:
        raise UserError(
            f"The repository {origin.root} cannot be read: {failed.stderr.strip()}.",
            f"See what is wrong with: git -C {origin.root} fsck",
        ) from None
    fetched = hub.text("rev-parse", "refs/heads/main")
    if fetched != origin.head:
        hub.run("update-ref", "refs/heads/main", origin.head)

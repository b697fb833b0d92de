"""Bring a result from the hub to the user's repository: the one moment when a campaign writes there."""

from pathlib import Path

from team.errors import UserError
from team.workspace.command import Git
from team.workspace.hub import Hub


def submit(hub: Hub, commit: str, tag: str, into: str = "") -> str:
    """Make branch ``autodev/TAG`` at ``commit`` in the user's repository; the sentences to print.

    The checkout stays as it is. ``into`` names a branch that shall move forward to the result as well: it must be an
    ancestor of it, and clean when it is checked out. ``UserError`` says what is in the way; then nothing has changed,
    except that ``autodev/TAG`` may exist.
    """
    user = _repository(hub)
    branch = f"autodev/{tag}"
    if not user.succeeds("check-ref-format", "--branch", branch):
        raise UserError(
            f"'{tag}' cannot be part of a branch name.", "Choose another with: kernelteam submit --tag NAME"
        )
    commit = hub.resolve(commit)
    hub.anchor(f"submitted/{tag}", commit)
    _bring(hub, user, commit, tag)
    if into:
        return _forward(user, into, commit)
    return (
        f"The result {commit[:12]} is now branch {branch} of {user.folder}; your checkout is as it was. "
        f"Look at it with: git diff {hub.baseline[:12]} {branch}  Take it with: git merge {branch}"
    )


def _repository(hub: Hub) -> Git:
    root = hub.origin
    if root is None or not root.is_dir() or not Git(root).succeeds("rev-parse", "--git-dir"):
        raise UserError(
            f"The repository that the campaign started from, {root}, is gone.",
            f"Fetch the result into a clone with: git fetch {hub.path} main",
        )
    return Git(root)


def _bring(hub: Hub, user: Git, commit: str, tag: str) -> None:
    branch = f"autodev/{tag}"
    now = _tip(user, branch)
    if now == commit:
        return
    if now and not hub.is_ancestor(now, commit):
        raise UserError(
            f"Branch {branch} of {user.folder} exists and holds something else.",
            f"Choose another name with --tag, or delete it: git branch -D {branch}",
        )
    source = f"refs/kernelteam/submitted/{tag}"
    options = ("--no-tags", "--no-prune", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules")
    user.run("fetch", "--quiet", *options, "--no-write-commit-graph", str(hub.path), source)
    user.run("update-ref", "-m", "kernelteam submit", f"refs/heads/{branch}", commit, now or "0" * len(commit))


def _forward(user: Git, into: str, commit: str) -> str:
    now = _tip(user, into)
    if not now:
        raise UserError(f"There is no branch {into} in {user.folder}.", f"Make it with: git branch {into}")
    if not user.succeeds("merge-base", "--is-ancestor", now, commit):
        raise UserError(
            f"Branch {into} has commits that the campaign did not start from.",
            f"Merge by hand: git switch {into} && git merge {commit[:12]}",
        )
    where = _checked_out(user, into)
    if where is None:
        user.run("update-ref", "-m", "kernelteam submit", f"refs/heads/{into}", commit, now)
    else:
        _advance_checkout(where, into, commit)
    return f"Branch {into} of {user.folder} moved forward from {now[:12]} to {commit[:12]}."


def _advance_checkout(where: Git, into: str, commit: str) -> None:
    if where.names("status", "--porcelain=v1", "-z", "--untracked-files=no"):
        raise UserError(f"Branch {into} in {where.folder} has changes that are not committed.", "Commit or stash them.")
    merged = where.attempt("merge", "--quiet", "--ff-only", commit)
    if merged.returncode != 0:
        said = merged.stderr.decode(errors="replace").strip()
        raise UserError(f"Branch {into} in {where.folder} could not move: {said}", "Move what is in the way.")


def _tip(git: Git, branch: str) -> str:
    return git.attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}").stdout.decode().strip()


def _checked_out(user: Git, branch: str) -> Git | None:
    """The checkout, of all that the repository has, that stands on ``branch``."""
    folder = ""
    for line in user.names("worktree", "list", "--porcelain", "-z"):
        if line.startswith("worktree "):
            folder = line.removeprefix("worktree ")
        elif line == f"branch refs/heads/{branch}":
            return Git(Path(folder))
    return None

"""Bring a result from the hub to the user's repository: the one moment when a campaign writes there."""

from pathlib import Path

from team.errors import UserError
from team.workspace.command import Git
from team.workspace.hub import Hub


def check_target(hub: Hub, commit: str, tag: str, into: str = "", push: bool = False) -> None:
    """Raise the ``UserError`` that stands in the way of ``submit`` (and ``push``) before anything is done."""
    user = _repository(hub)
    _refuse_unready(hub, user, tag, into, commit, previous(hub, tag) or commit)
    if push:
        _remote(user)


def previous(hub: Hub, tag: str) -> str:
    """The commit of the last submission under ``tag``; empty when there is none."""
    found = hub.git.attempt("rev-parse", "--verify", "--quiet", f"refs/kernelteam/submitted/{tag}^{{commit}}")
    return found.stdout.decode().strip()


def names_taken(hub: Hub) -> set[str]:
    """Names of the tags of the user's repository and of the hub."""
    listed = _repository(hub).text("for-each-ref", "--format=%(refname:strip=2)", "refs/tags").splitlines()
    return {*listed, *hub.tags()}


def submit(hub: Hub, commit: str, tag: str, into: str = "", name: str = "") -> str:
    """Make branch ``autodev/TAG`` at ``commit`` in the user's repository; the sentences to print.

    The checkout stays as it is. ``into`` names a branch that shall move forward to the result as well: it must be an
    ancestor of it, and clean when it is checked out. ``name`` is a tag to make at it. ``UserError`` says what is in the
    way; then nothing has changed. A submission that was broken off may be repeated.
    """
    commit = hub.resolve(commit)
    user = _repository(hub)
    _refuse_unready(hub, user, tag, into, commit, commit)
    branch = f"autodev/{tag}"
    _bring(hub, user, commit, tag)
    if name:
        hub.tag(name, commit)
        if not user.succeeds("rev-parse", "--verify", "--quiet", f"refs/tags/{name}"):
            user.run("update-ref", f"refs/tags/{name}", commit, "0" * len(commit))
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


def push(hub: Hub, tag: str, name: str, into: str = "") -> str:
    """Push what ``submit`` made to the remote of the user's repository; the remote's name."""
    user = _repository(hub)
    remote = _remote(user)
    refs = [f"refs/heads/autodev/{tag}", f"refs/tags/{name}", *([f"refs/heads/{into}"] if into else [])]
    pushed = user.attempt("push", "--quiet", remote, *refs)
    if pushed.returncode != 0:
        said = " ".join(pushed.stderr.decode(errors="replace").split())
        raise UserError(
            f"The result is in {user.folder}, but {remote} did not take it: {said}",
            f"Push it by hand: git -C {user.folder} push {remote} {' '.join(refs)}",
        )
    return remote


def _remote(user: Git) -> str:
    remotes = user.text("remote").splitlines()
    if "origin" in remotes:
        return "origin"
    if len(remotes) != 1:
        raise UserError(
            f"{user.folder} has {len(remotes)} remotes and none is called origin, so --push has no target.",
            "Name one with: git remote add origin URL",
        )
    return remotes[0]


def _refuse_unready(hub: Hub, user: Git, tag: str, into: str, commit: str, before: str) -> None:
    """``before``: the last submission under the tag, which the new one will contain."""
    branch = f"autodev/{tag}"
    if not user.succeeds("check-ref-format", "--branch", branch):
        raise UserError(
            f"'{tag}' cannot be part of a branch name.", "Choose another with: kernelteam submit --tag NAME"
        )
    now = _tip(user, branch)
    if now and not hub.is_ancestor(now, commit) and not hub.is_ancestor(now, before):
        raise UserError(
            f"Branch {branch} of {user.folder} exists and holds something else.",
            f"Choose another name with --tag, or delete it: git branch -D {branch}",
        )
    if into:
        _refuse_immovable(hub, user, into, commit)


def _bring(hub: Hub, user: Git, commit: str, tag: str) -> None:
    branch = f"autodev/{tag}"
    hub.anchor(f"submitted/{tag}", commit)
    now = _tip(user, branch)
    if now == commit:
        return
    source = f"refs/kernelteam/submitted/{tag}"
    options = ("--no-tags", "--no-prune", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules")
    user.run("fetch", "--quiet", *options, "--no-write-commit-graph", str(hub.path), source)
    user.run("update-ref", "-m", "kernelteam submit", f"refs/heads/{branch}", commit, now or "0" * len(commit))


def _refuse_immovable(hub: Hub, user: Git, into: str, commit: str) -> None:
    now = _tip(user, into)
    if not now:
        raise UserError(f"There is no branch {into} in {user.folder}.", f"Make it with: git branch {into}")
    if not hub.is_ancestor(now, commit):
        raise UserError(
            f"Branch {into} has commits that the campaign did not start from.",
            f"Merge by hand: git switch {into} && git merge {commit[:12]}",
        )
    where = _checked_out(user, into)
    if where is not None and where.names("status", "--porcelain=v1", "-z", "--untracked-files=no"):
        raise UserError(f"Branch {into} in {where.folder} has changes that are not committed.", "Commit or stash them.")


def _forward(user: Git, into: str, commit: str) -> str:
    now, where = _tip(user, into), _checked_out(user, into)
    if where is None:
        user.run("update-ref", "-m", "kernelteam submit", f"refs/heads/{into}", commit, now)
    else:
        _advance_checkout(where, into, commit)
    return f"Branch {into} of {user.folder} moved forward from {now[:12]} to {commit[:12]}."


def _advance_checkout(where: Git, into: str, commit: str) -> None:
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

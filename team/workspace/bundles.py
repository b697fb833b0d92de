"""Commits as bytes, for nodes that share no file system with the hub."""

import tempfile
from collections.abc import Collection
from pathlib import Path

from team.workspace.command import Git

COMMITS = "refs/kernelteam/commits"


def bundle(git: Git, commits: Collection[str], known: Collection[str]) -> bytes:
    """A git bundle of ``commits`` without the history that the receiver has in ``known``; empty when it has it all."""
    present = [commit for commit in known if git.succeeds("cat-file", "-e", f"{commit}^{{commit}}")]
    wanted = [commit for commit in dict.fromkeys(commits) if not _reachable(git, commit, present)]
    if not wanted:
        return b""
    refs = [f"{COMMITS}/{commit}" for commit in wanted]
    for ref, commit in zip(refs, wanted, strict=True):
        git.run("update-ref", ref, commit)
    return git.run("bundle", "create", "--quiet", "-", *refs, *(f"^{commit}" for commit in present))


def unbundle(git: Git, data: bytes) -> tuple[str, ...]:
    """Take in a bundle; the commits that it brought, each anchored. ``GitFailed`` when its prerequisites are absent."""
    if not data:
        return ()
    with tempfile.TemporaryDirectory(prefix="kernelteam-bundle-") as scratch:
        path = Path(scratch) / "commits.bundle"
        path.write_bytes(data)
        git.run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", str(path),
                f"+{COMMITS}/*:{COMMITS}/*")  # fmt: skip
        heads = git.text("bundle", "list-heads", str(path)).splitlines()
    return tuple(line.split()[0] for line in heads)


def _reachable(git: Git, commit: str, known: Collection[str]) -> bool:
    return any(git.succeeds("merge-base", "--is-ancestor", commit, tip) for tip in known)

"""What a line of commits says about itself."""

from dataclasses import dataclass

from team.workspace.command import Git

_FIELDS = ("%H", "%P", "%ct", "%an", "%s", "%(trailers:only,unfold)")


@dataclass(frozen=True)
class Entry:
    """One commit. ``time`` is the committer's, in seconds since 1970; a repeated trailer keeps its last value."""

    commit: str
    parents: tuple[str, ...]
    time: int
    author: str
    subject: str
    trailers: dict[str, str]


def log(git: Git, commit: str, since: str, limit: int) -> list[Entry]:
    """First-parent history of ``commit``, newest first, without what ``since`` contains."""
    span = (commit, f"^{since}") if since else (commit,)
    shape = "--format=" + "%x1f".join(_FIELDS) + "%x00"
    printed = git.text("log", "--first-parent", "--no-show-signature", f"--max-count={limit}", shape, *span, "--")
    return [_entry(record.lstrip("\n")) for record in printed.split("\0") if record.strip()]


def _entry(record: str) -> Entry:
    commit, parents, time, author, subject, trailers = record.split("\x1f", 5)
    pairs = (line.split(": ", 1) for line in trailers.splitlines() if ": " in line)
    return Entry(commit, tuple(parents.split()), int(time), author, subject, {pair[0]: pair[1] for pair in pairs})

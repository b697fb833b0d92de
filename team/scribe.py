"""The coordinator's pen: notes and tags in the hub, rendered from the ledger whenever something lands or a round ends.

Notes live on a branch of their own, ``notes``, which shares no commit with main: kernel commits then carry kernel
changes and nothing else, a landing never waits for a note or conflicts with one, and no agent's base ever holds them.
The same ledger gives the same files, and the same commits when it was written at the same events.
"""

from dataclasses import dataclass
from typing import Protocol

from protocol import events as ev
from protocol.rounds import tags
from protocol.state import CampaignState
from team.report.notes import notes
from team.workspace.command import Git
from team.workspace.objects import Objects

NOTES = "notes"


class Shelf(Protocol):
    """The part of the hub that the scribe needs."""

    @property
    def git(self) -> Git: ...

    @property
    def objects(self) -> Objects: ...

    def tag(self, name: str, commit: str) -> None: ...


@dataclass(frozen=True)
class Page:
    """What is to be written now. ``at``: seconds since 1970 of the event that it is rendered from."""

    texts: dict[str, str]
    tags: dict[str, str]
    message: str
    at: int
    written: ev.NotesWritten


def due(state: CampaignState) -> Page | None:
    """The page that the state owes the hub; None when what is written is up to date."""
    reached = (len(state.landed), state.rounds, bool(state.finished))
    before = state.noted
    if before is not None and reached == (before.landed, before.rounds, before.finished):
        return None
    landed, rounds, finished = reached
    written = ev.NotesWritten(commit="", verdicts=len(state.verdicts), landed=landed, rounds=rounds, finished=finished)
    message = f"Notes: {len(state.verdicts)} experiments, {landed} landed, {rounds} rounds"
    since = before.verdicts if before is not None else 0
    return Page(notes(state, since), tags(state), message, int(state.last_time), written)


def write(hub: Shelf, page: Page) -> ev.NotesWritten:
    """Tags first, then all files of the page in one commit. ``GitFailed`` leaves the notes as they were."""
    for name, commit in page.tags.items():
        hub.tag(name, commit)
    git, ref = hub.git, f"refs/heads/{NOTES}"
    stream = [f"commit {ref}\ncommitter Kernel Team <kernelteam@localhost> {page.at} +0000\n".encode()]
    stream.append(_data(page.message))
    if git.succeeds("rev-parse", "--verify", "--quiet", ref):
        stream.append(f"from {ref}^0\n".encode())
    for path, text in sorted(page.texts.items()):
        stream.append(f"M 100644 inline {_quoted(hub.objects.inside(path))}\n".encode() + _data(text))
    git.run("fast-import", "--quiet", data=b"".join(stream) + b"done\n")
    return page.written.model_copy(update={"commit": git.text("rev-parse", ref)})


def _data(text: str) -> bytes:
    raw = text.encode()
    return f"data {len(raw)}\n".encode() + raw + b"\n"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'

"""Commits to where they are needed: an agent on another node has a hub of its own, fed with bundles over Ray.

On the coordinator's node both methods do nothing, because agent and coordinator share the hub.
"""

from collections.abc import Callable, Collection
from typing import Protocol

from team.runs import Run, home
from team.workspace.hub import Hub


class Supply(Protocol):
    """Brings commits in before they are used and out after they were made."""

    def fetch(self, commit: str) -> None:
        """Make sure that ``commit`` is in this node's hub."""
        ...

    def offer(self, commits: Collection[str], base: str) -> bytes:
        """What the coordinator's hub lacks of ``commits``, all of which descend from ``base``."""
        ...


class Shared:
    """The coordinator's own node: one hub for all."""

    def fetch(self, commit: str) -> None:
        """Nothing to do."""

    def offer(self, commits: Collection[str], base: str) -> bytes:
        """Nothing to send."""
        return b""


class Carried:
    """Another node: bundles. ``ask(commit, known)`` is the coordinator's ``bundle``."""

    def __init__(self, hub: Hub, ask: Callable[[str, list[str]], bytes]) -> None:
        self._hub = hub
        self._ask = ask

    def fetch(self, commit: str) -> None:
        """Ask for the commit when this node's hub does not hold it."""
        if not self._hub.git.succeeds("cat-file", "-e", f"{commit}^{{commit}}"):
            self._hub.unbundle(self._ask(commit, [self._hub.baseline]))

    def offer(self, commits: Collection[str], base: str) -> bytes:
        """The commits as bytes, without the history that ``base`` has."""
        return self._hub.bundle(commits, [base])


def receive_run(name: str, node: str, task: str, main: str, data: bytes) -> tuple[Run, Hub]:
    """A run folder for an agent on a node without the campaign's: a hub of its own, and the task at the baseline."""
    run = Run(home() / "nodes" / node[:16] / name)
    hub = Hub.open(run.folder) if (run.folder / "hub.git").is_dir() else Hub.receive(run.folder, task, main, data)
    if not run.trusted.is_dir():
        hub.entrust(main, run.trusted)
    return run, hub

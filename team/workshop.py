"""The workshop that an agent lends to its mind: folders to edit in, and its judge's build and check."""

import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from protocol.messages import Measurement
from team.judge.client import Judge
from team.judge.request import Check
from team.workspace.hub import Hub

TRIAL = {"Trial": "a mind tries this out; nothing is claimed"}


class AgentWorkshop:
    """One agent's. ``judge`` answers the agent's judge of the moment, which is replaced when it dies."""

    def __init__(
        self, hub: Hub, judge: Callable[[], Judge], trusted: Path, scratch: Path, editable: Collection[str]
    ) -> None:
        self._hub = hub
        self._judge = judge
        self._trusted = trusted
        self._scratch = scratch
        self._editable = editable

    def lay_out(self, base: str) -> Path:
        """See ``roles.minds.mind.Workshop``. It is a copy without any link to the repository."""
        folder = self.clear_place()
        shutil.copytree(self._hub.export(base, self._scratch / "snapshots"), folder, dirs_exist_ok=True)
        return folder

    def clear_place(self) -> Path:
        """See ``roles.minds.mind.Workshop``."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="try-", dir=self._scratch))

    def check(self, base: str, files: Mapping[str, str]) -> Measurement:
        """See ``roles.minds.mind.Workshop``. ``Refused`` when a file is not editable."""
        commit = self._hub.commit(base, files, "Trial", TRIAL, self._editable)
        tree = self._hub.export(commit, self._scratch / "snapshots")
        try:
            return self._judge().check(Check(task=str(self._trusted), tree=str(tree)))
        finally:
            shutil.rmtree(tree, ignore_errors=True)

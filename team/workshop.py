"""The workshop that an agent lends to its mind: folders to edit in, without any link to the repository."""

import shutil
import tempfile
from pathlib import Path

from team.workspace.hub import Hub


class AgentWorkshop:
    """One agent's, below ``scratch``."""

    def __init__(self, hub: Hub, scratch: Path) -> None:
        self._hub = hub
        self._scratch = scratch

    def lay_out(self, base: str) -> Path:
        """See ``roles.minds.mind.Workshop``."""
        folder = self.clear_place()
        shutil.copytree(self._hub.export(base, self._scratch / "snapshots"), folder, dirs_exist_ok=True)
        return folder

    def clear_place(self) -> Path:
        """See ``roles.minds.mind.Workshop``."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="try-", dir=self._scratch))

"""The workshop that an agent lends to its mind: folders without any link to the repository, its judge's quick look, a
place for transcripts, and the account in the ledger."""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from protocol.messages import Measurement, ModelCall
from team.workspace.hub import Hub


class AgentWorkshop:
    """One agent's, below ``scratch``; transcripts are kept in a folder of their own. ``look`` is the judge's quick
    look at a folder, ``count`` tells the lead of a model's answer."""

    def __init__(
        self,
        hub: Hub,
        scratch: Path,
        transcripts: Path,
        look: Callable[[Path], Measurement],
        count: Callable[[ModelCall], None],
    ) -> None:
        self._hub = hub
        self._scratch = scratch
        self._transcripts = transcripts
        self._look = look
        self._count = count

    def lay_out(self, base: str) -> Path:
        """See ``roles.minds.mind.Workshop``."""
        folder = self.clear_place()
        shutil.copytree(self._hub.export(base, self._scratch / "snapshots"), folder, dirs_exist_ok=True)
        return folder

    def clear_place(self) -> Path:
        """See ``roles.minds.mind.Workshop``."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="try-", dir=self._scratch))

    def check(self, base: str, files: Mapping[str, str]) -> Measurement:
        """See ``roles.minds.mind.Workshop``."""
        folder = self.lay_out(base)
        try:
            for path, text in files.items():
                (folder / path).write_text(text)
            return self._look(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def transcript(self, duty: str) -> Path:
        """See ``roles.minds.mind.Workshop``."""
        return self._transcripts / f"{duty}.jsonl"

    def spent(self, call: ModelCall) -> None:
        """See ``roles.minds.mind.Workshop``."""
        self._count(call)

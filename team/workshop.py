"""The workshop that an agent lends to its mind: folders without any link to the repository, its judge's quick look, a
place for transcripts, and the account in the ledger."""

import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from protocol.messages import Measurement, ModelCall, Outcome
from team.evidence.artifacts import artifact_of
from team.evidence.sass.disassembly import Undisassembled
from team.evidence.sass.excerpt import excerpt
from team.workspace.hub import Hub


class AgentWorkshop:
    """One agent's, below ``scratch``; transcripts are kept in a folder of their own. ``look`` is the judge's quick
    look at a folder, ``count`` tells the lead of a model's answer; only ``editable`` files may differ from a commit;
    the judge keeps what it built in ``cache``."""

    def __init__(
        self,
        hub: Hub,
        scratch: Path,
        transcripts: Path,
        look: Callable[[Path], Measurement],
        count: Callable[[ModelCall], None],
        editable: Collection[str],
        cache: Path,
    ) -> None:
        self._hub = hub
        self._scratch = scratch
        self._transcripts = transcripts
        self._look = look
        self._count = count
        self._editable = editable
        self._cache = cache

    @contextmanager
    def laid_out(self, base: str) -> Iterator[Path]:
        """See ``roles.minds.mind.Workshop``."""
        with self.cleared() as folder:
            shutil.copytree(self._hub.export(base, self._scratch / "snapshots"), folder, dirs_exist_ok=True)
            yield folder

    @contextmanager
    def cleared(self) -> Iterator[Path]:
        """See ``roles.minds.mind.Workshop``."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="try-", dir=self._scratch))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def check(self, base: str, files: Mapping[str, str]) -> Measurement:
        """See ``roles.minds.mind.Workshop``."""
        if foreign := sorted(set(files).difference(self._editable)):
            return Measurement(outcome=Outcome.BUILD_FAILED, detail=f"{foreign[0]} is not editable; nothing was built")
        with self.laid_out(base) as folder:
            for path, text in files.items():
                (folder / path).write_text(text)
            return self._look(folder)

    def machine_code(self, base: str, files: Mapping[str, str], function: str, first: int) -> str:
        """See ``roles.minds.mind.Workshop``."""
        seen = self.check(base, files)
        if seen.candidate_build is None:
            return f"there is no build to look into: {seen.outcome.value}: {seen.detail}"
        artifact = artifact_of(self._cache, seen.candidate_build.artifact)
        if artifact is None:
            return "there is no build to look into: the judge does not keep it any more"
        try:
            return excerpt(artifact, function, first)
        except Undisassembled as failed:
            return f"there is no machine code to show: {failed.why}"

    def transcript(self, duty: str) -> Path:
        """See ``roles.minds.mind.Workshop``."""
        return self._transcripts / f"{duty}.jsonl"

    def spent(self, call: ModelCall) -> None:
        """See ``roles.minds.mind.Workshop``."""
        self._count(call)

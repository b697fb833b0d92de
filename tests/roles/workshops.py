"""Workshops without an agent: one lends nothing, one copies of a folder, one keeps records and accounts as well."""

import itertools
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from protocol.messages import Measurement, ModelCall, Outcome, WorkloadCheck


class NoWorkshop:
    """For minds that need none."""

    def laid_out(self, base: str) -> AbstractContextManager[Path]:
        raise AssertionError("nothing is lent here")

    def cleared(self) -> AbstractContextManager[Path]:
        raise AssertionError("nothing is lent here")


class FolderWorkshop(NoWorkshop):
    """Lends copies of ``origin`` below ``scratch``."""

    def __init__(self, origin: Path, scratch: Path) -> None:
        self.origin, self.scratch = origin, scratch
        self._numbers = itertools.count()

    @contextmanager
    def laid_out(self, base: str) -> Iterator[Path]:
        with self.cleared() as folder:
            shutil.copytree(self.origin, folder, dirs_exist_ok=True)
            yield folder

    @contextmanager
    def cleared(self) -> Iterator[Path]:
        folder = self.scratch / f"try-{next(self._numbers)}"
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


class RecordingWorkshop(FolderWorkshop):
    """Finds every change right, keeps transcripts, and counts each call once, as the ledger does."""

    def __init__(self, origin: Path, scratch: Path) -> None:
        super().__init__(origin, scratch)
        scratch.mkdir()
        self.forget()

    def forget(self) -> None:
        """As if nothing had been told so far; the transcripts stay."""
        self.calls: list[ModelCall] = []
        self.checked: list[dict[str, str]] = []
        self.disassembled: list[tuple[dict[str, str], str, int]] = []

    def check(self, base: str, files: Mapping[str, str]) -> Measurement:
        self.checked.append(dict(files))
        return Measurement(outcome=Outcome.MEASURED, checks=(WorkloadCheck(workload="w", checks=1, worst=0.0),))

    def machine_code(self, base: str, files: Mapping[str, str], function: str, first: int) -> str:
        self.disassembled.append((dict(files), function, first))
        return "sm_90a, function solve: 1 lines, from 1 on; most frequent: EXIT 1\n  0000  EXIT;"

    def transcript(self, duty: str) -> Path:
        return self.scratch.parent / "transcripts" / f"{duty}.jsonl"

    def spent(self, call: ModelCall) -> None:
        if (call.duty, call.number) not in {(each.duty, each.number) for each in self.calls}:
            self.calls.append(call)

    def scraps(self) -> list[Path]:
        """Folders that were not given back."""
        return list(self.scratch.iterdir())

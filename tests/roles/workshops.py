"""Workshops without an agent: one that lends nothing, and one that lends copies of a folder."""

import itertools
import shutil
from pathlib import Path


class NoWorkshop:
    """For minds that need none."""

    def lay_out(self, base: str) -> Path:
        raise AssertionError("nothing is lent here")

    def clear_place(self) -> Path:
        raise AssertionError("nothing is lent here")


class FolderWorkshop(NoWorkshop):
    """Lends copies of ``origin`` below ``scratch``."""

    def __init__(self, origin: Path, scratch: Path) -> None:
        self.origin, self.scratch = origin, scratch
        self._numbers = itertools.count()

    def lay_out(self, base: str) -> Path:
        folder = self.clear_place()
        shutil.copytree(self.origin, folder, dirs_exist_ok=True)
        return folder

    def clear_place(self) -> Path:
        folder = self.scratch / f"try-{next(self._numbers)}"
        folder.mkdir(parents=True)
        return folder

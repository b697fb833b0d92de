"""The folder of a run: where each artifact lies, and how an iteration appears there whole or not at all."""

import json
import os
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

OUTCOME = "outcome.json"


@dataclass(frozen=True)
class Folder:
    """``<baseline-dir>/run_YYYYMMDD_HHMMSS``."""

    path: Path

    @property
    def task(self) -> Path:
        """The inputs as a task, in a repository of its own."""
        return self.path / "task"

    @property
    def scratch(self) -> Path:
        """What may be deleted: the judge's builds, snapshots, minds' folders."""
        return self.path / ".build-cache"

    @property
    def baseline(self) -> Path:
        """The baseline's artifacts."""
        return self.path / "baseline"

    def iteration(self, number: int) -> Path:
        """A published iteration."""
        return self.path / f"iterv{number}"

    def staging(self, number: int) -> Path:
        """An iteration that no gate has passed yet."""
        return self.path / f".staging-iterv{number}"

    def publish(self, number: int) -> Path:
        """Make a staged iteration visible in one step."""
        os.rename(self.staging(number), self.iteration(number))
        return self.iteration(number)

    def set_aside(self, number: int) -> Path:
        """Keep what a failed iteration left, where nobody takes it for a result."""
        target = self.path / "failed" / f"iterv{number}"
        target.parent.mkdir(exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        os.rename(self.staging(number), target)
        return target


def new_folder(beside: Path) -> Folder:
    """A new folder in the baseline's; a second run within one second gets the next name."""
    stamp = datetime.now().strftime("%Y%m%d_%H%M%S")
    for turn in range(100):
        path = beside / (f"run_{stamp}" if not turn else f"run_{stamp}_{turn}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return Folder(path.resolve())
    raise FileExistsError(f"{beside}/run_{stamp}")


def write_json(path: Path, content: Any) -> None:
    """A file that is there whole or not at all, durable when this returns."""
    write_text(path, json.dumps(content, indent=2, default=str) + "\n")


def write_text(path: Path, text: str) -> None:
    """As ``write_json``, for any text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with fresh.open("w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(fresh, path)

"""Where a campaign lives on disk, and which one a command means when it names none.

``KERNELTEAM_HOME`` or ``~/.local/share/kernelteam`` holds ``runs/<campaign>/`` with the ledger, the hub, the worktrees,
the judge's scratch, logs and the report; ``peaks/`` and ``programs/`` keep what every judge of this user would measure
or compile anew. Nothing is written into the user's repository.
"""

import fcntl
import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from team.errors import UserError
from team.inbox import Inbox


@dataclass(frozen=True)
class Run:
    """The folder of one campaign."""

    folder: Path

    @property
    def name(self) -> str:
        """The campaign's name, also its Ray namespace."""
        return self.folder.name

    @property
    def ledger(self) -> Path:
        """The event store."""
        return self.folder / "ledger.sqlite"

    @property
    def report(self) -> Path:
        """The HTML report."""
        return self.folder / "report.html"

    @property
    def trusted(self) -> Path:
        """The task folder as it was at the baseline: what judges trust."""
        return self.folder / "trusted"

    @property
    def inbox(self) -> Inbox:
        """Requests to the coordinator."""
        return Inbox(self.folder / "inbox")

    def log(self, name: str) -> Path:
        """A log file of one member."""
        (self.folder / "logs").mkdir(exist_ok=True)
        return self.folder / "logs" / f"{name}.log"

    def transcripts(self, name: str) -> Path:
        """What one agent's mind said to models and was answered, one file for each duty."""
        return self.folder / "transcripts" / name

    def scratch(self, name: str) -> Path:
        """Working space of one agent: builds and snapshots; deleted when the campaign is."""
        path = self.folder / "scratch" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def is_driven(self) -> bool:
        """Whether a ``run`` or ``resume`` of this campaign lives."""
        try:
            with (self.folder / "driver.lock").open() as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            pass
        return False

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Hold the campaign against a second ``run`` or ``resume``; the kernel lets go when the holder dies."""
        with (self.folder / "driver.lock").open("a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"Campaign {self.name} is running.", "See it with: kernelteam status") from None
            yield


def home() -> Path:
    """The data directory of this user."""
    return Path(os.environ.get("KERNELTEAM_HOME") or Path.home() / ".local/share/kernelteam")


def new_run(task: str) -> Run:
    """A folder name that no campaign has yet; the folder itself is made by whoever fills it."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    return Run(home() / "runs" / f"{task}-{stamp}-{secrets.token_hex(2)}")


def find_run(name: Path | None) -> Run:
    """The campaign called ``name`` (a folder or its name), or the newest one."""
    runs = home() / "runs"
    if name is not None:
        for folder in (name, runs / name):
            if (folder / "ledger.sqlite").is_file():
                return Run(folder.resolve())
        raise UserError(f"There is no campaign '{name}'.", f"The campaigns are in {runs}.")
    found = [path.parent for path in runs.glob("*/ledger.sqlite")]
    if not found:
        raise UserError("There is no campaign yet.", "Start one with: kernelteam demo")
    return Run(max(found, key=lambda folder: (folder / "ledger.sqlite").stat().st_ctime))


def log_to(path: Path) -> None:
    """Everything that this process logs goes to one file, never to the user's terminal."""
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.INFO)

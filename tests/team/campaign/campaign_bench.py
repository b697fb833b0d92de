"""Real campaigns as a user starts them: the command line in a process of its own, on a task in a git repository."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from protocol import events as ev
from protocol.ledger import Ledger, LedgerError
from protocol.state import CampaignState, fold

KERNEL = """\
extern "C" void solve(const float* x, float* y, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        float total = 0.0f;
        for (int c = 0; c < cols; c++) {
            total += x[r * cols + c] * x[r * cols + c];
        }
        y[r] = total;
    }
}
"""
REFERENCE = """\
def reference(x, y, rows, cols):
    y.copy_(x.square().sum(-1))
"""
TASK = """\
name = "row_energy"
source = "row_energy.cpp"

[arguments]
x = { shape = ["rows", "cols"] }
y = { shape = ["rows"] }

[tolerance]
default = { atol = 1e-3, rtol = 1e-4 }

[policy]
calibration_restarts = 6

[[workloads]]
name = "wide"
dims = { rows = 128, cols = 1024 }

[[workloads]]
name = "odd"
dims = { rows = 67, cols = 515 }
"""

LIGHT_LAW = """
[policy]
threshold = 0.1
looks = [4, 8, 16, 32]
pairs_per_restart = 2
screen_pairs = 2
struck_restarts = 1
calibration_restarts = 4
"""
"""For campaigns that are about what happens and not about how surely it is told: large gains, told early in calm."""


@dataclass
class Bench:
    """A task in a repository, a home for campaigns, and the command line."""

    task: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "KERNELTEAM_HOME": str(self.home), "PYTHONUNBUFFERED": "1"}

    def call(self, *arguments: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        command = [sys.executable, "-m", "team.cli", *arguments]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL
        )

    def start(self, *arguments: str, to: IO[str] | int = subprocess.PIPE) -> subprocess.Popen[str]:
        """Start one command; what it says goes ``to`` a file, or waits in its pipe."""
        command = [sys.executable, "-m", "team.cli", *arguments]
        return subprocess.Popen(
            command,
            env=self.environment,
            stdout=to,
            stderr=subprocess.STDOUT,
            text=True,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def run(self) -> Path:
        """The one campaign's folder."""
        (ledger,) = self.home.glob("runs/*/ledger.sqlite")
        return ledger.parent

    def events(self, after: int = 0) -> list[ev.Event]:
        """What is in the ledger so far, above number ``after``; nothing before there is one."""
        found = list(self.home.glob("runs/*/ledger.sqlite"))
        if not found:
            return []
        with suppress(LedgerError), Ledger(found[0]) as ledger:
            return list(ledger.events(after))
        return []

    def state(self) -> CampaignState:
        return fold(self.events())

    def until(self, holds: Callable[[list[ev.Event]], bool], seconds: float = 400) -> None:
        """Wait until the ledger says so."""
        deadline, pause = time.monotonic() + seconds, threading.Event()
        while not holds(self.events()):
            assert time.monotonic() < deadline, [event.body.kind for event in self.events()]
            pause.wait(0.1)

    def processes(self) -> list[psutil.Process]:
        """Every process that belongs to this bench's campaigns."""
        return [process for process in psutil.process_iter() if self._ours(process)]

    def find(self, mark: str) -> psutil.Process:
        """A living process of ours with ``mark`` in its command line, waited for."""
        deadline, pause = time.monotonic() + 60, threading.Event()
        while time.monotonic() < deadline:
            for process in self.processes():
                with suppress(psutil.Error):
                    if mark in " ".join(process.cmdline()):
                        return process
            pause.wait(0.01)
        raise AssertionError(f"no process with '{mark}'")

    def _ours(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error):
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                return False
            home = str(self.home)
            return home in " ".join(process.cmdline()) or process.environ().get("KERNELTEAM_HOME") == home
        return False

    def gone(self, seconds: float = 30) -> bool:
        """Whether no process of ours is left, given a moment."""
        deadline, pause = time.monotonic() + seconds, threading.Event()
        while self.processes():
            if time.monotonic() > deadline:
                return False
            pause.wait(0.1)
        return True

    def log(self) -> list[dict[str, Any]]:
        return json.loads(self.call("log", "--json").stdout)


def git(folder: Path, *arguments: str) -> str:
    """git as a user would call it."""
    identity = ("-c", "user.name=User", "-c", "user.email=user@localhost")
    return subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout

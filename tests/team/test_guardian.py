"""Nothing outlives a campaign's first process, and a driver that lost it ends in order. Real processes, no Ray."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from team.guardian import RAY_FOLDER
from team.inbox import Inbox

# A driver whose guardian dies while nobody can act on the news: Ray's own handler raises where exceptions are ignored.
DEAF = """
import os, signal, sys, threading
from pathlib import Path
from team.console import _interruptible
from team.guardian import guard
from team.runs import Run
guard()
heard, stopped = [], threading.Event()
signal.signal(signal.SIGTERM, lambda *_: heard.append(True))
if sys.argv[2] == "lost":
    os.kill(os.getppid(), signal.SIGKILL)
    while not heard:
        signal.pause()
with _interruptible(Run(Path(sys.argv[1])), stopped):
    print(stopped.is_set())
"""
LEAVING = """
import os, signal, subprocess, tempfile
from team.guardian import RAY_FOLDER, guard
guard()
nowhere = subprocess.DEVNULL
helper = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=nowhere, stderr=nowhere)
folder = tempfile.mkdtemp(prefix=f"{RAY_FOLDER}{os.getpid()}-", dir="/tmp")
print(helper.pid, folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a program of its own says; it ends when its last process has."""
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(("guardian", "stops"), [("lost", True), ("alive", False)])
def test_a_driver_that_lost_its_guardian_unheard_stops_as_soon_as_it_can(
    tmp_path: Path, guardian: str, stops: bool
) -> None:
    (tmp_path / "inbox").mkdir()
    said = python(DEAF, str(tmp_path), guardian)
    assert said.stdout.splitlines()[-1:] == [str(stops)], said.stderr
    assert [request.kind for _, request in Inbox(tmp_path / "inbox").waiting()] == ["stop"] * stops


def test_what_a_killed_driver_leaves_is_ended_and_cleared_away() -> None:
    said = python(LEAVING)
    assert said.returncode == 128 + 9, said.stderr
    helper, folder = said.stdout.split()
    assert not psutil.pid_exists(int(helper))
    assert Path(folder).name.startswith(RAY_FOLDER)
    assert not os.path.exists(folder)

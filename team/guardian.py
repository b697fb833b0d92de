"""Nothing outlives a campaign: the command's first process guards the second, which drives.

Ray's own fate-sharing leaves helper processes behind when a driver is killed. So ``guard`` forks: the parent becomes
the *subreaper* of everything the child starts, waits, and then kills what is left, by process id. When the guardian
itself is killed, the kernel sends the driver SIGTERM, and the driver ends the campaign in order.
"""

import ctypes
import os
import shutil
import signal
from pathlib import Path
from types import FrameType

import psutil

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_GRACE_SECONDS = 5.0
RAY_FOLDER = "kt-ray-"


_guardian: int | None = None


def orphaned() -> bool:
    """Whether this process had a guardian and lost it. Its SIGTERM may have come while nobody could act on it."""
    return _guardian is not None and os.getppid() != _guardian


def guard() -> None:
    """Return in a child process whose descendants cannot leak; the caller exits with the child's status.

    To be called before any thread is started. Linux only; elsewhere there is nothing to do.
    """
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    guardian = os.getpid()
    child = os.fork()
    if child == 0:
        global _guardian
        _guardian = guardian
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != guardian:
            os._exit(1)
        return
    os._exit(_watch(child))


def _watch(child: int) -> int:
    """Wait for the driver, pass SIGTERM on to it, and clear away what it leaves. Its exit status."""

    def forward(number: int, frame: FrameType | None) -> None:
        os.kill(child, number)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the driver as well
    signal.signal(signal.SIGTERM, forward)
    _, status = os.waitpid(child, 0)
    clear()
    for folder in Path("/tmp").glob(f"{RAY_FOLDER}{child}-*"):
        shutil.rmtree(folder, ignore_errors=True)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def clear() -> None:
    """Kill and reap every descendant of this process."""
    while left := psutil.Process().children(recursive=True):
        for process in left:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        _, alive = psutil.wait_procs(left, timeout=_GRACE_SECONDS)
        if alive:
            return

"""The campaign's own lock around what git does not lock itself, and the removal of locks that dead git left behind."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

_YOUNG_S = 2.0
_PATIENCE_S = 20.0


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold ``path`` against every other process and thread; the kernel lets go of it when the holder dies."""
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def clear_stale(locks: list[Path]) -> tuple[str, ...]:
    """Remove git's lock files that no process holds, waiting for those that one does. One sentence per lock removed."""
    return tuple(f"Removed {lock}, which a dead git process left behind." for lock in locks if _clear(lock))


def _clear(lock: Path) -> bool:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        seen = _stamp(lock)
        if seen is None:
            return False
        old = time.time() - seen[1] > _YOUNG_S
        if old and not _held(lock) and _stamp(lock) == seen:
            lock.unlink(missing_ok=True)
            return True
        time.sleep(0.2)
    return False


def _stamp(lock: Path) -> tuple[int, float] | None:
    """Inode and change time: the same pair twice means that nobody replaced the file in between."""
    try:
        status = lock.lstat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_ctime


def _held(lock: Path) -> bool:
    """Whether some live process has ``lock`` open.

    A git between closing its lock file and renaming it has it open no more; the age limit in ``_clear`` covers that.
    """
    target = str(lock.absolute())
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if any(opened.path == target for opened in process.open_files()):
                return True
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return False

"""One measurement at a time on a GPU: a file lock per UUID, shared by every process of this machine.

Nested use cannot deadlock: a holder leaves a token in its environment, which its children inherit. The kernel drops the
lock when the holder dies, whatever kills it.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from team.errors import UserError

_TOKEN = "KERNELTEAM_HOLDS"
_WAIT_S = 0.05


@contextmanager
def exclusive(name: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the device called ``name``; a ``UserError`` when another process still holds it after ``wait_s`` seconds."""
    held = os.environ.get(_TOKEN, "").split(",")
    if name in held:
        yield
        return
    descriptor = os.open(_path(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _acquire(descriptor, name, time.monotonic() + wait_s)
        os.environ[_TOKEN] = ",".join([*filter(None, held), name])
        try:
            yield
        finally:
            _forget(name)
    finally:
        os.close(descriptor)


def _forget(name: str) -> None:
    left = [one for one in os.environ.get(_TOKEN, "").split(",") if one not in ("", name)]
    if left:
        os.environ[_TOKEN] = ",".join(left)
    else:
        os.environ.pop(_TOKEN, None)


def _acquire(descriptor: int, name: str, until: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() >= until:
                holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
                raise UserError(
                    f"{name} is in use by another measurement (process {holder}).", "Wait for it, or end it."
                ) from None
        time.sleep(_WAIT_S)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)


def _path(name: str) -> Path:
    return Path(tempfile.gettempdir()) / f"kernelteam-{name}.lock"

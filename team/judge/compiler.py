"""One compiler process: bounded in time, output, memory and files, and confined to its room. Trusted.

The compiler is trusted, the source that it reads is not: a template may take for ever, an error may fill gigabytes, and
an ``.incbin`` may name any file. The program that confines it is built first, from this package's own source.
"""

import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Condition

from team.judge.failures import BuildFailed

OUTPUT = 8 << 20  # bytes of output after which a compiler is killed: no honest error needs more
FILE_SIZE = 1 << 30  # bytes of one file that a compiler may write
MEMORY = 8 << 30  # bytes of address space of one compiler process, or half of the machine's memory
PER_COMPILE = 3 << 30  # bytes of memory that one compilation with its passes may need
READABLE = ("/usr", "/lib", "/lib64", "/bin", "/opt", "/etc/ld.so.cache", "/etc/alternatives", "/proc/cpuinfo",
            "/proc/meminfo", "/sys/devices/system/cpu")  # fmt: skip
_BLOCK = 1 << 16
_HUNGRY = (
    "out of memory",
    "killed signal terminated",
    "died due to signal 9",
    "virtual memory exhausted",
    "memory exhausted",
    "cannot allocate memory",
    "bad_alloc",
)


@dataclass(frozen=True)
class Compiled:
    """How a compiler ended: exit status (negative for a signal) and what it said."""

    status: int
    output: str

    @property
    def starved(self) -> bool:
        """Whether it ended for want of memory: killed from outside, or by its own account."""
        said = self.output.lower()
        killed = self.status in (-signal.SIGKILL, 128 + signal.SIGKILL)
        return self.status != 0 and (killed or any(words in said for words in _HUNGRY))


class Crossing:
    """Compilers run side by side, except that one which starved before has the machine to itself."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._running = 0
        self._waiting = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Beside others, as soon as nobody runs or waits to run alone."""
        with self._changed:
            self._changed.wait_for(lambda: self._running >= 0 and self._waiting == 0)
            self._running += 1
        try:
            yield
        finally:
            self._leave(1)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """With no other compiler of this process."""
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: self._running == 0)
            self._waiting -= 1
            self._running = -1
        try:
            yield
        finally:
            self._leave(-1)

    def _leave(self, count: int) -> None:
        with self._changed:
            self._running -= count
            self._changed.notify_all()


def compile_jobs(cores: int | None = None, asked: int | None = None) -> int:
    """Compilations to run side by side: as many as ``asked``, else bounded by cores and by free memory."""
    if asked is not None:
        return asked
    cores = cores or len(os.sched_getaffinity(0))
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(cores, int(free) // PER_COMPILE))


def memory_limit() -> int:
    """Bytes of address space that one compiler process gets."""
    return min(MEMORY, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)


def confined(command: list[str], warden: Path, room: Path, compiler: str, includes: tuple[str, ...] = ()) -> list[str]:
    """The command line that starts ``command`` through the confining program, with ``room`` to write in.

    Besides the system's folders it may read where ``compiler`` is installed, and ``includes``.
    """
    found = shutil.which(compiler)
    tree = [] if found is None else [str(Path(found).resolve().parent.parent), str(Path(found).parent.parent)]
    readable = ":".join(dict.fromkeys([*READABLE, *(path for path in tree if path != "/"), *includes]))
    limits = [str(os.getpid()), str(memory_limit()), str(FILE_SIZE), str(room), readable]
    return [str(warden), *limits, *command]


def run_compiler(command: list[str], folder: Path, timeout_s: float) -> Compiled:
    """Run a compiler in a process group of its own; kill the whole group when it takes too long or says too much."""
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TMPDIR": str(folder.parent)}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
    ) as process:
        try:
            output = _listen(process, time.monotonic() + timeout_s, timeout_s)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return Compiled(process.wait(), output.decode(errors="replace"))


def _listen(process: subprocess.Popen[bytes], until: float, timeout_s: float) -> bytes:
    """All that the process says before it ends; ``BuildFailed`` when that is too much or comes too late."""
    assert process.stdout is not None
    said = bytearray()
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not waiting.select(max(0.0, until - time.monotonic())):
                raise BuildFailed(f"The compiler needed more than {timeout_s:g} s and was killed.")
            block = os.read(process.stdout.fileno(), _BLOCK)
            if not block:
                break
            said += block
            if len(said) > OUTPUT:
                start = said[:_BLOCK].decode(errors="replace")
                raise BuildFailed(f"The compiler wrote more than {OUTPUT >> 20} MiB and was killed.", start)
    try:
        process.wait(max(0.01, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise BuildFailed(f"The compiler needed more than {timeout_s:g} s and was killed.") from None
    return bytes(said)

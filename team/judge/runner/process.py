"""One runner process as the judge sees it: start, ask, time, stop, kill. Trusted; the process behind it is not.

A runner that is not being timed is stopped (SIGSTOP), so that no thread of it can work ahead on inputs or finish late.
Three clocks are read for a sample: the runner's own (a claim, precise), the judge's wall clock from the moment the
runner is resumed to its answer, and the CPU time of all its threads, read from outside after it has been stopped again.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protocol import wire
from team.judge.artifact import Artifact, Library, sealed_memory
from team.judge.build import Recipe
from team.judge.failures import JudgeDied, RunnerEnded, RunnerGreedy, RunnerLied, RunnerSilent

PROGRAM_FLAGS = ("-O2", "-std=c++17", "-Wl,-z,now,-z,relro")
MAX_ANSWER = 8192  # bytes; every answer of a runner is a handful of numbers
START_S = 20.0  # seconds for a process to start and to load its libraries
HOST_MEMORY = 8 << 30  # resident bytes of one runner; CUDA needs too much address space for a limit of the system's
GLANCE_S = 0.1  # seconds between two looks at them, while an answer is awaited


@dataclass(frozen=True)
class Sample:
    """One timed block of launches, all in nanoseconds.

    ``claimed_ns`` by the runner, ``wall_ns`` seen by the judge, ``cpu_ns`` burnt by all threads of the runner, and
    ``queued_ns`` for which the judge or the runner's first thread was ready to run but other programs had the core.
    """

    claimed_ns: int
    wall_ns: int
    cpu_ns: int
    queued_ns: int = 0


def program_recipe() -> Recipe:
    """How to build the native runner."""
    folder = Path(__file__).parent
    files = {name: (folder / name).read_text() for name in ("runner.cpp", "wire.h", "sandbox.h")}
    return Recipe(files, "runner.cpp", PROGRAM_FLAGS, ours=True)


class RunnerProcess:
    """A runner with its kernels loaded, mostly one, stopped except while it is asked something."""

    def __init__(
        self,
        program: Artifact,
        shim: Artifact,
        kernels: Sequence[Artifact],
        arena: int,
        cores: tuple[int, ...],
        folder: Path,
    ) -> None:
        libraries = [sealed_memory(one.verified_bytes()) for one in libraries_of(kernels)]
        sealed = [one.sealed_copy() for one in (shim, *kernels)]
        self._adopt(_start(program, arena, libraries, sealed, cores, folder))

    def _adopt(self, process: subprocess.Popen[bytes]) -> None:
        """Take over a process that was just started."""
        self._process = process
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests = self._process.stdin.fileno()
        self._answers = self._process.stdout.fileno()
        self._clock = (~self._process.pid << 3) | 2  # CPU clock of all its threads: see clock_getcpuclockid(3)
        self._queues = [os.open(f"/proc/{name}/schedstat", os.O_RDONLY | os.O_CLOEXEC) for name in (self.pid, "self")]
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        self._stopped = False
        self._killed = False

    @property
    def pid(self) -> int:
        """Process id, which is also its process group's."""
        return self._process.pid

    def load(self) -> str:
        """Load the kernel; the active layers of the sandbox by name. A loader's refusal is ``RunnerLied``'s text."""
        answer = self.ask({"op": "load"}, START_S)
        if "error" in answer:
            raise RunnerLied(str(answer["error"])[:400])
        return str(answer.get("layers", ""))

    def ask(self, body: Mapping[str, Any], deadline_s: float) -> dict[str, Any]:
        """One untimed exchange; the runner is stopped again afterwards."""
        self._resume_with(body)
        answer = self._receive(deadline_s)
        self.stop()
        return answer

    def go(self, launch_set: int, deadline_s: float) -> Sample:
        """Launch a staged set once and read the three clocks."""
        return self._timed({"op": "go", "set": launch_set}, deadline_s)

    def _told(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The answer, unless it tells of a fault."""
        return answer

    def _timed(self, body: Mapping[str, Any], deadline_s: float) -> Sample:
        cpu, queued = time.clock_gettime_ns(self._clock), self._queued()
        self._send(body)
        started = time.perf_counter_ns()
        self._resume()
        answer = self._receive(deadline_s)
        wall = time.perf_counter_ns() - started
        claimed = self._told(answer).get("ns")
        self.stop()
        if type(claimed) is not int or claimed < 0:
            raise RunnerLied("sent no time")
        return Sample(claimed, wall, time.clock_gettime_ns(self._clock) - cpu, self._queued() - queued)

    def stop(self) -> None:
        """Stop every thread of the runner and wait until they stand."""
        if self._stopped:
            return
        os.kill(self.pid, signal.SIGSTOP)
        state = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if state is None or state.si_code != os.CLD_STOPPED:
            raise self._ended()
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)
        self._stopped = True
        if self._poll.poll(0):
            raise RunnerLied("sent more than it was asked for")

    def kill(self) -> None:
        """Kill the runner's whole process group; ``close`` reaps it."""
        self._killed = True
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def freeze(self) -> None:
        """Stop the runner's whole process group for good, if it is still there."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGSTOP)

    @property
    def frozen(self) -> bool:
        """Whether it stands still for good: neither killed nor gone."""
        return not self._killed and self._process.poll() is None

    def close(self) -> None:
        """Kill the runner's whole process group and reap it."""
        self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()
        for descriptor in self._queues:
            os.close(descriptor)
        self._queues = []

    def _queued(self) -> int:
        """Nanoseconds that the runner's first thread and this process have waited for a core so far."""
        return sum(int(os.pread(descriptor, 80, 0).split()[1]) for descriptor in self._queues)

    def __enter__(self) -> "RunnerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _resume_with(self, body: Mapping[str, Any]) -> None:
        self._resume()
        self._send(body)

    def _resume(self) -> None:
        if self._stopped:
            os.kill(self.pid, signal.SIGCONT)
            self._stopped = False

    def _send(self, body: Mapping[str, Any]) -> None:
        view = memoryview(wire.encode(body))
        try:
            while view:
                view = view[os.write(self._requests, view) :]
        except BrokenPipeError:
            raise self._ended() from None

    def _receive(self, deadline_s: float) -> dict[str, Any]:
        """One answer, or the reason why there is none."""
        until = time.monotonic() + deadline_s
        buffer = bytearray()
        wanted = 4
        while len(buffer) < wanted:
            self._await(until, deadline_s)
            block = os.read(self._answers, wanted - len(buffer))
            if not block:
                raise self._ended()
            buffer += block
            if wanted == 4 and len(buffer) == 4:
                wanted += _length(bytes(buffer))
        return _decoded(bytes(buffer[4:]))

    def _await(self, until: float, deadline_s: float) -> None:
        while not self._poll.poll(1000 * max(0.0, min(GLANCE_S, until - time.monotonic()))):
            if time.monotonic() >= until:
                raise RunnerSilent(deadline_s)
            self._refuse_greed()

    def _refuse_greed(self) -> None:
        """Kill the runner when it holds more of the host's memory than any kernel needs."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except OSError:  # gone: the pipe says so next
            return
        held = pages * os.sysconf("SC_PAGE_SIZE")
        if held > HOST_MEMORY:
            self.kill()
            self._process.wait()
            raise RunnerGreedy(held)

    def _ended(self) -> RunnerEnded:
        """Why the process is gone. One that merely closed its end of the pipe is killed here and counts as left."""
        try:
            status = self._process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
            return RunnerEnded("", 0)
        return RunnerEnded(signal.Signals(-status).name if status < 0 else "", status)


def libraries_of(kernels: Sequence[Artifact]) -> tuple[Library, ...]:
    """What these kernels were linked with, each once."""
    return tuple(dict.fromkeys(library for kernel in kernels for library in kernel.libraries))


def parent_is_gone(descriptor: int = 0) -> bool:
    """Whether whoever feeds this process through ``descriptor`` has hung up."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))


def refuse_orphanhood(descriptor: int) -> None:
    """Raise when the judge's own parent is gone, so that no measurement outlives whoever asked for it."""
    if parent_is_gone(descriptor):
        raise JudgeDied("the agent that asked is gone")


def _start(
    program: Artifact,
    arena: int,
    libraries: Sequence[int],
    sealed: Sequence[int],
    cores: tuple[int, ...],
    folder: Path,
) -> subprocess.Popen[bytes]:
    """Start a runner with a clean environment in a session of its own; closes the sealed copies here."""
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "OMP_NUM_THREADS": str(len(cores)), "OMP_DYNAMIC": "FALSE"}
    words = [str(arena), str(sealed[0]), ",".join(map(str, libraries)), ",".join(map(str, sealed[1:]))]
    listed = ",".join(str(core) for core in cores)
    try:
        return subprocess.Popen(
            [str(program.path), *words, str(os.getpid()), listed],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd=folder,
            env=environment,
            pass_fds=(arena, *libraries, *sealed),
            start_new_session=True,
        )
    finally:
        for descriptor in (*libraries, *sealed):
            os.close(descriptor)


def _length(header: bytes) -> int:
    try:
        return wire.length_of(header, MAX_ANSWER)
    except wire.WireError as error:
        raise RunnerLied(str(error)) from None


def _decoded(payload: bytes) -> dict[str, Any]:
    try:
        answer = wire.decode(payload)
    except wire.WireError as error:
        raise RunnerLied(str(error)) from None
    if not isinstance(answer, dict):
        raise RunnerLied("sent something that is not a map")
    return answer

"""The agent's end of its judge: starts the warm process, asks, takes it down with all it started. Trusted."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from protocol import wire
from protocol.messages import Measurement, Message, Noise
from protocol.methods import Sanitized
from protocol.policy import Policy
from protocol.problem import Problem
from roles.minds.anthropic.key import without_keys
from team.devices.device import Device
from team.errors import UserError
from team.judge.failures import BaselineBroken, JudgeDied
from team.judge.request import Calibrate, Check, Compare, Describe, Identity, Sanitize, Screen
from team.judge.timeline import Stage, read_stages, timeline_path

_LOG_TAIL = 4000  # characters of the judge's log that an error carries
_HUNG_S = 3600.0  # seconds after which a judge, whose every step has a deadline, is taken for hung
_CLOSE_S = 5.0  # seconds that a judge gets to leave by itself

# The allocator keeps freed memory: checking outputs must not fault the same megabytes in again for every pair.
_ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
    "MALLOC_TOP_PAD_": str(64 << 20),
}


class Judge:
    """A warm judge process for one device, under the task's law or a campaign's ``policy``.

    ``scratch`` holds its build cache, which may be shared, and its log.
    """

    def __init__(self, device: Device, scratch: Path, policy: Policy | None = None) -> None:
        self._law = [] if policy is None else [policy.model_dump_json()]
        self._device = device
        self._scratch = scratch.resolve()
        self._log = self._scratch / f"judge-{device.id.replace(':', '-').replace(',', '_')}-{os.getpid()}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Judge":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the process and wait until it is ready (it imports torch: about two seconds)."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "team.judge.server", self._device.id, str(self._scratch), *self._law],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**without_keys(os.environ), **_ALLOCATOR},
                start_new_session=True,
            )
        said = self._receive()
        if said.get("kind") == "error":
            self.close()
            raise UserError(str(said["what"]), str(said["remedy"]))
        if said.get("kind") != "ready":
            raise self._died("The judge did not report ready.")

    def close(self) -> None:
        """Let the process leave, or kill its process group; its runners die with it."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_CLOSE_S)
        self._end(process)

    def kill(self) -> None:
        """Kill the process group at once; a call in progress elsewhere raises ``JudgeDied``."""
        if self._process is not None:
            self._end(self._process)

    @property
    def pid(self) -> int | None:
        """Process id (and process group) of the judge, None when it is not running."""
        return None if self._process is None else self._process.pid

    def compare(self, request: Compare) -> Measurement:
        """See ``team.judge.judge.Judge.compare``; raises ``BaselineBroken``, ``UserError`` or ``JudgeDied``."""
        return Measurement.model_validate(self._ask(request))

    def screen(self, request: Screen) -> list[Measurement]:
        """One measurement per candidate, in order."""
        return [Measurement.model_validate(one) for one in self._ask(request)]

    def calibrate(self, request: Calibrate) -> tuple[Noise, Measurement, dict[str, Any]]:
        """The noise, the A/A samples, and what the campaign's own check found."""
        noise, measurement, findings = self._ask(request)
        return Noise.model_validate(noise), Measurement.model_validate(measurement), findings

    def check(self, request: Check) -> Measurement:
        """Build and check one tree, timing nothing."""
        return Measurement.model_validate(self._ask(request))

    def identical(self, request: Identity) -> Measurement:
        """MEASURED when every output has the base's bits, INCORRECT with the first difference otherwise."""
        return Measurement.model_validate(self._ask(request))

    def sanitize(self, request: Sanitize) -> tuple[Sanitized, ...]:
        """What compute-sanitizer says of a candidate, tool by tool; nothing on a CPU."""
        return tuple(Sanitized.model_validate(one) for one in self._ask(request))

    def stages(self) -> list[Stage]:
        """Where the time of the last request went."""
        return read_stages(timeline_path(self._scratch, self._device.id))

    def describe(self, request: Describe) -> Problem:
        """The operator block of a task."""
        return Problem.model_validate(self._ask(request))

    def _ask(self, request: Message) -> Any:
        process = self._process
        if process is None or process.stdin is None:
            raise JudgeDied("The judge is not running.")
        try:
            process.stdin.write(wire.encode(request.model_dump(mode="json")))
            process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise self._died("The judge died before it was asked.") from None
        answer = self._receive()
        if answer.get("kind") == "error":
            kind = BaselineBroken if answer.get("error") == "baseline" else UserError
            raise kind(str(answer["what"]), str(answer["remedy"]))
        return answer["body"]

    def _receive(self) -> dict[str, Any]:
        header = self._read(4)
        return wire.decode(self._read(wire.length_of(header)))

    def _read(self, size: int) -> bytes:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        watchdog = threading.Timer(_HUNG_S, self.kill)
        watchdog.start()
        try:
            data = process.stdout.read(size)
        finally:
            watchdog.cancel()
        if len(data) < size:
            raise self._died("The judge died.")
        return data

    def _died(self, what: str) -> JudgeDied:
        process, self._process = self._process, None
        if process is not None:
            self._end(process)
        with contextlib.suppress(OSError):
            return JudgeDied(what, self._log.read_text(errors="replace")[-_LOG_TAIL:])
        return JudgeDied(what)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the judge's group and every other group of its session (a compiler's), then reap it."""
        for group in {process.pid, *_groups_of_session(process.pid)}:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        process.wait()
        shutil.rmtree(self._scratch / "work" / str(process.pid), ignore_errors=True)


def _groups_of_session(session: int) -> set[int]:
    """Process groups whose members belong to the session that a judge leads."""
    found: set[int] = set()
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            if os.getsid(int(entry)) == session:
                found.add(os.getpgid(int(entry)))
    return found

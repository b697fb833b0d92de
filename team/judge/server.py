"""The judge's process: requests come as frames on standard input, answers leave on standard output. Trusted.

usage: python -m team.judge.server DEVICE SCRATCH [POLICY]     the campaign's law as JSON; default: the task's own

    ->  {kind: compare | screen | calibrate | check | describe, ...}     see ``team.judge.request``
    <-  {kind: ready, device}                                 once, when torch is loaded
    <-  {kind: answer, body}                                  a Measurement, a list of them, or a calibration's three
    <-  {kind: error, error: user | baseline, what, remedy}   something the user or the campaign must act on
"""

import os
import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from protocol import wire
from protocol.policy import Policy
from team.devices import open_device
from team.devices.cuda import CudaDevice
from team.devices.lock import exclusive
from team.errors import UserError
from team.judge.failures import BaselineBroken, JudgeDied
from team.judge.judge import Judge
from team.judge.request import Calibrate, Check, Compare, Describe, Identity, Request, Sanitize, Screen
from team.judge.runner.process import refuse_orphanhood
from team.judge.timeline import TIMELINE, timeline_path

LOCK_WAIT_S = 30.0  # seconds to wait for the judge of somebody who is just leaving


class Server:
    """Serves one judge over two descriptors; the stages of the last request are left at ``listing``."""

    def __init__(self, judge: Judge, listing: Path, requests: int, answers: int) -> None:
        self._judge = judge
        self._listing = listing
        self._requests = requests
        self._answers = answers
        self._parser: TypeAdapter[Request] = TypeAdapter(Request)

    def serve(self) -> None:
        """Answer requests until the other end hangs up."""
        while (header := _read(self._requests, 4)) is not None:
            payload = _read(self._requests, wire.length_of(header))
            if payload is None:
                return
            request = self._parser.validate_python(wire.decode(payload))
            TIMELINE.begin()
            answer = self._answer(request)
            TIMELINE.write(self._listing)
            _say(self._answers, answer)
            if isinstance(request, Compare):  # another is likely to follow
                self._judge.rest()

    def _answer(self, request: Request) -> dict[str, Any]:
        try:
            return {"kind": "answer", "body": self._body(request)}
        except BaselineBroken as error:
            return {"kind": "error", "error": "baseline", "what": error.what, "remedy": error.remedy}
        except UserError as error:
            return {"kind": "error", "error": "user", "what": error.what, "remedy": error.remedy}

    def _body(self, request: Request) -> Any:
        match request:
            case Compare():
                return self._judge.compare(request).model_dump(mode="json")
            case Screen():
                return [one.model_dump(mode="json") for one in self._judge.screen(request)]
            case Calibrate():
                noise, measurement, findings = self._judge.calibrate(request)
                return [noise.model_dump(mode="json"), measurement.model_dump(mode="json"), findings]
            case Check():
                return self._judge.check(request).model_dump(mode="json")
            case Identity():
                return self._judge.identical(request).model_dump(mode="json")
            case Sanitize():
                return [one.model_dump(mode="json") for one in self._judge.sanitize(request)]
            case Describe():
                return self._judge.describe(request).model_dump(mode="json")


def main() -> None:
    """Take the protocol's descriptors away from whoever prints, then serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is the agent's to act on
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    try:
        law = Policy.model_validate_json(sys.argv[3]) if len(sys.argv) > 3 else None
        _serve(sys.argv[1], Path(sys.argv[2]), law, requests, answers)
    except UserError as error:
        _say(answers, {"kind": "error", "error": "user", "what": error.what, "remedy": error.remedy})
    except (JudgeDied, BrokenPipeError):
        return  # nobody is left to answer to


def _serve(name: str, scratch: Path, law: Policy | None, requests: int, answers: int) -> None:
    """Own the device until the other end hangs up."""
    device = open_device(name)
    owned = exclusive(name, LOCK_WAIT_S) if isinstance(device, CudaDevice) else nullcontext()
    with owned:
        judge = Judge(device, scratch, lambda: refuse_orphanhood(requests), law)
        try:
            _say(answers, {"kind": "ready", "device": device.info().model_dump(mode="json")})
            Server(judge, timeline_path(scratch, name), requests, answers).serve()
        finally:
            judge.close()


def _say(descriptor: int, body: dict[str, Any]) -> None:
    """Send one frame."""
    view = memoryview(wire.encode(body))
    while view:
        view = view[os.write(descriptor, view) :]


def _read(descriptor: int, size: int) -> bytes | None:
    """Exactly ``size`` bytes, or None when the other end has hung up."""
    buffer = bytearray()
    while len(buffer) < size:
        block = os.read(descriptor, size - len(buffer))
        if not block:
            return None
        buffer += block
    return bytes(buffer)


if __name__ == "__main__":
    main()

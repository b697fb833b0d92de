"""From a candidate's Triton source to something a runner loads: a ``solve`` of the judge's, or a bundle to interpret.

Trusted. The host code runs in ``tracing.py``, a sandboxed process without a GPU and with a time limit; what it answers
is checked number by number. Failures are remembered like successes: the same text is not traced twice.
"""

import contextlib
import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import msgpack
from pydantic import ValidationError

from protocol.messages import Build, DeviceInfo, Outcome
from team.devices.cuda import CudaDevice
from team.judge.artifact import Artifact
from team.judge.build import Builder
from team.judge.failures import BuildFailed, Failed, Side
from team.judge.screen.python import screen_python
from team.judge.triton import host
from team.judge.triton.plan import Plan
from team.judge.triton.program import program_recipe
from team.tasks.spec import Workload
from team.tasks.task import Task
from team.tasks.triton import without_setup

MAX_ANSWER = 128 << 20  # bytes of a plan with its machine code
_TRACER = host.HERE / "tracing.py"


class Unanswered(Exception):
    """A tracing process gave no answer; one clause."""


class TritonShop:
    """Makes artifacts of Triton sources for one device; ``target`` such as ``90a``, or None to interpret."""

    def __init__(self, builder: Builder, cache: Path, target: str | None, facts: Mapping[str, int]) -> None:
        self._builder = builder
        self._cache = cache
        self._target = target
        self._facts = dict(facts)
        self._known: dict[str, Artifact | tuple[Outcome, str]] = {}
        self._spares: SimpleQueue[Tracer] = SimpleQueue()

    def close(self) -> None:
        """End the spare."""
        while self._spares.qsize():
            self._spares.get().close()

    def artifact(self, task: Task, files: Mapping[str, str], side: Side) -> Artifact:
        """The artifact; raises ``Failed`` when the source may not be judged or does not build."""
        seen = {name: without_setup(text) if name.endswith(".py") else text for name, text in files.items()}
        parts = [sorted(seen.items()), task.spec.source, self._target, _shapes(task), host.require_triton()]
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
        if key not in self._known:
            self._known[key] = self._made(task, seen, key)
        found = self._known[key]
        if isinstance(found, Artifact):
            return found
        raise Failed(side, *found)

    def _made(self, task: Task, files: dict[str, str], key: str) -> Artifact | tuple[Outcome, str]:
        for name, text in files.items():
            clause = screen_python(text) if name.endswith(".py") else ""
            if clause:
                return Outcome.TAMPERED, f"{name}, {clause}"
        try:
            for name in files:
                if name.endswith(".py"):
                    compile(files[name], name, "exec")
            return self._bundle(task, files, key) if self._target is None else self._compiled(task, files)
        except (Unanswered, BuildFailed, SyntaxError) as error:
            return Outcome.BUILD_FAILED, _clause(error)
        except Failed as failed:
            return failed.outcome, failed.detail

    def _compiled(self, task: Task, files: dict[str, str]) -> Artifact:
        """Trace, check the plan, write its program, compile that."""
        started = time.monotonic()
        answer = self._traced(task, files)
        if "error" in answer:
            outcome = Outcome.CRASHED if answer.get("stage") == "trace" else Outcome.BUILD_FAILED
            said = str(answer["error"])[:2000].rstrip(".")
            raise Failed("candidate", outcome, f"its host code raised {said}" if outcome is Outcome.CRASHED else said)
        try:
            plan = Plan.model_validate(answer).check([one.name for one in task.all_workloads], len(task.buffers))
        except (ValidationError, ValueError) as error:
            raise Failed("candidate", Outcome.TAMPERED, f"its launch plan is not valid: {_clause(error)}") from None
        built = self._builder.build(program_recipe(plan, task.signature, task.all_workloads))
        seconds = built.build.seconds if built.build.cached else time.monotonic() - started
        compiler = f"triton {host.require_triton()} for sm_{self._target}"
        update = {"compiler": compiler, "seconds": seconds, "remarks": plan.remarks, "flags": (), "cached": False}
        return Artifact(built.path, built.build.model_copy(update=update))

    def _traced(self, task: Task, files: dict[str, str]) -> dict[str, Any]:
        """A tracing process's answer; the next one is started, to have Triton imported when it is needed."""
        try:
            tracer = self._spares.get_nowait()
        except Empty:
            tracer = Tracer()
        self._spares.put(Tracer())
        room = tracer.room
        host.write_sources(room, files)
        request = {
            "source": str(room / "sources" / task.spec.source),
            "room": str(room / "cache"),
            "workloads": _shapes(task),
            "target": int((self._target or "").rstrip("af")),
            "facts": self._facts,
            "tool": host.tool("cuobjdump"),
            "seal": str(host.seal(self._builder).path),
            "keep_uid": host.must_keep_uid(),
            "readable": [*host.readable_paths(), str(room)],
            "writable": [str(room / "cache")],
        }
        return tracer.ask(request, task.spec.build.timeout_s)

    def _bundle(self, task: Task, files: dict[str, str], key: str) -> Artifact:
        """The text itself, for the interpreter."""
        data: Any = msgpack.packb({"files": files, "source": task.spec.source})
        path = self._cache / f"{key}.bundle"
        path.write_bytes(data)
        compiler = f"triton {host.require_triton()}, interpreted"
        return Artifact(
            path, Build(compiler=compiler, flags=(), seconds=0.0, artifact=hashlib.sha256(data).hexdigest())
        )


def facts_of(device: CudaDevice) -> dict[str, int]:
    """What a candidate's host code may know of the card, by Triton's names."""
    return facts_from(device.info())


def facts_from(info: DeviceInfo) -> dict[str, int]:
    """See ``facts_of``."""
    names = {
        "multiprocessor_count": "SMs",
        "max_shared_mem": "shared memory per block bytes",
        "max_num_regs": "registers per SM",
        "warpSize": "warp",
        "l2_bytes": "L2 bytes",
        "total_memory": "memory bytes",
        "mem_bus_width": "memory bus bits",
    }
    return {name: int(info.details[detail]) for name, detail in names.items() if detail in info.details}


def described(task: Task, workload: Workload) -> dict[str, Any]:
    """One workload as a candidate's process is told of it: tensors, values, names of the outputs in their order."""
    tensors = [
        {"name": one.name, "dtype": one.parameter.dtype, "shape": list(task.shape(one, workload))}
        for one in task.buffers
    ]
    outputs = [one.name for one in task.outputs]
    return {"name": workload.name, "tensors": tensors, "values": task.numbers(workload), "outputs": outputs}


def _shapes(task: Task) -> list[Any]:
    return [described(task, workload) for workload in task.all_workloads]


class Tracer:
    """One tracing process, for one request; killed with all it started at the end."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kernelteam-trace-")
        self.room = Path(self._folder.name)
        self._process = subprocess.Popen(
            [sys.executable, "-s", str(_TRACER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd=self.room,
            env=host.environment(self.room, interpret=False),
            start_new_session=True,
        )

    def ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """The answer; raises ``Unanswered``."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        frame: Any = msgpack.packb(request)
        view = memoryview(len(frame).to_bytes(4, "little") + frame)
        try:
            while view:
                view = view[process.stdin.write(view) or 0 :]
            return _answer(process.stdout.fileno(), time.monotonic() + timeout_s, timeout_s)
        except BrokenPipeError:
            raise Unanswered("the process that compiles it could not start") from None
        finally:
            self.close()

    def close(self) -> None:
        """Kill the process and what it started, and remove its folder."""
        process = self._process
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # before it is reaped, so that the number is still its own
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        process.wait()
        self._folder.cleanup()


def _answer(descriptor: int, until: float, timeout_s: float) -> dict[str, Any]:
    data, wanted = bytearray(), 4
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while len(data) < wanted:
        if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
            raise Unanswered(f"its compilation needed more than {timeout_s:g} s and was killed")
        block = os.read(descriptor, min(1 << 20, wanted - len(data)))
        if not block:
            raise Unanswered("its compilation ended without an answer: it crashed, or left by itself")
        data += block
        if wanted == 4 and len(data) == 4:
            wanted += min(int.from_bytes(data, "little"), MAX_ANSWER)
    try:
        answer = msgpack.unpackb(bytes(data[4:]), strict_map_key=True)
    except (ValueError, msgpack.UnpackException):
        raise Unanswered("its compilation ended with an answer that cannot be read") from None
    if not isinstance(answer, dict):
        raise Unanswered("its compilation ended with an answer that cannot be read")
    return {str(key): value for key, value in answer.items()}


def _clause(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    if isinstance(error, BuildFailed):
        return f"{error.what} {error.output}".strip().rstrip(".")
    return f"{'SyntaxError: ' if isinstance(error, SyntaxError) else ''}{error}".rstrip(".")

"""Where Triton kernels stand on a machine without a GPU: interpreted in a Python process, checked, never timed.

Trusted. The judge's side is that of any kernel on the CPU: it owns the arena, fills, poisons, checks guard bands and
inputs.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack

from team.errors import UserError
from team.judge.arena import Arena, Layout, Lease
from team.judge.artifact import Artifact
from team.judge.bench import IDLE_SET, Bench, Stand
from team.judge.failures import RunnerRaised, Side
from team.judge.runner.process import RunnerProcess
from team.judge.triton import host
from team.judge.triton.shop import described
from team.tasks.task import Task

START_S = 120.0  # seconds to import torch and Triton, and for the candidate to load
ADDRESS_SPACE = 64 << 30  # bytes beyond the arena
_SCRIPT = host.HERE / "interpreting.py"


class InterpretedRunner(RunnerProcess):
    """A Python process with one kernel, stopped except while it is asked something."""

    def __init__(self, arena: Arena, room: Path) -> None:
        self._adopt(
            subprocess.Popen(
                [sys.executable, "-s", str(_SCRIPT), str(arena.descriptor), str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd=room,
                env=host.environment(room, interpret=True),
                pass_fds=(arena.descriptor,),
                start_new_session=True,
            )
        )

    def await_ready(self) -> None:
        """Wait until Triton is imported."""
        self._told(self._receive(START_S))

    def tell(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """One untimed exchange; raises ``RunnerRaised`` with the candidate's exception."""
        return self._told(self.ask(body, START_S))

    def _told(self, answer: dict[str, Any]) -> dict[str, Any]:
        if "error" in answer:
            raise RunnerRaised(str(answer["error"])[:2000])
        return answer


@dataclass
class InterpretedStand(Stand):
    """One side whose launches are calls of ``run_kernel``."""

    room: Path = field(kw_only=True)

    @property
    def process(self) -> InterpretedRunner:
        """The runner, as what it is."""
        assert isinstance(self.runner, InterpretedRunner)
        return self.runner

    def load(self, seal: Artifact) -> str:
        """Seal the process and load the kernel; the sandbox's active layers."""
        body = {
            "op": "load",
            "source": str(self.room / "sources" / self.task.spec.source),
            "seal": str(seal.path),
            "keep_uid": host.must_keep_uid(),
            "readable": [*host.readable_paths(), str(self.room)],
            "address_space": self.arena.size + ADDRESS_SPACE,
        }
        self.guarded(self.process.await_ready)
        return str(self.guarded(lambda: self.process.tell(body)).get("layers", ""))

    def stage(self, number: int, layout: Layout, launches: int) -> Lease:
        """Tell the runner where each call's tensors lie."""
        told = described(self.task, layout.workload)
        offsets = {place.buffer.name: place.offset for place in layout.places}
        body = {
            "op": "stage",
            "set": number,
            "launches": launches,
            "start": layout.start,
            "stride": layout.stride,
            "tensors": [{**one, "offset": offsets[one["name"]]} for one in told["tensors"]] if launches else [],
            "values": told["values"],
            "outputs": told["outputs"],
        }
        self.guarded(lambda: self.process.tell(body))
        return Lease(self.arena, layout)


class InterpretingBench(Bench):
    """A CPU's bench that also interprets Triton kernels."""

    def takes_any_shape(self, task: Task) -> bool:
        """An interpreted kernel is called anew for every launch."""
        return True

    @contextmanager
    def stand(self, side: Side, task: Task, kernel: Artifact, arena: int) -> Iterator[Stand]:
        """See ``Bench.stand``."""
        if task.spec.contract != "triton":
            with super().stand(side, task, kernel, arena) as stand:
                yield stand
            return
        bundle = msgpack.unpackb(kernel.verified_bytes())
        lent, seal = self._arenas[arena], host.seal(self._builder)
        with tempfile.TemporaryDirectory(prefix="kernelteam-interpret-") as folder:
            room = Path(folder)
            host.write_sources(room, bundle["files"])
            with InterpretedRunner(lent, room) as runner:
                stand = InterpretedStand(side, runner, lent, task, room=room)
                self.layers = stand.load(seal)
                stand.stage(IDLE_SET, Layout(task.workloads[0], 0, 0, 0, ()), 0)
                yield stand


def refuse_timing(task: Task, device: str) -> None:
    """Raise the user's sentence when the speed of a Triton kernel is asked for where it is only interpreted."""
    if task.spec.contract == "triton" and not device.startswith("GPU-"):
        raise UserError(
            f"Speed of Triton kernels needs a GPU, and {device} interprets task {task.spec.name}.",
            "Measure it where there is one; whether the kernel is right can be seen here: kernelteam eval TASK",
        )

"""One CUDA runner as the judge sees it. Trusted; the process behind it is not.

It starts before anybody knows which kernel it will hold: making a CUDA context takes a few tenths of a second, so
spares are started ahead and wait. Only trusted code runs in it until ``load``.
"""

import os
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from team.devices.cuda import CudaDevice
from team.judge.arena import Arena
from team.judge.artifact import Artifact
from team.judge.failures import RunnerFaulted, RunnerLied
from team.judge.runner.process import START_S, RunnerProcess, Sample, libraries_of
from team.judge.timeline import TIMELINE

Regime = Literal["graph", "gated", "plain"]
REGIMES: tuple[Regime, ...] = ("graph", "gated", "plain")


@dataclass(frozen=True)
class Staged:
    """How a set of launches will be timed, why not in a graph, and how many nodes its graph has.

    ``overlaps`` counts nodes that do not wait for the launch before theirs.
    """

    regime: Regime
    why: str
    nodes: int
    overlaps: int = 0


class CudaRunner(RunnerProcess):
    """A process with a CUDA context on one GPU; kernels are loaded into it once, mostly one."""

    def __init__(self, program: Artifact, device: CudaDevice, keep_uid: bool, folder: Path) -> None:
        self._adopt(_start(program, device, keep_uid, folder))
        self._greeting: dict[str, Any] | None = None
        self._opened: Arena | None = None

    def await_ready(self) -> None:
        """Wait until the context exists; raises ``RunnerFaulted`` when there is none to be had."""
        if self._greeting is None:
            self._greeting = self._receive(START_S)
            began, made = (int(self._greeting.get(name, 0)) for name in ("began", "made"))
            TIMELINE.add("context", f"runner {self.pid}", began, made)
        self._told(self._greeting)

    def open(self, arena: Arena) -> None:
        """Open the judge's buffers, instead of those opened before; raises ``RunnerFaulted``."""
        self.await_ready()
        if self._opened is not arena:
            self._told(self.ask({"op": "open", "handle": arena.handle, "size": arena.size}, START_S))
            self._opened = arena

    def hold(self, shim: Artifact, kernels: Sequence[Artifact]) -> str:
        """Load the loop and the kernels, all verified against their manifests; the sandbox's active layers."""
        blobs = [kernel.verified_bytes() for kernel in kernels]
        linked = [library.verified_bytes() for library in libraries_of(kernels)]
        body = {
            "op": "load",
            "shim": shim.verified_bytes(),
            "libraries": b"".join(linked),
            "library_sizes": _lengths(linked),
            "kernels": b"".join(blobs),
            "sizes": _lengths(blobs),
        }
        answer = self.ask(body, START_S)
        if "error" in answer:
            raise RunnerLied(str(answer["error"])[:400])
        return str(answer.get("layers", ""))

    def stage(self, body: Mapping[str, Any], deadline_s: float) -> Staged:
        """Prepare a set of launches; raises ``RunnerFaulted`` with the CUDA error's name."""
        answer = self._told(self.ask(body, deadline_s))
        regime, nodes, overlaps = answer.get("regime"), answer.get("nodes"), answer.get("overlaps", 0)
        if type(regime) is not int or not 0 <= regime < len(REGIMES):
            raise RunnerLied("did not say how its launches are prepared")
        if type(nodes) is not int or type(overlaps) is not int:
            raise RunnerLied("did not say what its graph holds")
        return Staged(REGIMES[regime], str(answer.get("why", ""))[:300], nodes, overlaps)

    def replay(self, launch_set: int, replays: int, deadline_s: float) -> Sample:
        """Launch a staged set ``replays`` times between two events."""
        return self._timed({"op": "go", "set": launch_set, "replays": replays}, deadline_s)

    def walk(self, launch_set: int, deadline_s: float) -> Sample:
        """Launch a staged set from the host, one launch after the other; claimed by the host's clock."""
        return self._timed({"op": "walk", "set": launch_set}, deadline_s)

    def _told(self, answer: dict[str, Any]) -> dict[str, Any]:
        if "error" in answer:
            raise RunnerFaulted(str(answer["error"])[:200])
        return answer


def _lengths(blobs: Sequence[bytes]) -> bytes:
    return struct.pack(f"<{len(blobs)}Q", *map(len, blobs))


def _start(program: Artifact, device: CudaDevice, keep_uid: bool, folder: Path) -> subprocess.Popen[bytes]:
    """Start a runner with a clean environment that shows it one GPU, in a session of its own."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C",
        "CUDA_VISIBLE_DEVICES": device.id,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_MODULE_LOADING": "EAGER",
        "CUDA_CACHE_DISABLE": "1",
    }
    if "LD_LIBRARY_PATH" in os.environ:
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]  # some hosts keep the driver there
    return subprocess.Popen(
        [str(program.path), str(os.getpid()), str(int(keep_uid)), *device.nodes],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )

"""What one evaluation has gathered so far, so that a failure at any point still says all that is known. Trusted."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from protocol.messages import DeviceInfo, Measurement, Outcome, Restart, WorkloadCheck
from team.judge.kernels import Kernel
from team.judge.pairs import Tally
from team.judge.simplicity import compared
from team.judge.timeline import TIMELINE


@dataclass
class Evidence:
    """Becomes one ``Measurement``."""

    device: DeviceInfo
    base: Kernel | None = None
    candidate: Kernel | None = None
    checks: tuple[WorkloadCheck, ...] = ()
    restarts: list[Restart] = field(default_factory=list)
    held_out: tuple[Restart, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    discarded: int = 0
    launching: dict[str, str] = field(default_factory=dict)
    regimes: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)

    @property
    def pairs(self) -> int:
        """Pairs so far, per workload."""
        return sum(len(next(iter(restart.pairs.values()))) for restart in self.restarts)

    @contextmanager
    def charged(self, part: str) -> Iterator[None]:
        """Charge the wall time of a block to ``part`` (seconds)."""
        started = time.perf_counter()
        try:
            with TIMELINE.stage(part):
                yield
        finally:
            self.seconds[part] = self.seconds.get(part, 0.0) + time.perf_counter() - started

    def note(self, tally: Tally) -> None:
        """Take over a contest's running totals."""
        self.discarded = tally.discarded
        self.launching, self.regimes = dict(tally.launching), dict(tally.regimes)
        self.seconds["kernel"] = tally.kernel_ns * 1e-9

    def measurement(self, outcome: Outcome, detail: str = "", workload: str = "") -> Measurement:
        """Everything gathered, with its outcome."""
        return Measurement(
            outcome=outcome,
            detail=detail,
            workload=workload,
            restarts=tuple(self.restarts),
            held_out=self.held_out,
            checks=self.checks,
            base_build=None if self.base is None else self.base.artifact.build,
            candidate_build=None if self.candidate is None else self.candidate.artifact.build,
            device=self.device,
            discarded=self.discarded,
            launching=self.launching,
            regimes=self.regimes,
            seconds=dict(self.seconds),
            simplicity=self._simplicity(),
        )

    def _simplicity(self) -> dict[str, tuple[int, int]]:
        if self.base is None or self.candidate is None:
            return {}
        return compared(self.base.files, self.candidate.files)

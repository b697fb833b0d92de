"""Correctness before any timing: several inputs and value profiles on every workload, against a float64 reference.

Trusted; the runner is not. The base defines the domain: a profile that the base itself fails, or on which the
reference is not finite in single precision, is not held against a candidate. The plain profile must pass on both sides.
"""

import dataclasses
from dataclasses import dataclass, field

import torch

from protocol.messages import WorkloadCheck
from protocol.policy import Policy
from team.judge.arena import Layout
from team.judge.bench import Bench, Stand
from team.judge.build import Artifact
from team.judge.failures import Failed, Side
from team.judge.inputs import InputSource, Profile, shaped
from team.tasks.spec import Workload
from team.tasks.task import Task, Tensors

PLAIN_LAUNCHES = 2
PROFILES: tuple[Profile, ...] = ("large", "tiny", "zeros", "constant")
ROUNDING = 8.0  # errors of the reference's own single precision that a kernel may make on a bent profile
GRACE_S = 2.0  # seconds beyond the timeout's multiple, for a machine that pauses
BASE_LIMIT_S = 120.0  # seconds for one exchange of the base, whose speed nobody knows yet


@dataclass
class Record:
    """What the check of one kernel found: per workload the checks, nanoseconds per launch, and profiles left out."""

    checks: dict[str, WorkloadCheck] = field(default_factory=dict)
    launch_ns: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, list[Profile]] = field(default_factory=dict)


@dataclass(frozen=True)
class Deadlines:
    """How long an exchange may take, from the base's speed when it is known."""

    policy: Policy
    base: Record | None

    def of(self, workload: Workload, launches: int) -> float:
        """Seconds for ``launches`` launches."""
        if self.base is None:
            return BASE_LIMIT_S
        return GRACE_S + self.policy.timeout_factor * self.base.launch_ns[workload.name] * launches * 1e-9


class Checker:
    """Checks one kernel at a time on a bench."""

    def __init__(self, bench: Bench, task: Task, source: InputSource, policy: Policy) -> None:
        self._bench = bench
        self._task = task
        self._source = source
        self._policy = policy

    def check(self, side: Side, kernel: Artifact, base: Record | None, profiles: bool = True) -> Record:
        """Check ``kernel`` on every workload; raises ``Failed``. ``base`` is None when this is the base itself."""
        layouts = [
            self._bench.arrange(self._task, workload, PLAIN_LAUNCHES, self._source.dice)
            for workload in self._task.workloads
        ]
        self._bench.provide(max(layout.end for layout in layouts))
        bent = PROFILES if profiles else ()
        cases: list[tuple[Layout, Profile]] = [(layout, profile) for layout in layouts for profile in ("normal", *bent)]
        record = Record()
        while cases:
            with self._bench.stand(side, self._task, kernel, 0) as stand:
                while cases and self._case(stand, *cases.pop(0), record, base):
                    pass
        return record

    def _case(self, stand: Stand, layout: Layout, profile: Profile, record: Record, base: Record | None) -> bool:
        """Check one workload under one profile; False when the runner must be replaced before the next."""
        name = stand.workload = layout.workload.name
        deadlines = Deadlines(self._policy, base)
        if profile == "normal":
            self._plain(stand, layout, record, deadlines)
            return True
        if base is not None and profile in base.skipped[name]:
            return True
        try:
            passed = self._bent(stand, layout, profile, record, deadlines)
        except Failed:
            if base is not None:
                raise
            record.skipped[name].append(profile)
            return False
        if not passed:
            record.skipped[name].append(profile)
        return True

    def _plain(self, stand: Stand, layout: Layout, record: Record, deadlines: Deadlines) -> None:
        """The profile that must pass; also the first idea of the kernel's speed."""
        workload = layout.workload
        inputs = self._source.timed(workload, layout.launches)
        wants = [self._reference(workload, inputs, launch) for launch in range(layout.launches)]
        worst, claimed = self._launch(stand, layout, inputs, wants, None, deadlines)
        record.launch_ns[workload.name] = claimed / layout.launches
        record.checks[workload.name] = WorkloadCheck(workload=workload.name, checks=layout.launches, worst=worst)
        record.skipped[workload.name] = []

    def _bent(self, stand: Stand, layout: Layout, profile: Profile, record: Record, deadlines: Deadlines) -> bool:
        """Check one launch under a bent profile; False when the profile does not apply to this workload."""
        workload = layout.workload
        bent = self._source.profiled(workload, profile)
        ease = None if bent is None else self._ease(workload, bent)
        if bent is None or ease is None:
            return False
        wants = [self._reference(workload, bent, 0)]
        worst, _ = self._launch(stand, dataclasses.replace(layout, launches=1), bent, wants, ease, deadlines)
        before = record.checks[workload.name]
        record.checks[workload.name] = before.model_copy(
            update={"checks": before.checks + 1, "worst": max(before.worst, worst)}
        )
        return True

    def _launch(
        self,
        stand: Stand,
        layout: Layout,
        inputs: Tensors,
        wants: list[Tensors],
        ease: dict[str, float] | None,
        deadlines: Deadlines,
    ) -> tuple[float, float]:
        """Stage, fill, launch, inspect: the worst error and the claimed nanoseconds."""
        lease = stand.stage(1, layout, layout.launches)
        lease.fill(inputs)
        lease.poison(self._source.generator)
        sample = stand.go(1, deadlines.of(layout.workload, layout.launches))
        return stand.inspect(lease, inputs, wants, ease), float(max(sample.claimed_ns, 1))

    def _reference(self, workload: Workload, inputs: Tensors, launch: int) -> Tensors:
        return self._task.reference(workload, shaped(self._task, workload, inputs, launch), double=True)

    def _ease(self, workload: Workload, bent: Tensors) -> dict[str, float] | None:
        """Extra absolute tolerance by output on a bent profile; None when single precision cannot express it.

        The absolute tolerance grows with the output's scale, and the reference's own rounding error is allowed for.
        """
        plain = self._reference(workload, self._source.timed(workload, 1), 0)
        inputs = shaped(self._task, workload, bent, 0)
        exact = self._task.reference(workload, inputs, double=True)
        single = self._task.reference(workload, inputs)
        ease: dict[str, float] = {}
        for buffer in self._task.outputs:
            if not buffer.dtype.is_floating_point:
                continue
            want, rough, usual = exact[buffer.name], single[buffer.name].double(), plain[buffer.name]
            if not torch.equal(want.to(buffer.dtype).isfinite(), rough.to(buffer.dtype).isfinite()):
                return None
            finite = want.isfinite()
            error = float(torch.where(finite, (want - rough).abs(), 0.0).max())
            growth = _scale(want) / max(_scale(usual), 1e-300)
            ease[buffer.name] = ROUNDING * error + self._task.spec.tolerance_of(buffer.name).atol * max(
                growth - 1.0, 0.0
            )
        return ease


def _scale(values: torch.Tensor) -> float:
    """Root mean square of the finite values."""
    finite = values[values.isfinite()].double()
    return float(finite.square().mean().sqrt()) if finite.numel() else 0.0

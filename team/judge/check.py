"""Correctness before any timing: several inputs and value profiles on every workload, against a float64 reference.

Trusted; the runner is not. The base defines the domain: a profile that the base itself fails, or on which the
reference is not finite in single precision, is not held against a candidate. The plain profile must pass on both sides.
"""

import dataclasses
from dataclasses import dataclass, field

import torch

from protocol.messages import WorkloadCheck
from protocol.policy import Policy
from team.errors import UserError
from team.judge.arena import Layout
from team.judge.artifact import Artifact
from team.judge.bench import Bench, Errors, Stand
from team.judge.failures import Failed, Side
from team.judge.inputs import InputSource, Profile, shaped
from team.judge.timeline import TIMELINE
from team.judge.unlisted import smallest, unlisted_workloads
from team.tasks.spec import Workload
from team.tasks.task import Task, Tensors

PLAIN_LAUNCHES = 2
PROFILES: tuple[Profile, ...] = ("large", "tiny", "zeros", "constant")
ADVERSARIAL: tuple[Profile, ...] = ("lowered", "spiked")  # for reductions; on the smallest workload alone
ROUNDING = 8.0  # errors of the reference's own single precision that a kernel may make on a bent profile
GRACE_S = 2.0  # seconds beyond the timeout's multiple, for a machine that pauses
BASE_LIMIT_S = 120.0  # seconds for one exchange of the base, whose speed nobody knows yet


@dataclass
class Record:
    """What the check of one kernel found: per workload the checks, nanoseconds per launch, and profiles left out.

    ``unlisted`` are the shapes beyond the task's list that a base was right on; its candidates must be, too.
    """

    unlisted: tuple[Workload, ...] = ()
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
        known = self.base.launch_ns.get(workload.name) or 2.0 * max(self.base.launch_ns.values())  # an unlisted shape
        return GRACE_S + self.policy.timeout_factor * known * launches * 1e-9


class Checker:
    """Checks one kernel at a time on a bench."""

    def __init__(self, bench: Bench, task: Task, source: InputSource, policy: Policy) -> None:
        self._bench = bench
        self._task = task
        self._source = source
        self._policy = policy
        self._usual: dict[str, dict[str, float]] = {}  # scale of every output on plain inputs, by workload

    def check(self, side: Side, kernel: Artifact, base: Record | None, profiles: bool = True) -> Record:
        """Check ``kernel`` on every workload; raises ``Failed``. ``base`` is None when this is the base itself."""
        record = Record()
        if profiles and self._bench.takes_any_shape(self._task):
            record.unlisted = unlisted_workloads(self._task, self._source.dice) if base is None else base.unlisted
        cases = self._cases(record.unlisted, profiles)
        self._bench.provide(max(layout.end for layout, _ in cases))
        while cases:
            with self._bench.stand(side, self._task, kernel, 0) as stand:
                while cases and self._timed_case(stand, *cases.pop(0), record, base):
                    pass
        return record

    def _cases(self, unlisted: tuple[Workload, ...], profiles: bool) -> list[tuple[Layout, Profile]]:
        """Every workload under every profile that it is checked with, and the unlisted shapes under the plain one."""
        least = smallest(self._task)
        cases: list[tuple[Layout, Profile]] = []
        for workload in (*self._task.all_workloads, *unlisted):
            layout = self._bench.arrange(self._task, workload, PLAIN_LAUNCHES, self._source.dice)
            cases.append((layout, "normal"))
            if profiles and workload in self._task.workloads:
                bent: tuple[Profile, ...] = (*PROFILES, *ADVERSARIAL) if workload.name == least.name else PROFILES
                cases.extend((layout, profile) for profile in bent)
        return cases

    def _timed_case(self, stand: Stand, layout: Layout, profile: Profile, record: Record, base: Record | None) -> bool:
        with TIMELINE.stage(f"case {layout.workload.name} {profile}"):
            return self._case(stand, layout, profile, record, base)

    def _case(self, stand: Stand, layout: Layout, profile: Profile, record: Record, base: Record | None) -> bool:
        """Check one workload under one profile; False when the runner must be replaced before the next."""
        name = stand.workload = layout.workload.name
        deadlines = Deadlines(self._policy, base)
        if layout.workload in record.unlisted:
            return self._beyond(stand, layout, record, base)
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

    def _beyond(self, stand: Stand, layout: Layout, record: Record, base: Record | None) -> bool:
        """Check an unlisted shape; a base that fails there is simply not made for it."""
        workload, deadlines = layout.workload, Deadlines(self._policy, base or record)
        try:
            inputs = self._source.timed(workload, layout.launches)
            wants = [self._reference(workload, inputs, launch) for launch in range(layout.launches)]
            errors, _ = self._launch(stand, layout, inputs, wants, None, deadlines)
        except (Failed, UserError):  # the latter: the task's own functions have limits that nobody wrote down
            if base is not None:
                raise
            record.unlisted = tuple(one for one in record.unlisted if one != workload)
            return False
        self._count(record, smallest(self._task).name, layout.launches, errors)
        return True

    def _count(self, record: Record, name: str, checks: int, errors: Errors) -> None:
        """Add checked outputs to those of a workload."""
        before = record.checks.get(name, WorkloadCheck(workload=name, checks=0, worst=0.0))
        worst = {output: max(error, before.outputs.get(output, 0.0)) for output, error in errors.items()}
        found = {"checks": before.checks + checks, "worst": max(worst.values(), default=0.0), "outputs": worst}
        record.checks[name] = before.model_copy(update=found)

    def _plain(self, stand: Stand, layout: Layout, record: Record, deadlines: Deadlines) -> None:
        """The profile that must pass; also the first idea of the kernel's speed."""
        workload = layout.workload
        inputs = self._source.timed(workload, layout.launches)
        wants = [self._reference(workload, inputs, launch) for launch in range(layout.launches)]
        self._usual[workload.name] = {
            buffer.name: _scale(wants[0][buffer.name])
            for buffer in self._task.outputs
            if buffer.dtype.is_floating_point
        }
        errors, claimed = self._launch(stand, layout, inputs, wants, None, deadlines)
        record.launch_ns[workload.name] = claimed / layout.launches
        self._count(record, workload.name, layout.launches, errors)
        record.skipped[workload.name] = []

    def _bent(self, stand: Stand, layout: Layout, profile: Profile, record: Record, deadlines: Deadlines) -> bool:
        """Check one launch under a bent profile; False when the profile does not apply to this workload."""
        workload = layout.workload
        bent = self._source.profiled(workload, profile)
        if bent is None:
            return False
        exact = self._reference(workload, bent, 0)
        ease = self._ease(workload, bent, exact)
        if ease is None:
            return False
        errors, _ = self._launch(stand, dataclasses.replace(layout, launches=1), bent, [exact], ease, deadlines)
        self._count(record, workload.name, 1, errors)
        return True

    def _launch(
        self,
        stand: Stand,
        layout: Layout,
        inputs: Tensors,
        wants: list[Tensors],
        ease: dict[str, float] | None,
        deadlines: Deadlines,
    ) -> tuple[Errors, float]:
        """Stage, fill, launch, inspect: the errors by output and the claimed nanoseconds."""
        lease = stand.stage(1, layout, layout.launches)
        lease.fill(inputs)
        lease.poison(self._source.generator)
        sample = stand.go(1, deadlines.of(layout.workload, layout.launches))
        return stand.inspect(lease, inputs, wants, ease), float(max(sample.claimed_ns, 1))

    def _reference(self, workload: Workload, inputs: Tensors, launch: int) -> Tensors:
        return self._task.reference(workload, shaped(self._task, workload, inputs, launch), double=True)

    def _ease(self, workload: Workload, bent: Tensors, exact: Tensors) -> dict[str, float] | None:
        """Extra absolute tolerance by output on a bent profile; None when single precision cannot express it.

        The absolute tolerance grows with the output's scale, and the reference's own rounding error is allowed for.
        """
        single = self._task.reference(workload, shaped(self._task, workload, bent, 0))
        ease: dict[str, float] = {}
        for buffer in self._task.outputs:
            if not buffer.dtype.is_floating_point:
                continue
            want, rough, usual = (
                exact[buffer.name],
                single[buffer.name].double(),
                self._usual[workload.name][buffer.name],
            )
            if not torch.equal(want.to(buffer.dtype).isfinite(), rough.to(buffer.dtype).isfinite()):
                return None
            finite = want.isfinite()
            error = float(torch.where(finite, (want - rough).abs(), 0.0).max())
            growth = _scale(want) / max(usual, 1e-300)
            ease[buffer.name] = ROUNDING * error + self._task.spec.tolerance_of(buffer.name).atol * max(
                growth - 1.0, 0.0
            )
        return ease


def _scale(values: torch.Tensor) -> float:
    """Root mean square of the finite values."""
    finite = values[values.isfinite()].double()
    return float(finite.square().mean().sqrt()) if finite.numel() else 0.0

"""The judge: what is asked of it, answered with raw measurements. It decides nothing; the verdict is the coordinator's.

Trusted. One judge lives in one warm process (``team.judge.server``), owns one device, and does one thing at a time.
A candidate's failure is an outcome; a base's failure is ``BaselineBroken``; a task's fault is a ``UserError``.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, log
from pathlib import Path
from typing import Any

from protocol.messages import Decision, Measurement, Noise, Outcome
from protocol.methods import Sanitized
from protocol.policy import Policy
from protocol.problem import Problem
from protocol.race import still_racing
from protocol.sequential import calibrate, decide
from team.devices.cpu import CpuDevice
from team.devices.cuda import CudaDevice
from team.judge.alarm import refuse_unbelievable
from team.judge.bench import quiet_torch
from team.judge.check import Checker, Record
from team.judge.cuda.sanitize import findings_beyond
from team.judge.evidence import Evidence
from team.judge.failures import BaselineBroken, Failed, unnamed
from team.judge.ground import TimingLoop, ground_of
from team.judge.identity import Twins
from team.judge.kernels import Kernel, KernelShop
from team.judge.laps import Sifted
from team.judge.pairs import HEADROOM
from team.judge.request import Calibrate, Check, Compare, Describe, Identity, Sanitize, Screen
from team.judge.sift import GROUP, Sift
from team.judge.timeline import TIMELINE
from team.judge.triton.bench import refuse_timing
from team.tasks.describe import describe
from team.tasks.spec import Workload
from team.tasks.task import Task

PLANTED_LAUNCHES = 50  # launches per sample of the planted check where memory allows: one launch more is a known 2 %
LOOKS_AHEAD = 3  # looks whose restarts find their runners ready; few requests go on beyond
HELD_OUT_LOOKS = 2  # looks whose pairs are measured on held-out shapes
PLANTED_LIMIT_S = 60.0  # seconds after which the planted check gives up, for kernels of many milliseconds


@dataclass
class Entrant:
    """One variant in a race: what was seen of it so far, and its last word."""

    evidence: Evidence
    base: Path
    tree: Path
    launches: dict[str, int] | None = None
    measured: Measurement = field(init=False)


class Judge:
    """Answers requests for one device; keeps builds, arenas and the base's check between them.

    ``still_wanted`` is called between restarts and raises when nobody waits for the answer any more.
    """

    def __init__(
        self,
        device: CpuDevice | CudaDevice,
        scratch: Path,
        still_wanted: Callable[[], None] = lambda: None,
        policy: Policy | None = None,
    ) -> None:
        quiet_torch()
        device.pin()
        self._device = device
        self._shop = KernelShop(device, scratch, policy)
        self._ground = ground_of(device, self._shop, scratch / "empty")
        self._records: dict[tuple[str, str], Record] = {}
        self._still_wanted = still_wanted

    def close(self) -> None:
        """Give the arenas back and end what waits."""
        self._ground.bench.close()
        self._shop.close()

    def rest(self) -> None:
        """Make ready for the next request, while whoever asks is thinking."""
        self._ground.bench.rest()

    def compare(self, request: Compare) -> Measurement:
        """Build, check and time the candidate against the base until the sequential test decides."""
        task = self._timed(request.task)
        evidence = Evidence(self._device.info())

        def measure() -> None:
            base, candidate = self._built(task, evidence, Path(request.base), Path(request.candidate))
            contest = self._admitted(task, evidence, base, candidate, profiles=True)
            with evidence.charged("measure"):
                self._until_decided(contest, evidence, request.noise)
            if request.held_out and (apart := self._shop.held_out(task)) is not None:
                with evidence.charged("held out"), unnamed():
                    self._hold_out(apart, evidence, Path(request.base), Path(request.candidate))

        return _concluded(evidence, measure)

    def screen(self, request: Screen) -> list[Measurement]:
        """A race: a restart of a few pairs per candidate and round, until one is left or the rounds are over.

        More variants than a plan of texts may have are settings, and are sifted instead. Either is enough to pick a
        champion, never to keep one.
        """
        task = self._timed(request.task)
        trees = [Path(tree) for tree in request.candidates]
        if len(trees) > task.spec.policy.variants:
            return self._sifted(task, Path(request.base), trees)
        self._shop.build_ahead(task, [Path(request.base), *trees])
        entrants = [Entrant(Evidence(self._device.info()), Path(request.base), tree) for tree in trees]
        running = {number: one for number, one in enumerate(entrants) if self._goes_on(task, one)}
        for _ in range(task.spec.policy.race_rounds - 1):
            samples = {number: one.evidence.restarts for number, one in running.items()}
            left = still_racing(samples, _weights(task), request.noise, task.spec.policy)
            if len(left) < 2:
                break
            running = {number: running[number] for number in sorted(left) if self._goes_on(task, running[number])}
        return [one.measured for one in entrants]

    def _sifted(self, task: Task, base: Path, trees: Sequence[Path]) -> list[Measurement]:
        """Build all, then check and time them in few processes; see ``team.judge.sift``."""
        self._ground.bench.prepare(2 + ceil(len(trees) / GROUP))
        with TIMELINE.stage("build"):
            self._shop.build_ahead(task, [base, *trees])
        device, sifted = self._device.info(), dict[int, Sifted]()
        measured: dict[int, Measurement] = {}
        try:
            kernel = self._shop.kernel(task, base, "base")
            self._ground.bench.hush()
            record = self._base_record(task, kernel)
        except Failed as failed:
            raise BaselineBroken.of(failed) from failed
        for number, tree in enumerate(trees):
            evidence = Evidence(device, base=kernel)
            try:
                evidence.candidate = self._shop.kernel(task, tree, "candidate")
                sifted[number] = Sifted(evidence.candidate, evidence)
            except Failed as failed:
                measured[number] = evidence.measurement(failed.outcome, failed.sentence)
        Sift(self._ground, task, kernel, record, self._still_wanted).sift(list(sifted.values()))
        return [measured[number] if number in measured else sifted[number].measured for number in range(len(trees))]

    def calibrate(self, request: Calibrate) -> tuple[Noise, Measurement, dict[str, Any]]:
        """A/A with many restarts, then A/A plus known extra work; the noise, the A/A samples, and what both found."""
        task, tree = self._timed(request.task), Path(request.base)
        evidence, policy = Evidence(self._device.info()), task.spec.policy
        try:
            base, twin = self._built(task, evidence, tree, tree)
            contest = self._admitted(task, evidence, base, twin, profiles=True)
            with evidence.charged("measure"):
                for _ in range(policy.calibration_restarts):
                    self._restart(contest, evidence, policy.pairs_per_restart)
            noise = calibrate(evidence.restarts, _weights(task), policy)
            same = decide(evidence.restarts, _weights(task), noise, policy)
            with evidence.charged("planted"):
                planted, name, gain = self._planted(task, base)
            if (apart := self._shop.held_out(task)) is not None:  # what the base fails nobody can be held to
                self._base_record(apart, self._shop.kernel(apart, tree, "base"))
        except Failed as failed:
            raise BaselineBroken.of(failed) from failed
        findings = {
            "aa": same.model_dump(mode="json"),
            "clean": same.state != "keep",
            "planted": planted.model_dump(mode="json"),
            "planted_gain": gain,
            "planted_workload": name,
            "found": planted.state == "keep",
            "skipped_profiles": self._base_record(task, base).skipped,
            "sandbox": self._ground.bench.layers,
        }
        return noise, evidence.measurement(Outcome.MEASURED), findings

    def check(self, request: Check) -> Measurement:
        """Build and check one tree as it stands; its failure is an outcome, not an error."""
        task = self._shop.task(Path(request.task))
        evidence = Evidence(self._device.info())

        def measure() -> None:
            evidence.candidate = kernel = self._shop.kernel(task, Path(request.tree), "candidate")
            with evidence.charged("check"):
                record = self._checker(task).check("candidate", kernel.artifact, None)
            self._records[self._shop.digest(task), kernel.artifact.build.artifact] = record  # should it be a base soon
            evidence.checks = tuple(record.checks.values())

        return _concluded(evidence, measure)

    def identical(self, request: Identity) -> Measurement:
        """Launch both sides on the same fresh inputs and compare their outputs bit by bit."""
        task = self._shop.task(Path(request.task))
        evidence = Evidence(self._device.info())

        def measure() -> None:
            base, candidate = self._built(task, evidence, Path(request.base), Path(request.candidate))
            record = self._base_record(task, base)
            self._ground.bench.hush()
            with evidence.charged("check"):
                twins = Twins(self._ground.bench, task, self._ground.inputs(task), record)
                twins.refuse_difference(base.artifact, candidate.artifact, request.draws)

        return _concluded(evidence, measure)

    def sanitize(self, request: Sanitize) -> tuple[Sanitized, ...]:
        """What compute-sanitizer finds in a correct candidate and not in its base; on a CPU there is nobody to ask."""
        if not isinstance(self._device, CudaDevice):
            return ()
        task, builders = self._shop.task(Path(request.task)), (self._shop.host, self._shop.native)
        self._ground.bench.hush()
        trees = Path(request.candidate), Path(request.base)
        kernels = [self._shop.kernel(task, tree, "base").artifact for tree in trees]
        return findings_beyond(task, (kernels[0], kernels[1]), self._device, builders, request.tools)

    def _timed(self, folder: str) -> Task:
        """The task, which must be one whose speed can be measured on this device."""
        task = self._shop.task(Path(folder))
        refuse_timing(task, self._device.id)
        return task

    def describe(self, request: Describe) -> Problem:
        """The operator block of a task."""
        return describe(self._shop.task(Path(request.task)))

    def _goes_on(self, task: Task, entrant: Entrant) -> bool:
        """One more restart of a variant; False when it failed and is out."""
        evidence, policy = entrant.evidence, task.spec.policy

        def measure() -> None:
            base, candidate = self._built(task, evidence, entrant.base, entrant.tree)
            if entrant.launches is None:
                entrant.launches = self._checked(task, evidence, base, candidate, profiles=False)
            contest = self._contest(task, base, candidate, self._base_record(task, base), dict(entrant.launches))
            with evidence.charged("measure"):
                self._restart(contest, evidence, policy.screen_pairs)

        entrant.measured = _concluded(evidence, measure)
        return entrant.measured.outcome is Outcome.MEASURED

    def _built(self, task: Task, evidence: Evidence, base: Path, candidate: Path) -> tuple[Kernel, Kernel]:
        self._ground.bench.prepare(runners_ahead(task.spec.policy))
        with evidence.charged("build"):
            self._shop.build_ahead(task, [base, candidate])
            evidence.base = self._shop.kernel(task, base, "base")
            evidence.candidate = self._shop.kernel(task, candidate, "candidate")
        return evidence.base, evidence.candidate

    def _admitted(self, task: Task, evidence: Evidence, base: Kernel, candidate: Kernel, profiles: bool) -> TimingLoop:
        """Check both sides (the base once per artifact) and set up their contest."""
        launches = self._checked(task, evidence, base, candidate, profiles)
        return self._contest(task, base, candidate, self._base_record(task, base), launches)

    def _checked(
        self, task: Task, evidence: Evidence, base: Kernel, candidate: Kernel, profiles: bool
    ) -> dict[str, int]:
        """Check both sides; launches per sample to begin with, by workload."""
        self._ground.bench.hush()
        with evidence.charged("check"):
            record = self._base_record(task, base)
            found = record
            if candidate.artifact.build.artifact != base.artifact.build.artifact:
                found = self._checker(task).check("candidate", candidate.artifact, record, profiles)
            evidence.checks = tuple(found.checks.values())
        return self._ground.first_launches(task, record, found)

    def _contest(
        self, task: Task, base: Kernel, candidate: Kernel, record: Record, launches: dict[str, int]
    ) -> TimingLoop:
        return self._ground.loop(task, base.artifact, candidate.artifact, record, launches)

    def _base_record(self, task: Task, base: Kernel) -> Record:
        """The check of the base, done once per task and artifact."""
        key = (self._shop.digest(task), base.artifact.build.artifact)
        if key not in self._records:
            self._records[key] = self._checker(task).check("base", base.artifact, None)
        return self._records[key]

    def _checker(self, task: Task) -> Checker:
        return Checker(self._ground.bench, task, self._ground.inputs(task), task.spec.policy)

    def _restart(self, contest: TimingLoop, evidence: Evidence, pairs: int) -> None:
        """One restart into the evidence; raises TAMPERED when the candidate's clock cannot be believed."""
        self._still_wanted()
        restart = contest.restart(pairs)
        refuse_unbelievable(contest, self._still_wanted)
        evidence.note(contest.tally)
        evidence.restarts.append(restart)

    def _hold_out(self, apart: Task, evidence: Evidence, base: Path, candidate: Path) -> None:
        """Check both sides on the shapes that no mind is told of, and time them for as many pairs as two looks have."""
        seen, policy = Evidence(self._device.info()), apart.spec.policy
        contest = self._admitted(apart, seen, *self._built(apart, seen, base, candidate), profiles=False)
        while seen.pairs < policy.looks[:HELD_OUT_LOOKS][-1]:
            self._restart(contest, seen, policy.pairs_per_restart)
        evidence.checks, evidence.held_out = (*evidence.checks, *seen.checks), tuple(seen.restarts)

    def _until_decided(self, contest: TimingLoop, evidence: Evidence, noise: Noise | None) -> None:
        policy = contest.policy
        pending = list(policy.looks)
        while pending:
            self._restart(contest, evidence, policy.pairs_per_restart)
            if evidence.pairs < pending[0]:
                continue
            pending = [look for look in pending if look > evidence.pairs]
            if decide(evidence.restarts, _weights(contest.task), noise, policy).state != "continue":
                return

    def _planted(self, task: Task, base: Kernel) -> tuple[Decision, str, float]:
        """A/A on one workload while the base's side does a known extra: the decision, where, and the log gain.

        The workload with the most launches that fit into an arena and a steady sample, the cheapest of several; where
        few fit, one launch more is a larger share of them, and so is the gain.
        """
        policy, record = task.spec.policy, self._base_record(task, base)
        fitting = {one.name: self._planted_launches(task, base, one) for one in task.workloads}
        chosen = max(task.workloads, key=lambda one: (fitting[one.name], -record.launch_ns[one.name]))
        launches = fitting[chosen.name]
        extra = max(1, round(launches * policy.planted_gain))
        contest = self._contest(task, base, base, record, {chosen.name: launches})
        contest.workloads, contest.extra = (chosen,), extra
        evidence, weights = Evidence(self._device.info()), {chosen.name: 1.0}
        until = time.monotonic() + PLANTED_LIMIT_S
        decision: Decision | None = None
        while decision is None or (decision.state == "continue" and time.monotonic() < until):
            self._restart(contest, evidence, policy.pairs_per_restart)
            decision = decide(evidence.restarts, weights, None, policy)
        return decision, chosen.name, log(1.0 + extra / launches)

    def _planted_launches(self, task: Task, base: Kernel, workload: Workload) -> int:
        """Launches per sample, so that they, the extra one and the arena's headroom fit."""
        steady = self._ground.steady(self._base_record(task, base).launch_ns[workload.name])
        return max(1, min(PLANTED_LAUNCHES, steady, self._ground.room(task, workload) - HEADROOM - 1))


def runners_ahead(policy: Policy) -> int:
    """Runners of a check and of the restarts until the third look: two for each restart."""
    looks = policy.looks[:LOOKS_AHEAD]
    return 1 + 2 * ceil(looks[-1] / policy.pairs_per_restart)


def _weights(task: Task) -> dict[str, float]:
    return {workload.name: workload.weight for workload in task.workloads}


def _concluded(evidence: Evidence, measure: Callable[[], None]) -> Measurement:
    """Run one measurement to its outcome. The base's failure is not an outcome."""
    try:
        measure()
    except Failed as failed:
        if failed.side == "base":
            raise BaselineBroken.of(failed) from failed
        return evidence.measurement(failed.outcome, failed.sentence, failed.workload)
    return evidence.measurement(Outcome.MEASURED)

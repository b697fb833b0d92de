"""How an agent performs each duty: the mind thinks, the worktree commits, the judge measures, the report says it all.

One function per duty; each returns the ledger body that reports it. Nothing is decided here.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Protocol

from protocol import events as ev
from protocol.messages import (
    Baseline,
    Briefing,
    Decision,
    Experiment,
    Measurement,
    Noise,
    Outcome,
    Parameter,
    Plan,
    Profile,
    Proposal,
    Remeasure,
    Search,
    Variant,
    VerifyLanding,
)
from protocol.policy import Policy
from protocol.sequential import estimate
from roles.minds.mind import Mind, NothingToPropose
from team.coordination import MAX_REFUSALS
from team.devices.device import Device
from team.errors import UserError
from team.evidence.profile import profile
from team.judge.client import Judge
from team.judge.request import Calibrate, Compare, Screen
from team.supply import Supply
from team.workspace.hub import Hub
from team.workspace.objects import Refused
from team.workspace.worktree import Worktree

log = logging.getLogger(__name__)


class Lead(Protocol):
    """What an agent may ask of the coordinator while it performs a duty."""

    def briefing(self, base: str) -> Briefing:
        """What the mind is told."""
        ...

    def admit(self, experiment: str, plan: Plan, commits: list[str], dollars: float) -> str:
        """Empty when the plan may run."""
        ...

    def noise(self) -> Noise | None:
        """The calibrated noise of this agent's device."""
        ...


@dataclass
class Desk:
    """What an agent works with."""

    name: str
    device: Device
    mind: Mind
    hub: Hub
    supply: Supply
    worktree: Worktree
    judge: Judge
    trusted: Path
    snapshots: Path
    editable: tuple[str, ...]
    weights: dict[str, float]
    policy: Policy
    lead: Lead

    def snapshot(self, commit: str) -> str:
        """The task folder at a commit, as plain files."""
        self.supply.fetch(commit)
        return str(self.hub.export(commit, self.snapshots))

    def compare(self, base: str, candidate: str) -> Measurement:
        """Judge one commit against another on this device."""
        request = Compare(
            task=str(self.trusted),
            base=self.snapshot(base),
            candidate=self.snapshot(candidate),
            noise=self.lead.noise(),
        )
        return self.judge.compare(request)


def perform_baseline(desk: Desk, duty: Baseline) -> ev.BaselineMeasured | ev.BaselineRefused:
    """Build, check and calibrate the kernel as it stands."""
    try:
        request = Calibrate(task=str(desk.trusted), base=desk.snapshot(duty.commit))
        noise, measured, findings = desk.judge.calibrate(request)
    except UserError as broken:
        return ev.BaselineRefused(duty=duty.id, why=str(broken))
    return ev.BaselineMeasured(
        duty=duty.id,
        device=desk.device.id,
        noise=noise,
        baseline_ns=median_ns(measured),
        null_kept=not findings["clean"],
        planted_found=findings["found"],
        planted=Decision.model_validate(findings["planted"]).overall,
        measurement=measured,
    )


def perform_verification(desk: Desk, duty: VerifyLanding) -> ev.LandingMeasured:
    """Measure the merged tree against main."""
    measured = desk.compare(duty.main, duty.candidate)
    return ev.LandingMeasured(duty=duty.id, experiment=duty.experiment, device=desk.device.id, measurement=measured)


def perform_remeasure(desk: Desk, duty: Remeasure) -> ev.MainMeasured:
    """Measure main against the baseline directly."""
    measured = desk.compare(duty.base, duty.candidate)
    return ev.MainMeasured(
        duty=duty.id,
        base=duty.base,
        commit=duty.candidate,
        device=desk.device.id,
        estimate=None,
        product=0.0,
        agrees=False,
        measurement=measured,
    )


def perform_search(desk: Desk, duty: Search) -> ev.SearchReported:
    """Look for what the team has not tried."""
    return ev.SearchReported(report=desk.mind.research(_briefing(desk, desk.worktree.head()), duty.id))


def perform_profile(desk: Desk, duty: Profile) -> ev.ProfileReported:
    """Say where the kernel at one commit stands."""
    report = profile(desk.trusted, Path(desk.snapshot(duty.commit)), duty.commit)
    return ev.ProfileReported(duty=duty.id, report=report)


def perform_experiment(desk: Desk, duty: Experiment) -> ev.ExperimentReported | ev.NothingProposed:
    """One change: proposed, committed, admitted, raced over its variants, and the champion measured."""
    desk.supply.fetch(duty.base)
    desk.worktree.reset(duty.base)
    why = ""
    for _ in range(MAX_REFUSALS):
        briefing = _briefing(desk, duty.base)
        try:
            proposal = desk.mind.propose(briefing)
            commits = [_commit(desk, duty, proposal.plan, variant) for variant in proposal.variants]
        except (NothingToPropose, Refused) as refused:
            return ev.NothingProposed(experiment=duty.id, why=str(refused))
        why = desk.lead.admit(duty.id, proposal.plan, commits, proposal.dollars)
        if not why:
            return _run(desk, duty, briefing, proposal, commits)
        log.info("plan refused: %s", why)
    return ev.NothingProposed(experiment=duty.id, why=f"{MAX_REFUSALS} plans in a row were refused; the last: {why}")


def _run(
    desk: Desk, duty: Experiment, briefing: Briefing, proposal: Proposal, commits: list[str]
) -> ev.ExperimentReported:
    champion, screened, failed = _screen(desk, duty, proposal, commits)
    commit, parameters = commits[champion], proposal.variants[champion].parameters
    if failed is not None and failed.outcome is Outcome.BUILD_FAILED:
        mended = desk.mind.repair(briefing, proposal, failed.detail)
        if mended is not None:
            commit, failed = _commit(desk, duty, mended.plan, mended.variants[0]), None
    desk.worktree.reset(commit)
    measured = failed if failed is not None else desk.compare(duty.base, commit)
    return ev.ExperimentReported(
        experiment=duty.id,
        commit=commit,
        parameters=parameters,
        screened=screened,
        measurement=measured,
        lines=desk.hub.lines(duty.base, commit),
    )


Screened = tuple[tuple[dict[str, Parameter], float | None], ...]


def _screen(
    desk: Desk, duty: Experiment, proposal: Proposal, commits: list[str]
) -> tuple[int, Screened, Measurement | None]:
    """The most promising variant, what the race saw of each, and the failure when not one of them runs."""
    if len(commits) == 1:
        return 0, (), None
    trees = tuple(desk.snapshot(commit) for commit in commits)
    base = desk.snapshot(duty.base)
    raced = desk.judge.screen(Screen(task=str(desk.trusted), base=base, candidates=trees))
    gains = [_raced_gain(desk, measured) for measured in raced]
    screened = tuple((v.parameters, g) for v, g in zip(proposal.variants, gains, strict=True))
    running = [index for index, gain in enumerate(gains) if gain is not None]
    if not running:
        return 0, screened, raced[0]
    return max(running, key=lambda index: gains[index] or 0.0), screened, None


def _raced_gain(desk: Desk, measured: Measurement) -> float | None:
    """Log gain that the race saw, None when the variant did not run to its end."""
    if measured.outcome is not Outcome.MEASURED:
        return None
    weights, policy = desk.weights, desk.policy
    return estimate(measured.restarts, weights, None, policy, policy.total_error)[0].gain


def _briefing(desk: Desk, base: str) -> Briefing:
    return desk.lead.briefing(base).model_copy(update={"editable": desk.hub.read(desk.editable, base)})


def _commit(desk: Desk, duty: Experiment, plan: Plan, variant: Variant) -> str:
    """Commit a variant before it runs, and keep it for good whatever becomes of it."""
    trailers = {"Experiment": duty.id, "Technique": plan.technique, "Agent": desk.name}
    if variant.parameters:
        trailers["Parameters"] = ", ".join(f"{key}={value}" for key, value in variant.parameters.items())
    commit = desk.hub.commit(duty.base, variant.files, plan.change, trailers, desk.editable)
    desk.hub.anchor(f"experiments/{duty.id}/{commit[:16]}", commit)
    return commit


def median_ns(measured: Measurement) -> dict[str, float]:
    """Median nanoseconds per launch of the base, by workload."""
    names = measured.restarts[0].pairs if measured.restarts else {}
    return {name: median(pair.base_ns for r in measured.restarts for pair in r.pairs[name]) for name in names}


PERFORM: dict[type, Callable[..., ev.AnyBody]] = {
    Baseline: perform_baseline,
    Experiment: perform_experiment,
    Search: perform_search,
    Profile: perform_profile,
    VerifyLanding: perform_verification,
    Remeasure: perform_remeasure,
}

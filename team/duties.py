"""How an agent performs each duty: the mind thinks, the worktree commits, the judge measures, the report says it all.

One function per duty; each returns the ledger body that reports it. Nothing is decided here.
"""

from collections.abc import Callable
from pathlib import Path
from statistics import median

from protocol import events as ev
from protocol.messages import Baseline, Decision, Experiment, Measurement, Profile, Remeasure, Search, VerifyLanding
from team.desk import Desk
from team.errors import UserError
from team.evidence.profile import profile
from team.experiment import briefing_for, perform_experiment
from team.judge.request import Calibrate


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
    return ev.SearchReported(report=desk.mind.research(briefing_for(desk, desk.worktree.head()), duty.id))


def perform_profile(desk: Desk, duty: Profile) -> ev.ProfileReported:
    """Say where the kernel at one commit stands."""
    report = profile(desk.trusted, Path(desk.snapshot(duty.commit)), duty.commit)
    return ev.ProfileReported(duty=duty.id, report=report)


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

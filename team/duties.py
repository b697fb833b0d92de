"""How an agent performs each duty: the mind thinks, the worktree commits, the judge measures, the report says it all.

One function per duty; each returns the ledger body that reports it. Nothing is decided here.
"""

from collections.abc import Callable
from pathlib import Path
from statistics import median

from protocol import events as ev
from protocol.messages import (
    Baseline,
    Decision,
    Experiment,
    Measurement,
    Merge,
    Outcome,
    Profile,
    Recheck,
    Remeasure,
    Research,
    ResolveMerge,
    Search,
    VerifyLanding,
)
from protocol.methods import Sanitized
from roles.minds.mind import CannotResolve, NothingToPropose
from roles.techniques.catalog import card_named
from roles.techniques.hazards import tools_for
from team.desk import Desk
from team.errors import UserError
from team.evidence.profile import Place, profile
from team.experiment import briefing_for, perform_experiment
from team.judge.request import Calibrate, Sanitize
from team.workspace.objects import Refused


def perform_baseline(desk: Desk, duty: Baseline) -> ev.BaselineMeasured | ev.BaselineRefused:
    """Build, check and calibrate the kernel as it stands."""
    try:
        request = Calibrate(task=str(desk.trusted), base=desk.snapshot(duty.commit))
        noise, measured, findings = desk.judge.calibrate(request)
    except UserError as broken:
        return ev.BaselineRefused(duty=duty.id, why=str(broken))
    desk.saw(measured)
    return ev.BaselineMeasured(
        duty=duty.id,
        device=desk.device.id,
        noise=noise,
        baseline_ns=median_ns(measured),
        null_kept=not findings["clean"],
        planted_found=findings["found"],
        planted=Decision.model_validate(findings["planted"]).overall,
        planted_gain=findings["planted_gain"],
        measurement=measured,
    )


def perform_verification(desk: Desk, duty: VerifyLanding) -> ev.LandingMeasured:
    """Measure the merged tree against main, or the author's whole tree against the merged one, on held-out shapes as
    well; a correct one is run under the tools of compute-sanitizer that its technique calls for."""
    measured = desk.compare(duty.base, duty.candidate, held_out=True)
    return ev.LandingMeasured(
        duty=duty.id,
        experiment=duty.experiment,
        device=desk.device.id,
        measurement=measured,
        sanitized=_sanitized(desk, duty) if measured.outcome is Outcome.MEASURED else (),
    )


def _sanitized(desk: Desk, duty: VerifyLanding) -> tuple[Sanitized, ...]:
    base, candidate = desk.snapshot(duty.base), desk.snapshot(duty.candidate)
    tools = tools_for(card_named(duty.technique))
    return desk.judge.sanitize(Sanitize(task=str(desk.trusted), base=base, candidate=candidate, tools=tools))


def perform_resolution(desk: Desk, duty: ResolveMerge) -> ev.MergeResolved:
    """Have the mind bring a kept change onto main; its text is committed there under the rules of any other."""

    def answer(commit: str, why: str, dollars: float) -> ev.MergeResolved:
        return ev.MergeResolved(duty=duty.id, experiment=duty.experiment, commit=commit, why=why[:500], dollars=dollars)

    for commit in (duty.base, duty.candidate, duty.main):
        desk.supply.fetch(commit)
    try:
        resolution = desk.mind.resolve(_merge(desk, duty))
    except CannotResolve as unable:
        return answer("", unable.why, unable.dollars)
    trailers = {"Experiment": duty.experiment, "Technique": duty.plan.technique, "Agent": desk.name}
    try:
        commit = desk.hub.commit(duty.main, resolution.files, duty.plan.change, trailers, desk.editable)
    except Refused as refused:
        return answer("", str(refused), resolution.dollars)
    desk.hub.anchor(f"resolved/{duty.id}/{commit[:16]}", commit)
    return answer(commit, resolution.how, resolution.dollars)


def _merge(desk: Desk, duty: ResolveMerge) -> Merge:
    return Merge(
        duty=duty,
        briefing=briefing_for(desk, duty.main),
        base=desk.hub.read(desk.editable, duty.base),
        theirs=desk.hub.read(desk.editable, duty.candidate),
        main_diff=desk.hub.diff(duty.base, duty.main),
        their_diff=desk.hub.diff(duty.base, duty.candidate),
    )


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


def perform_search(desk: Desk, duty: Search) -> ev.SearchReported | ev.DutyFailed:
    """Look for what the team has not tried."""
    try:
        return ev.SearchReported(report=desk.mind.research(briefing_for(desk, desk.worktree.head()), duty.id))
    except NothingToPropose as failure:
        return ev.DutyFailed(duty=duty.id, why=failure.why, dollars=failure.dollars)


def perform_profile(desk: Desk, duty: Profile) -> ev.ProfileReported:
    """Say where the kernel at one commit stands; with the set of metrics that the campaign's first profile used."""
    scratch, known = desk.snapshots.parent, desk.lead.chronicle().profile
    place = Place(desk.device, scratch, scratch / "profiles", desk.policy)
    tree = Path(desk.snapshot(duty.commit))
    report = profile(desk.trusted, tree, duty.commit, place, known.bundle if known else "")
    return ev.ProfileReported(duty=duty.id, report=report)


def perform_recheck(desk: Desk, duty: Recheck) -> ev.RecheckReported | ev.DutyFailed:
    """Compare a technique that regressed with its card, on the source that it was tried on."""
    desk.supply.fetch(duty.base)
    try:
        return ev.RecheckReported(report=desk.mind.recheck(briefing_for(desk, duty.base), duty))
    except NothingToPropose as failure:
        return ev.DutyFailed(duty=duty.id, why=failure.why, dollars=failure.dollars)


def perform_research(desk: Desk, duty: Research) -> ev.ResearchReported | ev.DutyFailed:
    """Read the record, and nothing but the record."""
    try:
        return ev.ResearchReported(report=desk.mind.reflect(desk.lead.chronicle(), duty.id))
    except NothingToPropose as failure:
        return ev.DutyFailed(duty=duty.id, why=failure.why, dollars=failure.dollars)


def median_ns(measured: Measurement) -> dict[str, float]:
    """Median nanoseconds per launch of the base, by workload."""
    names = measured.restarts[0].pairs if measured.restarts else {}
    return {name: median(pair.base_ns for r in measured.restarts for pair in r.pairs[name]) for name in names}


PERFORM: dict[type, Callable[..., ev.AnyBody]] = {
    Baseline: perform_baseline,
    Experiment: perform_experiment,
    Search: perform_search,
    Profile: perform_profile,
    Recheck: perform_recheck,
    Research: perform_research,
    VerifyLanding: perform_verification,
    ResolveMerge: perform_resolution,
    Remeasure: perform_remeasure,
}

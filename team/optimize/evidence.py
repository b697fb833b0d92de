"""Where the kernel stands and what is proven of a change: profile, rooflines, budget, machine code, method lists.

All of it comes from ``team.evidence``; here it is put into the artifacts of a run. What could not be had is written
down as not had, and caps what the run claims; with ``--ncu-policy required`` it ends the run instead.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

from protocol.messages import Measurement, Plan, ProfileReport, Roofline, Verdict
from protocol.methods import Ablation, Contribution, SassCheck, Status, sorted_methods
from team.evidence.artifacts import artifact_of
from team.evidence.axes import widest
from team.evidence.budget import axis_budget
from team.evidence.compiled import compiler_report
from team.evidence.profile import Place, measured, profile, with_remark
from team.evidence.roofline import is_near_peak, roofline
from team.evidence.sass import verify
from team.optimize.artifacts import write_json, write_text
from team.optimize.gates import Stopped
from team.optimize.session import Session

NOT_APPLICABLE = "not_applicable: no GPU is used"
_WORST_FIRST = (Status.FAIL, Status.TOOL_ERROR, Status.INCONCLUSIVE, Status.PASS, Status.NOT_APPLICABLE)
_CAPPED = "without hardware counters the run claims speed alone, and no bottleneck"


@dataclass(frozen=True)
class Standing:
    """One kernel's profile as artifacts hold it."""

    profile: ProfileReport
    budget: dict[str, int]
    ncu_top: dict[str, Any]
    roofline: dict[str, Any]
    near_peak: bool = False


def standing(session: Session, commit: str, number: int) -> Standing:
    """Profile the kernel at ``commit``, before iteration ``number`` or, with 0, at the baseline."""
    report = _profile(session, commit)
    if session.options.ncu_policy == "required" and session.options.language != "cpp" and report.level != "counters":
        stage, reason = ("iteration", "iteration_ncu_failed") if number else ("baseline", "baseline_ncu_failed")
        raise Stopped(stage, reason, f"{report.tool}: {'; '.join(report.remarks[:2]) or report.claim}", number)
    lines = report.rooflines or _rooflines(session)
    near = report.near_peak or is_near_peak(lines, session.policy)
    budget: dict[str, int] = {str(axis): left for axis, left in axis_budget(report.gaps, session.policy).items()}
    session.state.claim = "" if report.level == "counters" else _CAPPED
    return Standing(report, budget, _ncu_top(session, report), _roofline(session, report, lines, near, budget), near)


def _profile(session: Session, commit: str) -> ProfileReport:
    """The profile of a commit, taken once in a run, with the set of metrics that the first one had."""
    kept = session.folder.path / "profiles"
    kept.mkdir(exist_ok=True)
    known = kept / f"{commit}.json"
    if known.is_file():
        return ProfileReport.model_validate_json(known.read_text())
    place = Place(session.device, session.folder.scratch, kept, session.policy)
    tree, pinned = session.snapshot(commit), str(session.state.profiling_policy.get("bundle", ""))
    if session.options.language == "cpp":
        report = profile(session.trusted, tree, commit, place, pinned)
    else:
        most, full = session.options.ncu_num, session.full
        answer = measured(place, session.trusted, tree, commit, pinned, full, most)
        stand_in = answer.report or compiler_report(session.spec, tree, commit)
        report = answer.report or with_remark(stand_in, f"nothing was measured: {answer.why}")
    write_text(known, report.model_dump_json(indent=1))
    return report


def _rooflines(session: Session) -> tuple[Roofline, ...]:
    """The best kernel's times against the task's floor and the device's measured roofs."""
    peaks, state = session.device.info().peaks, session.state
    return tuple(
        roofline(name, nanoseconds, state.floors.get(name, {}), peaks, state.dtype)
        for name, nanoseconds in state.best_ns.items()
    )


def _ncu_top(session: Session, report: ProfileReport) -> dict[str, Any]:
    degraded = report.level != "counters"
    axes = {
        axis: [
            {"name": one.source, "metric": one.metric, "value": one.value, "unit": one.unit}
            for one in report.top.get(axis, ())[: session.options.ncu_num]
        ]
        for axis in ("compute", "memory", "latency")
    }
    return {
        "degraded": degraded,
        "reason": (NOT_APPLICABLE if session.options.language == "cpp" else report.claim) if degraded else "",
        "tool": report.tool,
        "level": report.level,
        "claim": report.claim,
        "profile_set": report.bundle,
        "profiled_workload": report.workload,
        "backend": session.options.language,
        "ncu_rep": report.file,
        "metric_count_collected": sum(len(kernel.readings) for kernel in report.kernels),
        "kernels": [{"name": k.name, "grid": k.grid, "block": k.block, "ns": k.duration_ns} for k in report.kernels],
        "remarks": list(report.remarks),
        "metrics": report.metrics,
        **axes,
    }


def _roofline(
    session: Session, report: ProfileReport, lines: tuple[Roofline, ...], near: bool, budget: dict[str, int]
) -> dict[str, Any]:
    gaps = report.gaps
    full = next((one for one in lines if one.workload == session.full), None)
    return {
        "delta_compute": gaps.compute,
        "delta_memory": gaps.memory,
        "delta_latency": gaps.latency,
        "degraded": report.level != "counters",
        "bound": "near_peak" if near else widest(gaps) or (full.roof if full and full.roof else "unknown"),
        "near_peak": near,
        "axis_budget": budget,
        "roofline_mode": full.mode if full else "bottleneck_gap_heuristic",
        "flops": full.flops if full else None,
        "bytes_min": full.bytes_min if full else None,
        "arithmetic_intensity": full.intensity if full else None,
        "roof": full.roof if full else "",
        "share_of_roof": full.share if full else None,
        "workloads": [{**one.model_dump(mode="json"), "share": one.share} for one in lines],
    }


def keep_report(session: Session, standing_: Standing, target: Path) -> str:
    """Copy the profiler's own report beside the artifacts; where it lies, empty when there is none."""
    file = Path(standing_.profile.file) if standing_.profile.file else None
    if file is None or not file.is_file():
        return ""
    shutil.copyfile(file, target)
    return str(target.relative_to(session.folder.path))


# ---------------------------------------------------------------- a change


def of_champion(session: Session, number: int, commit: str) -> None:
    """The champion's own profile, into the staged iteration; under a required profiler a gate before promotion."""
    staged = session.folder.staging(number)
    seen = standing(session, commit, number)
    write_json(staged / "ncu_top.champion.json", seen.ncu_top)
    rep = keep_report(session, seen, staged / "kernel.ncu-rep")
    if rep:
        session.state.best_ncu_rep = rep.replace(f".staging-iterv{number}", f"iterv{number}")


def sass_checks(session: Session, number: int, plans: Sequence[Plan], seen: Measurement) -> dict[str, SassCheck]:
    """``sass_check.json`` of the champion, by technique; empty where there is no machine code of a GPU."""
    path = session.folder.staging(number) / "sass_check.json"
    if session.options.language == "cpp" or seen.candidate_build is None:
        why = NOT_APPLICABLE if session.options.language == "cpp" else "the champion was not built"
        write_json(path, {"iter": number, "status": "not_applicable", "note": why, "checks": []})
        return {}
    cache = session.folder.scratch / "cache"
    ours = artifact_of(cache, seen.candidate_build.artifact)
    parent = artifact_of(cache, seen.base_build.artifact) if seen.base_build else None
    if ours is None:
        write_json(path, {"iter": number, "status": "inconclusive", "note": "its build is gone", "checks": []})
        return {}
    names = [plan.technique for plan in plans]
    checks = dict(zip(names, verify(names, ours, parent), strict=True))
    told = {"iter": number, "kernel": f"iterv{number}/kernel{session.options.baseline.suffix}", "so": str(ours)}
    worst = next(status for status in _WORST_FIRST if any(one.status is status for one in checks.values()))
    listed = [one.model_dump(mode="json") for one in checks.values()]
    write_json(path, {**told, "status": worst.value, "parent": str(parent or ""), "checks": listed})
    return checks


def lists(
    plans: Sequence[Plan], verdict: Verdict, checks: Mapping[str, SassCheck], gain: float | None
) -> dict[str, Any]:
    """What an iteration adds to the five method lists of the state. Several methods wait for their ablations."""
    told = {Verdict.KEEP: Contribution.CONTRIBUTED, Verdict.REVERT: Contribution.NOT_CONTRIBUTED}
    known = told.get(verdict, Contribution.INCONCLUSIVE) if len(plans) == 1 else Contribution.INCONCLUSIVE
    names = [plan.technique for plan in plans]
    why = "the paired measurement of its iteration"
    ablations = {name: Ablation(method=name, contribution=known, why=why) for name in names}
    nothing = {name: SassCheck(method=name, status=Status.NOT_APPLICABLE, why=NOT_APPLICABLE) for name in names}
    found = sorted_methods(names, ablations, {**nothing, **checks})
    speedup = exp(gain) if gain is not None else None
    return {
        "selected_methods": list(found.selected),
        "effective_methods": [{"method": one, "speedup": speedup} for one in found.effective],
        "ineffective_methods": list(found.ineffective),
        "implementation_failed_methods": list(found.implementation_failed),
        "unverified_methods": list(found.unverified),
    }

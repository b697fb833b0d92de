"""What became of an iteration: the verdict, its artifacts, and what the state is to learn from it."""

import json
from collections.abc import Sequence
from math import exp
from statistics import median
from typing import Any

from protocol.messages import Decision, Measurement, Outcome, Plan, Verdict
from protocol.sequential import decide, target_gain
from protocol.simplicity import is_simpler
from protocol.verdict import judge
from team.optimize import evidence, learned, records
from team.optimize.artifacts import write_json, write_text
from team.optimize.branches import Idea, Trial
from team.optimize.gates import champion_reason, states_of
from team.optimize.session import Session


def judged(session: Session, number: int, idea: Idea, trial: Trial) -> dict[str, Any]:
    """The verdict, ``bench.json``, ``branch_results.json``, ``attribution.json``, and what the state is to learn."""
    place = trial.champion
    seen = trial.tried[-1][1] if trial.tried else trial.raced.measured[0]
    decision, verdict, reason = _verdict(session, seen)
    champion = place if place is not None else (trial.tried[-1][0] if trial.tried else 0)
    commit, staged = idea.commits[champion], session.folder.staging(number)
    suffix = session.options.baseline.suffix
    kept = verdict.kept
    if place is not None:
        write_text(staged / f"kernel{suffix}", session.source_of(commit))
    write_json(staged / "bench.json", records.bench(session.subject(f"kernel{suffix}"), seen, "candidate", decision))
    if seen.candidate_build is not None:
        write_json(staged / "kernel.build.json", seen.candidate_build.model_dump(mode="json"))
    write_json(staged / "branch_results.json", _branches(session, number, idea, trial))
    methods = idea.methods(champion, session.best)
    plans = [one.plan for one in methods]
    learned.attribute(session, number, methods, seen, decision, kept)
    checks = evidence.sass_checks(session, number, plans, seen)
    past = learned.pasts(idea, trial, champion, number, session.best, learned.Word(decision, verdict, reason))
    return {
        "row": _row(session, number, plans, seen, decision, kept, f"iterv{number}/kernel{suffix}"),
        "kept": kept,
        "verdict": verdict.value,
        "reason": reason,
        "commit": commit,
        "past": [one.model_dump(mode="json") for one in past],
        "dollars": idea.proposal.dollars,
        "lists": evidence.lists(plans, verdict, checks, decision.overall.gain if decision else None),
        "best_ns": {
            one.name: median(records.side_ns(seen, one.name, "candidate") or [0.0]) for one in session.spec.workloads
        },
        "roofline": json.loads((staged / "roofline.json").read_text()),
        "champion": {
            "iter": number,
            "kernel": f"iterv{number}/kernel{suffix}",
            "average_ms": records.average_ms(seen, session.full, "candidate") or 0.0,
            "artifact_manifest": f"iterv{number}/kernel.build.json",
            "commit": commit,
        },
    }


def _verdict(session: Session, seen: Measurement) -> tuple[Decision | None, Verdict, str]:
    """The law's word; a keep must also reach the bar at the user's own shape."""
    decision = None
    if seen.outcome is Outcome.MEASURED:
        decision = decide(seen.restarts, session.weights, session.state.noise, session.policy)
    verdict, reason = judge(seen, decision, is_simpler(seen.simplicity, session.policy), session.policy)
    if verdict is Verdict.KEEP and decision is not None:
        full = decision.workloads[session.full]
        if full.gain < target_gain(session.state.noise, session.policy):
            told = f"the gain is at smaller shapes: {exp(full.gain) - 1:+.2%} at your own"
            return decision, Verdict.REVERT, f"{told}; {reason}"
    return decision, verdict, reason


def _row(
    session: Session,
    number: int,
    plans: Sequence[Plan],
    seen: Measurement,
    decision: Decision | None,
    kept: bool,
    kernel: str,
) -> dict[str, Any]:
    valid = seen.outcome is Outcome.MEASURED
    full = decision.workloads[session.full] if decision else None
    bench = json.loads((session.folder.staging(number) / "bench.json").read_text())
    return {
        "iter": number,
        "kernel_file": kernel if valid else "",
        "methods": [plan.technique for plan in plans],
        "method_names": [plan.technique for plan in plans],
        "ms": records.average_ms(seen, session.full, "candidate"),
        "best_before_ms": records.average_ms(seen, session.full, "base"),
        "ref_ms": None,
        "speedup_vs_ref": None,
        "speedup_vs_best_before": exp(full.gain) if full else None,
        "interval": records.ratio(full),
        "overall": records.ratio(decision.overall if decision else None),
        "validation_passed": valid,
        "status": "improved" if kept else "regressed" if valid else "failed_validation",
        "failure": champion_reason(seen),
        "retries": 0,
        "states": bench["states"],
        "kernel_only_ms": bench["kernel_only_ms"],
        "end_to_end_ms": None,
    }


def _branches(session: Session, number: int, idea: Idea, trial: Trial) -> dict[str, Any]:
    """``branch_results.json``, and each branch's own ``bench.json``."""
    staged, champion = session.folder.staging(number), trial.champion
    later = dict(trial.tried)
    rows: list[dict[str, Any]] = []
    for place, (variant, seen) in enumerate(zip(idea.proposal.variants, trial.raced.measured, strict=True)):
        last, gain = later.get(place, seen), trial.raced.gains[place]
        where = staged / "branches" / f"b{place + 1}"
        kernel = f"branches/b{place + 1}/kernel{session.options.baseline.suffix}"
        write_json(where / "bench.json", records.bench(session.subject(kernel), seen, "candidate"))
        rows.append(
            {
                "branch_index": place + 1,
                "kernel": kernel,
                "passed": last.outcome is Outcome.MEASURED,
                "ms": records.average_ms(seen, session.full, "candidate"),
                "error": last.detail or None,
                "states": states_of(last),
                "parameters": variant.parameters,
                "methods": [one.plan.technique for one in idea.methods(place, session.best)],
                "race_pairs": seen.pairs,
                "weighted_geomean_speedup": exp(gain) if gain is not None else None,
                "measured_afresh": place in later,
            }
        )
    valid = [row for row in rows if row["passed"]]
    return {
        "iter": number,
        "status": "champion_selected" if champion is not None else "all_branches_failed",
        "champion": rows[champion] if champion is not None else None,
        "branches": rows,
        "frontier": [row for row in valid if champion is None or row["branch_index"] != champion + 1],
        "total_branches": len(rows),
        "valid_branches": len(valid),
        "execution_order": "interleaved with the best kernel, order drawn anew for every pair",
        "compile_jobs": session.state.compile_jobs,
        "backend": session.options.language,
        "scale_weights": session.weights,
    }

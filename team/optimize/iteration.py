"""One iteration: an idea, its variants raced, the champion measured against the best, and artifacts published whole.

A candidate that fails fails alone: the next of its siblings is measured. An iteration of which no branch is valid is
recorded and the run goes on; a run in which no iteration was ever valid ends with ``iteration_no_valid_branch``.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp
from pathlib import Path
from statistics import median
from typing import Any

from protocol.messages import Decision, Measurement, Outcome, PastExperiment, Plan, Proposal, Role, Variant, Verdict
from protocol.race import frontier
from protocol.sequential import decide, target_gain
from protocol.simplicity import is_simpler
from protocol.verdict import judge
from roles.minds.mind import NothingToPropose
from team.errors import UserError
from team.judge.failures import BaselineBroken
from team.judge.request import Screen
from team.optimize import evidence, records, summary
from team.optimize.artifacts import OUTCOME, write_json, write_text
from team.optimize.briefing import briefing_for, roles_of
from team.optimize.gates import Stopped, champion_reason
from team.optimize.hardware import hardware_gate
from team.optimize.session import AGENT, Session
from team.optimize.state import Champion
from team.optimize.strict import refuse_reordering
from team.race import Raced, race
from team.workspace.objects import Refused

MAX_REFUSALS = 3


@dataclass
class Idea:
    """A proposal that may run: who had it, and a commit for each of its variants."""

    role: Role
    proposal: Proposal
    commits: list[str]

    @property
    def plan(self) -> Plan:
        """What is to be changed, and why."""
        return self.proposal.plan


@dataclass
class Trial:
    """What became of an idea's branches. ``tried`` are champions in their order with what was seen of each."""

    raced: Raced
    tried: list[tuple[int, Measurement]] = field(default_factory=list)

    @property
    def champion(self) -> int | None:
        """The branch that was measured to the end; None when not one was."""
        last = self.tried[-1] if self.tried else None
        return last[0] if last and last[1].outcome is Outcome.MEASURED else None


def iterate(session: Session, number: int) -> bool:
    """Run iteration ``number``; False when nothing is left to win, or nobody has an idea."""
    environment = hardware_gate(session.options, number)
    write_json(session.folder.path / f"hardware_iterv{number}.json", environment)
    session.folder.staging(number).mkdir(exist_ok=True)
    standing = evidence.standing(session, session.best, number)
    if standing.near_peak:
        session.say("the kernel is near the binding roof on every shape: nothing is left to win")
    idea = None if standing.near_peak else _idea(session, number, standing)
    if idea is None:
        shutil.rmtree(session.folder.staging(number))
        return False
    _write_idea(session, number, idea, standing)
    trial = _tried(session, number, idea)
    outcome = _judged(session, number, idea, trial)
    staged = session.folder.staging(number)
    if outcome["kept"]:
        try:
            evidence.of_champion(session, number, str(outcome["commit"]), idea.plan)
        except Stopped:
            session.folder.set_aside(number)
            raise
    summary.write_analysis(session, staged, number, idea.plan, standing, outcome)
    write_json(staged / OUTCOME, outcome)
    if outcome["row"]["validation_passed"]:
        session.folder.publish(number)
    else:
        session.folder.set_aside(number)
    close(session, outcome)
    return True


def close(session: Session, outcome: dict[str, Any]) -> None:
    """Take an iteration's outcome into the state. Doing so twice changes nothing."""
    state, row = session.state, outcome["row"]
    number = int(row["iter"])
    if state.closed(number):
        return
    state.history.append(row)
    state.experiments.append(PastExperiment.model_validate(outcome["past"]))
    state.finished_iterations = number
    state.dollars += float(outcome["dollars"])
    if row["validation_passed"]:
        state.verified_iterations += 1
        state.last_verified_iter = number
    for name, members in outcome["lists"].items():
        known = getattr(state, name)
        known += [one for one in members if one not in known]
    if outcome["kept"]:
        state.global_champion = Champion.model_validate(outcome["champion"])
        state.best_file = state.global_champion.kernel
        state.best_ns = outcome["best_ns"]
        state.best_metric_ms = state.global_champion.average_ms
        state.best_build_manifest = state.global_champion.artifact_manifest
    offered = frontier(state.experiments, session.policy)
    state.frontier = [one.model_dump(mode="json", exclude={"files"}) for one in offered]
    if outcome["roofline"]:
        state.roofline_history.append({"iter": number, **outcome["roofline"]})
    session.store.save()
    session.say(_line(row, outcome))


def _line(row: dict[str, Any], outcome: dict[str, Any]) -> str:
    speedup = row["speedup_vs_best_before"]
    told = f"{speedup:.3f}x over the best before" if speedup else "no branch was valid"
    return (
        f"iteration {row['iter']}: {outcome['verdict']}, {', '.join(row['method_names'])}: {told}; {outcome['reason']}"
    )


# ---------------------------------------------------------------- the idea


def _idea(session: Session, number: int, standing: evidence.Standing) -> Idea | None:
    """A proposal whose variants may be committed: the one of a run that was broken off, or a new one."""
    kept = session.folder.staging(number) / "proposal.json"
    if kept.is_file():
        known = json.loads(kept.read_text())
        if known["base"] == session.best:
            proposal = Proposal.model_validate(known["proposal"])
            return Idea(Role(known["role"]), proposal, _commits(session, number, proposal))
    for role in roles_of(number):
        try:
            return _new_idea(session, number, role, standing)
        except NothingToPropose as nothing:
            session.state.dollars += nothing.dollars
            session.say(f"iteration {number}: {session.mind.name} as {role.value} has no idea: {nothing.why}")
    return None


def _new_idea(session: Session, number: int, role: Role, standing: evidence.Standing) -> Idea:
    refused: list[str] = []
    while len(refused) < MAX_REFUSALS:
        briefing = briefing_for(session, number, role, standing.profile, tuple(refused))
        proposal = session.mind.propose(briefing)
        proposal = proposal.model_copy(update={"variants": proposal.variants[: session.options.branches]})
        try:
            refuse_reordering(session.options, proposal.plan)
            idea = Idea(role, proposal, _commits(session, number, proposal))
        except Refused as no:
            refused.append(str(no))
            session.say(f"iteration {number}: a plan was refused: {no}")
            continue
        told = {"base": session.best, "role": role.value, "proposal": proposal.model_dump(mode="json")}
        write_json(session.folder.staging(number) / "proposal.json", told)
        return idea
    raise NothingToPropose(f"{MAX_REFUSALS} plans in a row were refused; the last: {refused[-1]}")


def _commits(session: Session, number: int, proposal: Proposal) -> list[str]:
    return [_committed(session, number, proposal.plan, variant) for variant in proposal.variants]


def _committed(session: Session, number: int, plan: Plan, variant: Variant) -> str:
    return session.commit(session.best, variant, f"iterv{number}", plan.technique, plan.change)


def _write_idea(session: Session, number: int, idea: Idea, standing: evidence.Standing) -> None:
    """The branches' texts, what was passed over, and where the kernel stood."""
    staged, suffix = session.folder.staging(number), session.options.baseline.suffix
    for place, commit in enumerate(idea.commits, start=1):
        write_text(staged / "branches" / f"b{place}" / f"kernel{suffix}", session.source_of(commit))
    write_json(staged / "methods.json", records.methods(number, session.options, idea.proposal, standing.budget))
    write_json(staged / "ncu_top.json", standing.ncu_top)
    write_json(staged / "roofline.json", standing.roofline)


# ---------------------------------------------------------------- branches


def _tried(session: Session, number: int, idea: Idea) -> Trial:
    """Race the branches, then measure the champion, or the next of its siblings when it fails."""
    trial = Trial(_raced(session, idea.commits))
    if trial.raced.champion is None and trial.raced.measured[0].outcome is Outcome.BUILD_FAILED:
        _mended(session, number, idea, trial)
    running = [(gain, -place) for place, gain in enumerate(trial.raced.gains) if gain is not None]
    for _, place in sorted(running, reverse=True):
        measured = _measured(session, idea.commits[-place])
        trial.tried.append((-place, measured))
        if measured.outcome is Outcome.MEASURED:
            break
    return trial


def _raced(session: Session, commits: Sequence[str]) -> Raced:
    request = Screen(
        task=str(session.trusted),
        base=str(session.snapshot(session.best)),
        candidates=tuple(str(session.snapshot(commit)) for commit in commits),
        noise=session.state.noise,
    )
    return _on_the_best(session, lambda: race(session.judge, request, session.weights, session.policy))


def _mended(session: Session, number: int, idea: Idea, trial: Trial) -> None:
    """The one repair that a build failure gets."""
    briefing = briefing_for(session, number, idea.role, None, ())
    mended = session.mind.repair(briefing, idea.proposal, trial.raced.measured[0].detail)
    if mended is None:
        return
    session.state.dollars += mended.dollars
    try:
        idea.commits = [_committed(session, number, mended.plan, mended.variants[0])]
    except Refused as no:
        session.say(f"iteration {number}: a repair was refused: {no}")
        return
    idea.proposal = mended.model_copy(update={"variants": mended.variants[:1], "dollars": 0.0})
    trial.raced = _raced(session, idea.commits)


def _measured(session: Session, commit: str) -> Measurement:
    """The strict gate where it holds, then base and candidate in fresh processes."""
    if session.options.numerics_mode == "strict":
        same = _on_the_best(session, lambda: session.identical(session.state.baseline_commit, commit))
        if same.outcome is not Outcome.MEASURED:
            return same
    return _on_the_best(session, lambda: session.compare(session.best, commit))


def _on_the_best(session: Session, question: Any) -> Any:
    """Ask the judge; a best kernel that does not run any more is a matter of the machine."""
    try:
        return session.ask(question)
    except BaselineBroken as broken:
        number = session.state.finished_iterations + 1
        raise Stopped(
            "iteration", "iteration_timing_invalid", f"the best kernel did not run: {broken}", number
        ) from None


# ---------------------------------------------------------------- the outcome


def _judged(session: Session, number: int, idea: Idea, trial: Trial) -> dict[str, Any]:
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
    _attribute(session, number, idea, seen, decision, kept)
    check = evidence.sass_check(session, number, idea.plan, seen)
    past = _past(idea, trial, champion, number, session.best, decision, verdict, reason, commit)
    return {
        "row": _row(session, number, idea, seen, decision, kept, f"iterv{number}/kernel{suffix}"),
        "kept": kept,
        "verdict": verdict.value,
        "reason": reason,
        "commit": commit,
        "past": past.model_dump(mode="json"),
        "dollars": idea.proposal.dollars,
        "lists": evidence.lists(idea.plan, verdict, check, decision.overall.gain if decision else None),
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
    session: Session, number: int, idea: Idea, seen: Measurement, decision: Decision | None, kept: bool, kernel: str
) -> dict[str, Any]:
    valid = seen.outcome is Outcome.MEASURED
    full = decision.workloads[session.full] if decision else None
    bench = json.loads((session.folder.staging(number) / "bench.json").read_text())
    return {
        "iter": number,
        "kernel_file": kernel if valid else "",
        "methods": [idea.plan.technique],
        "method_names": [idea.plan.technique],
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
                "states": json.loads((where / "bench.json").read_text())["states"],
                "parameters": variant.parameters,
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


def _attribute(
    session: Session, number: int, idea: Idea, seen: Measurement, decision: Decision | None, kept: bool
) -> None:
    """An iteration makes one change, so the kernel without it is the best before it: measured paired, same shapes."""
    staged, suffix = session.folder.staging(number), session.options.baseline.suffix
    name = idea.plan.technique
    ablated = f"ablations/{name.replace('.', '_').replace('/', '_')}/kernel{suffix}"
    write_text(staged / ablated, session.source_of(session.best))
    without, ours = (records.average_ms(seen, session.full, side) for side in ("base", "candidate"))
    measured = without is not None and ours is not None
    row = {
        "method_id": name,
        "ablated_kernel": ablated,
        "ablated_ms": without,
        "champion_ms": ours,
        "attribution_ms": without - ours if without is not None and ours is not None else None,
        "attribution_pct": 100.0 * (without / ours - 1.0) if without is not None and ours is not None else None,
        "contributed": kept if measured and decision and decision.state in ("keep", "revert") else None,
        "status": "measured" if measured else "inconclusive",
        "interval": records.ratio(decision.workloads[session.full] if decision else None),
        "note": "the kernel without this change is the best before it; both were timed in pairs at the same shapes",
    }
    told = {"iter": number, "champion_ms": ours, "noise_threshold_pct": session.options.noise_threshold_pct}
    write_json(staged / "attribution.json", {**told, "attributions": [row]})


def _past(
    idea: Idea,
    trial: Trial,
    champion: int,
    number: int,
    base: str,
    decision: Decision | None,
    verdict: Verdict,
    reason: str,
    commit: str,
) -> PastExperiment:
    variants: Sequence[Variant] = idea.proposal.variants
    raced = trial.raced.gains if len(variants) > 1 else ()
    return PastExperiment(
        id=f"iterv{number}",
        agent=AGENT,
        role=idea.role,
        plan=idea.plan,
        parameters=variants[champion].parameters,
        verdict=verdict,
        reason=reason,
        gain=decision.overall.gain if decision else None,
        low=decision.overall.low if decision else None,
        high=decision.overall.high if decision else None,
        base=base,
        commit=commit,
        screened=tuple((v.parameters, gain) for v, gain in zip(variants, raced, strict=False)),
    )


def left_behind(session: Session, number: int) -> bool:
    """Whether an iteration was published and its outcome not yet taken in when the process died; it is taken in now."""
    kept: Path = session.folder.iteration(number) / OUTCOME
    if not kept.is_file() or session.state.closed(number):
        return False
    try:
        close(session, json.loads(kept.read_text()))
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{kept} cannot be read: {error}.", "Start a new run.") from None
    return True

"""One iteration: an idea, its variants raced, the champion measured against the best, and artifacts published whole.

An iteration of which no branch is valid is recorded and the run goes on; a run in which no iteration was ever valid
ends with ``iteration_no_valid_branch``.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from protocol.messages import PastExperiment, Proposal, Role
from protocol.race import frontier
from roles.minds.mind import NothingToPropose
from team.errors import UserError
from team.optimize import evidence, records, summary
from team.optimize.artifacts import OUTCOME, write_json, write_text
from team.optimize.branches import Idea, Method, committed, tried
from team.optimize.briefing import briefing_for, roles_of
from team.optimize.compose import with_composed_branches
from team.optimize.gates import Stopped
from team.optimize.hardware import hardware_gate
from team.optimize.outcome import judged
from team.optimize.session import Session
from team.optimize.state import Champion
from team.optimize.strict import refuse_reordering
from team.workspace.objects import Refused

MAX_REFUSALS = 3


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
    trial = tried(session, number, idea)
    outcome = judged(session, number, idea, trial)
    staged = session.folder.staging(number)
    if outcome["kept"]:
        try:
            evidence.of_champion(session, number, str(outcome["commit"]))
        except Stopped:
            session.folder.set_aside(number)
            raise
    summary.write_analysis(session, staged, number, idea, standing, outcome)
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
    state.experiments += [PastExperiment.model_validate(past) for past in outcome["past"]]
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
        if known["base"] == session.best and "commits" in known:
            proposal = Proposal.model_validate(known["proposal"])
            stack = tuple(Method.model_validate(one) for one in known["stack"])
            return Idea(Role(known["role"]), proposal, known["commits"], stack, known["stacked"])
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
            session.state.dollars += proposal.dollars
            session.say(f"iteration {number}: a plan was refused: {no}")
            continue
        idea = with_composed_branches(session, number, idea, standing.profile, standing.budget)
        write_json(session.folder.staging(number) / "proposal.json", _told(session, idea))
        return idea
    raise NothingToPropose(f"{MAX_REFUSALS} plans in a row were refused; the last: {refused[-1]}")


def _told(session: Session, idea: Idea) -> dict[str, Any]:
    """What a run that is broken off now needs to go on with the idea; its commits are kept already."""
    return {
        "base": session.best,
        "role": idea.role.value,
        "proposal": idea.proposal.model_dump(mode="json"),
        "commits": idea.commits,
        "stack": [one.model_dump(mode="json") for one in idea.stack],
        "stacked": idea.stacked,
    }


def _commits(session: Session, number: int, proposal: Proposal) -> list[str]:
    return [committed(session, number, proposal.plan, variant) for variant in proposal.variants]


def _write_idea(session: Session, number: int, idea: Idea, standing: evidence.Standing) -> None:
    """The branches' texts, what was passed over, and where the kernel stood."""
    staged, suffix = session.folder.staging(number), session.options.baseline.suffix
    for place, commit in enumerate(idea.commits, start=1):
        write_text(staged / "branches" / f"b{place}" / f"kernel{suffix}", session.source_of(commit))
    write_json(
        staged / "methods.json",
        records.methods(number, session.options, idea.plans, idea.proposal.variants, standing.budget),
    )
    write_json(staged / "ncu_top.json", standing.ncu_top)
    write_json(staged / "roofline.json", standing.roofline)


def left_behind(session: Session, number: int) -> bool:
    """Whether an iteration was published and its outcome not yet taken in when the process died; it is taken in now."""
    kept: Path = session.folder.iteration(number) / OUTCOME
    if not kept.is_file() or session.state.closed(number):
        return False
    try:
        close(session, json.loads(kept.read_text()))
    except (ValueError, KeyError, TypeError) as error:  # no JSON, or an outcome of another version
        raise UserError(f"{kept} cannot be read: {' '.join(str(error).split())}.", "Start a new run.") from None
    return True

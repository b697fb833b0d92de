"""The texts of the duties that a model performs. Every number comes from the briefing's law."""

import json
from collections.abc import Iterable

from protocol.messages import Briefing, Chronicle, Merge, PastExperiment, Plan, Recheck, Role, Verdict
from roles.prompts.profiled import in_short

HISTORY = 30  # experiments told one by one, the newest; the ledger and ``findings`` hold the rest

ROLES = {
    Role.EXPLORER: "You are the explorer: look for new structure (algorithm, data movement, instructions).",
    Role.EXPLOITER: "You are the exploiter: tune and compose what works on the current best.",
}


def experiment_text(briefing: Briefing, problem: str = "") -> str:
    """What to do for one experiment; ``problem`` says what was wrong with the last answer."""
    law = briefing.law
    rules = [
        f"Edit only: {', '.join(sorted(briefing.editable))}. Anything else is refused.",
        "Make one change. Several edits are one change only when they make no sense apart; then fill in `rewrite`.",
        f"It is kept when every workload is right and the gain is at least {law.threshold:.1%}, measured in pairs "
        f"against the base with a total error of {law.total_error:.1%}, and no workload loses "
        f"{law.worst_workload_loss:.0%}.",
        "Results are checked against a reference on inputs that you do not see, other shapes included. Code that "
        "detects being measured, skips work or keeps results is found, and is recorded as tampering.",
        f"Numerics: {briefing.numerics}.",
    ]
    return "\n\n".join(
        part
        for part in (
            f"# Make `{briefing.task}` faster ({briefing.language})",
            ROLES[briefing.role],
            bullets("Rules", rules),
            bullets("Where things stand", _standing(briefing)),
            bullets("Not now", _closed(briefing)),
            _owed(briefing),
            bullets("Due now: take the first of them, or say in `passed_over` why each cannot be done", _due(briefing)),
            bullets(
                "What the record shows",
                [*briefing.warnings, *(one.what + ": " + one.next for one in briefing.insights)],
            ),
            bullets("Refused just now; propose something else", briefing.refused),
            bullets("Tried by the team, newest last", [past_line(past) for past in briefing.history[-HISTORY:]]),
            bullets("Ran, beat its base, and lost its race: you may start from one", frontier_lines(briefing)),
            f"## Your last answer\n\n{problem}" if problem else "",
        )
        if part
    )


def frontier_lines(briefing: Briefing) -> list[str]:
    """The variants that lost a race, by their settings."""
    return [
        f"{one.technique} of {one.experiment} with {one.parameters}: log gain {one.gain:+.3f} in its race"
        for one in briefing.frontier
    ]


def search_text(briefing: Briefing) -> str:
    """What to do for a search."""
    return "\n\n".join(
        part
        for part in (
            f"# Search: what could make `{briefing.task}` faster ({briefing.language})",
            f"{briefing.law.stuck_after} experiments in a row brought nothing. Look for a technique that the team has "
            "not tried and that applies to the source as it is; say where it comes from.",
            bullets("Where things stand", _standing(briefing)),
            bullets("Not now", _closed(briefing)),
            bullets("Tried by the team, newest last", [past_line(past) for past in briefing.history[-HISTORY:]]),
        )
        if part
    )


def repair_text(briefing: Briefing, plan: Plan, failure: str) -> str:
    """What to do about a build that failed."""
    return (
        f"# Your change to `{briefing.task}` does not build\n\nThe change: {plan.change}\n\n"
        f"Mend it without giving the idea up; edit only: {', '.join(sorted(briefing.editable))}.\n\n```\n{failure}\n```"
    )


def merge_text(merge: Merge) -> str:
    """What to do about two changes that conflict."""
    return (
        f"# Bring two changes of `{merge.briefing.task}` together\n\n"
        "The files hold main. Put the other change on top of it, so that both take effect. "
        f"Edit only: {', '.join(sorted(merge.briefing.editable))}.\n\n"
        f"The other change: {merge.duty.plan.change} ({merge.duty.plan.mechanism})\n\n"
        f"## What main changed since\n\n```diff\n{merge.main_diff}\n```\n\n"
        f"## The other change\n\n```diff\n{merge.their_diff}\n```"
    )


def recheck_text(briefing: Briefing, duty: Recheck) -> str:
    """What to do about a technique that others have seen work and that regressed here."""
    tried = next((past for past in briefing.history if past.id == duty.experiment), None)
    return (
        f"# Check `{duty.technique}` again on `{briefing.task}`\n\nIt has evidence from the field and regressed here. "
        "Compare what the technique asks for with the source and with what was seen, and look for an orthogonal "
        "fault.\n\n"
        f"The try: {past_line(tried) if tried else duty.experiment}"
    )


def reflect_text(chronicle: Chronicle) -> str:
    """What to do for research: the record, and nothing else."""
    floors = [f"{device}: noise floor {floor:.2%}" for device, floor in chronicle.floors.items()]
    return "\n\n".join(
        part
        for part in (
            f"# Read the record of the campaign on `{chronicle.task}` ({chronicle.language})",
            "Say what it shows, why it is so, and what to do next. You are given nothing but the record.",
            bullets("Devices", floors),
            bullets("Experiments, newest last", [past_line(past) for past in chronicle.history]),
        )
        if part
    )


def plan_schema() -> str:
    """The plan's fields as JSON schema."""
    return json.dumps(Plan.model_json_schema(), indent=1)


def _standing(briefing: Briefing) -> Iterable[str]:
    yield f"`cell` (position/phase) is '{briefing.position.value}/{briefing.phase.value}'"
    for name, dims in briefing.workloads.items():
        yield f"workload {name}: " + ", ".join(f"{key} = {value}" for key, value in dims.items())
    if briefing.direction:
        yield f"your direction: {briefing.direction}"
    if briefing.allowed_categories:
        yield f"categories of your direction: {', '.join(briefing.allowed_categories)}"
    if briefing.profile is not None:
        yield from in_short(briefing.profile)
        yield from (f"compiler: {remark}" for remark in briefing.profile.remarks[:8])


def _closed(briefing: Briefing) -> Iterable[str]:
    yield from (f"category {name}: closed for this experiment" for name in briefing.closed_categories)
    yield from (f"technique {name}: abandoned after crashes" for name in briefing.abandoned)
    for pair in briefing.bad_pairs:
        yield f"{pair.technique} together with {', '.join(sorted(set(pair.others.values())))}: {pair.why}"


def _due(briefing: Briefing) -> Iterable[str]:
    for lift in briefing.lifts:
        yield f"technique {lift.technique} ({lift.category})" + (f"; needs {lift.needs}" if lift.needs else "")
    for item in briefing.sweep:
        listed = f" (techniques: {', '.join(item.techniques)})" if item.techniques else ""
        yield f"sweep item {item.name}: {item.title}{listed}; put its name into `sweep`"


def _owed(briefing: Briefing) -> str:
    found = briefing.search
    if found is None:
        return ""
    read = ", ".join(source.locator for source in found.sources)
    return (
        f"## Follow your search\n\n`cites` must be '{found.id}'. It chose {found.technique}: {found.why}\n"
        f"Put the one source that the change rests on into `source`: {read}"
    )


def past_line(past: PastExperiment) -> str:
    """One experiment in one line."""
    gain = "" if past.gain is None else f" {past.gain:+.1%} [{past.low:+.1%}, {past.high:+.1%}]"
    why = "" if past.verdict is Verdict.KEEP else f": {past.reason}"
    return f"{past.plan.technique} ({past.plan.category}), {past.plan.change}: {past.verdict.value}{gain}{why}"


def bullets(title: str, lines: Iterable[str]) -> str:
    """A titled list; empty when it has no lines."""
    listed = "\n".join(f"- {line}" for line in lines)
    return f"## {title}\n\n{listed}" if listed else ""

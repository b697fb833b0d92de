"""Notes on rounds: the plan and the results of each, and a summary. Pure, like all notes."""

from protocol import events as ev
from protocol.record import DirectionState
from protocol.state import CampaignState
from team.report import wording as w
from team.report.levels import main_speedup
from team.report.notes_text import cell, markdown_table


def round_notes(state: CampaignState) -> dict[str, str]:
    """``team_notes/roundN_plan.md`` of every round with directions, ``roundN_results.md`` of every one that ended."""
    rounds: dict[int, list[DirectionState]] = {}
    for direction in state.directions.values():
        rounds.setdefault(direction.claim.round, []).append(direction)
    texts = {f"team_notes/round{number}_plan.md": _plan(state, number, of) for number, of in rounds.items()}
    for ended in state.round_log:
        claims = rounds.get(ended.number, [])
        texts[f"team_notes/round{ended.number}_results.md"] = _results(state, ended, claims)
    return {**texts, "team_notes/summary.md": _summary(state)}


def _plan(state: CampaignState, number: int, directions: list[DirectionState]) -> str:
    base = state.round_mains[number - 1] if number <= len(state.round_mains) else state.main
    claims = [direction.claim for direction in directions]
    rows = [(c.id, c.owner, c.name, ", ".join(c.allowed), ", ".join(c.forbidden), c.about) for c in claims]
    table = markdown_table(("direction", "owner", "name", "may touch", "must not touch", "about"), rows)
    return f"# Round {number}: plan\n\nBase: `{w.plain(base)}`\n\n{table}\n"


def _results(state: CampaignState, ended: ev.RoundEnded, directions: list[DirectionState]) -> str:
    recap = "\n".join(f"- {cell(line)}" for line in ended.recap)
    rows = [
        (d.claim.id, d.claim.owner, d.claim.name, d.standing.value, str(d.tries), str(d.keeps), d.why)
        for d in directions
    ]
    table = markdown_table(("direction", "owner", "name", "standing", "tries", "faster", "why"), rows)
    main = state.round_mains[ended.number]
    return f"# Round {ended.number}: results\n\n{recap}\n\n{table}\n\nMain at its end: `{w.plain(main)}`\n"


def _summary(state: CampaignState) -> str:
    outcomes = ", ".join(f"{one.number}: {one.outcome}" for one in state.round_log) or "none ended yet"
    kept = sum(1 for one in state.findings if one.kind == "gain")
    lines = [
        f"# Summary: {cell(state.started.task)}",
        "",
        f"- main: `{w.plain(state.main)}`, {w.interval(main_speedup(state).estimate)} over the baseline",
        f"- experiments: {len(state.verdicts)}, of which kept: {kept}, landed: {len(state.landed)}",
        f"- rounds and their outcomes: {outcomes}",
        f"- team phase: {cell(state.team_over) or 'goes on'}",
        f"- campaign: {cell(state.finished) or 'goes on'}",
        "",
        "## What did not work",
        "",
        *([f"- {cell(f'{f.technique}: {f.source}')}" for f in state.findings if _failed(f.kind)] or ["Nothing yet."]),
    ]
    return "\n".join(lines) + "\n"


def _failed(kind: str) -> bool:
    return kind in ("no gain", "wrong", "tampered", "not landed")

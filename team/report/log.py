"""``kernelteam log``: one row per experiment, by number and without gaps, also those in flight and lost."""

import math
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from protocol.messages import Estimate, Measurement
from protocol.state import CampaignState, ExperimentState
from team.report import wording as w
from team.report.lines import verdict_style
from team.report.reading import device_of, read_story

Row = dict[str, Any]


def log_rows(run_dir: Path) -> list[Row]:
    """The rows of the campaign in ``run_dir``; a ``UserError`` when there is none. See ``rows_of`` for the keys."""
    return rows_of(read_story(run_dir).state)


def rows_of(state: CampaignState) -> list[Row]:
    """One JSON-ready row per experiment, by number; those that have no plan yet come last and have none.

    - ``number`` (None while planning), ``id``, ``agent``, ``role``, ``device``, ``base``, ``commit``
    - ``direction``: name of the direction that it belongs to, ``round``: that direction's; "" and None without one
    - ``state``: planning, running or judged
    - ``technique``, ``category``, ``change``, ``expected_gain`` (log), ``rewrite``, ``cites``, ``cell``: of the plan
    - ``parameters``; ``screened``: list of ``[parameters, log gain or None]``; ``refused_plans``: reasons
    - ``verdict`` ("" while running), ``reason``, ``outcome``, ``detail``
    - ``speedup``, ``low``, ``high``: plain ratios against ``base``, None when not measured; ``pairs``, ``restarts``
    - ``workloads``: name -> ``{speedup, low, high}``
    - ``errors``: workload -> output -> largest error as a share of its tolerance
    - ``landing``: "", queued, landed or "refused: why"; ``landed``: bool; ``landed_commit``
    - ``seconds``: wall time by part; ``wall_s``: from duty to verdict; ``started``, ``ended``: seconds since 1970
    - ``dollars``
    """
    landed = {body.experiment: body.commit for body in state.landed}
    rows = [_row(state, experiment, landed) for experiment in state.experiments.values()]
    return sorted(rows, key=lambda row: row["number"] or math.inf)


def _row(state: CampaignState, experiment: ExperimentState, landed: dict[str, str]) -> Row:
    member = state.agents[experiment.agent].member
    return {
        "number": experiment.number or None,
        "id": experiment.id,
        "agent": experiment.agent,
        "role": member.role.value,
        "device": device_of(experiment.measurement, member.device),
        "base": experiment.base,
        "commit": experiment.commit,
        **_direction(state, experiment),
        "state": _standing(experiment),
        **_plan(experiment),
        **_result(experiment),
        "landing": experiment.landing,
        "landed": experiment.id in landed,
        "landed_commit": landed.get(experiment.id, ""),
        **_costs(experiment),
    }


def _direction(state: CampaignState, experiment: ExperimentState) -> Row:
    found = state.directions.get(experiment.direction)
    return {"direction": found.claim.name if found else "", "round": found.claim.round if found else None}


def _standing(experiment: ExperimentState) -> str:
    if experiment.verdict is not None:
        return "judged"
    return "running" if experiment.plan is not None else "planning"


def _plan(experiment: ExperimentState) -> Row:
    plan = experiment.plan
    return {
        "technique": plan.technique if plan else "",
        "category": plan.category if plan else "",
        "change": plan.change if plan else "",
        "expected_gain": plan.expected_gain if plan else None,
        "rewrite": plan.rewrite if plan else "",
        "cites": plan.cites if plan else "",
        "cell": plan.cell if plan else "",
        "parameters": dict(experiment.parameters),
        "screened": [[dict(parameters), gain] for parameters, gain in experiment.screened],
        "refused_plans": list(experiment.refused),
    }


def _result(experiment: ExperimentState) -> Row:
    measurement, overall = experiment.measurement, experiment.overall
    return {
        "verdict": experiment.verdict.value if experiment.verdict else "",
        "reason": experiment.reason,
        "outcome": measurement.outcome.value if measurement else "",
        "detail": measurement.detail if measurement else "",
        **_ratios(overall),
        "pairs": overall.pairs if overall else 0,
        "restarts": overall.restarts if overall else 0,
        "workloads": {name: _ratios(estimate) for name, estimate in experiment.workloads.items()},
        "errors": _errors(measurement),
    }


def _errors(measurement: Measurement | None) -> Row:
    checks = measurement.checks if measurement else ()
    return {check.workload: dict(check.outputs) or {"": check.worst} for check in checks}


def _ratios(estimate: Estimate | None) -> Row:
    if estimate is None:
        return {"speedup": None, "low": None, "high": None}
    return {"speedup": w.ratio(estimate.gain), "low": w.ratio(estimate.low), "high": w.ratio(estimate.high)}


def _costs(experiment: ExperimentState) -> Row:
    return {
        "seconds": dict(experiment.measurement.seconds) if experiment.measurement else {},
        "wall_s": experiment.ended - experiment.started if experiment.ended else None,
        "started": experiment.started,
        "ended": experiment.ended or None,
        "dollars": experiment.dollars,
    }


_COLUMNS = ("#", "agent", "device", "verdict", "speedup", "commit")


def log_lines(rows: list[Row]) -> Group:
    """The rows for a terminal: a line of figures each, which 80 columns hold, and under it the idea and the reason."""
    figures = [_figures(row) for row in rows]
    head = [Text(name, "dim") for name in _COLUMNS]
    widths = [max(cell.cell_len for cell in column) for column in zip(head, *figures, strict=True)]
    parts: list[Text | Padding] = [_joined(head, widths)]
    for row, cells in zip(rows, figures, strict=True):
        parts += [_joined(cells, widths), Padding(Text(_told(row), "dim"), (0, 0, 0, widths[0] + 2))]
    return Group(*parts)


def _joined(cells: list[Text], widths: list[int]) -> Text:
    """One line: the number to the right, all else to the left."""
    number, *others = (cell.copy() for cell in cells)
    number.align("right", widths[0])
    for cell, width in zip(others, widths[1:], strict=True):
        cell.align("left", width)
    line = Text("  ").join([number, *others])
    line.rstrip()
    return line


def _figures(row: Row) -> list[Text]:
    verdict = row["verdict"] or row["state"]
    speedup = w.speedup(row["speedup"])
    if row["speedup"] is not None:
        speedup += f" [{w.speedup(row['low'])[:-1]}, {w.speedup(row['high'])[:-1]}]"
    return [
        Text(str(row["number"] or "")),
        Text(w.plain(row["agent"]), "cyan"),
        Text(w.short_device(row["device"])),
        Text(verdict + (" landed" if row["landed"] else ""), _style(row)),
        Text(speedup),
        Text(w.short_commit(row["landed_commit"] or row["commit"]), "bold" if row["landed"] else "dim"),
    ]


def _told(row: Row) -> str:
    """The idea, with its values, and why it was judged so."""
    values = w.parameters(row["parameters"])
    idea = row["technique"] + (f" ({values})" if values else "")
    return w.plain(": ".join(part for part in (idea, row["reason"] + _landing(row)) if part))


def _landing(row: Row) -> str:
    """What became of a kept experiment that is not on main."""
    if row["landed"] or not row["landing"]:
        return ""
    return f"; landing {row['landing']}"


def _style(row: Row) -> str:
    return verdict_style(row["verdict"] or None)

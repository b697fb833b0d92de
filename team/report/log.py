"""``kernelteam log``: one row per experiment, by number and without gaps, also those in flight and lost."""

import math
from pathlib import Path
from typing import Any

from rich.table import Table
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


def log_table(rows: list[Row], width: int | None = None) -> Table:
    """The rows for a terminal; the reason takes the width that is left."""
    table = Table(box=None, pad_edge=False, header_style="dim", width=width)
    for name in ("#", "agent", "device", "verdict", "speedup", "idea", "commit", "why"):
        table.add_column(name, justify="right" if name == "#" else "left", no_wrap=name != "why", overflow="ellipsis")
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> list[Text]:
    verdict = row["verdict"] or row["state"]
    figures = w.speedup(row["speedup"])
    if row["speedup"] is not None:
        figures += f" [{w.speedup(row['low'])[:-1]}, {w.speedup(row['high'])[:-1]}]"
    commit = w.short_commit(row["landed_commit"] or row["commit"])
    values = w.plain(w.parameters(row["parameters"]))
    return [
        Text(str(row["number"] or "")),
        Text(w.plain(row["agent"]), "cyan"),
        Text(w.short_device(row["device"])),
        Text(verdict + (" landed" if row["landed"] else ""), _style(row)),
        Text(figures),
        Text(w.plain(row["technique"]) + (f" ({values})" if values else "")),
        Text(commit, "bold" if row["landed"] else "dim"),
        Text(w.plain(row["reason"] + _landing(row))),
    ]


def _landing(row: Row) -> str:
    """What became of a kept experiment that is not on main."""
    if row["landed"] or not row["landing"]:
        return ""
    return f"; landing {row['landing']}"


def _style(row: Row) -> str:
    return verdict_style(row["verdict"] or None)

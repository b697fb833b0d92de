"""The notes that a campaign leaves in the repository, as texts by path. Pure: the same state gives the same notes.

Versions count as the perf log does: ``v1`` is the baseline, ``v(n+1)`` is experiment ``n``. The coordinator writes
these when it lands; a row of the perf log never changes once it is there, so the file only grows above its staircase.
"""

from protocol import events as ev
from protocol.messages import Estimate, Plan, ProfileReport, WorkloadCheck
from protocol.state import CampaignState, ExperimentState
from team.report import wording as w
from team.report.levels import main_speedup, main_steps
from team.report.notes_text import cell, markdown_table
from team.report.round_notes import round_notes
from team.report.setup import blocks
from team.report.staircase import ascii_staircase

_LOG_COLUMNS = (
    "version", "agent", "commit", "verdict", "speedup [interval]", "min", "max",
    "change", "category", "profile", "next idea",
)  # fmt: skip


def notes(state: CampaignState, since: int = 0) -> dict[str, str]:
    """Every note by its path relative to the task folder; empty before the campaign has started.

    ``since``: verdicts whose own notes are written already and left out here, for a plan and a result never change.
    """
    if state.start is None:
        return {}
    texts = {
        "notes/perf_log.md": perf_log(state),
        "team_notes/current_baseline.md": current_baseline(state),
        "team_notes/merge_log.md": merge_log(state),
    }
    texts["notes/setup.md"] = _setup(state.started)
    if state.baselines:
        texts["results/all_eval_v1.txt"] = _baseline_eval(state)
    for experiment in [state.experiments[ident] for ident in state.verdicts[since:]]:
        version = version_of(experiment)
        if experiment.plan is not None:
            texts[f"plan/plan_v{version}.md"] = _plan(experiment, experiment.plan)
        texts[f"results/all_eval_v{version}.txt"] = _eval(experiment)
    texts.update(_profiles(state))
    texts.update(round_notes(state))
    return texts


def _setup(started: ev.CampaignStarted) -> str:
    """The blocks of phase A: what is computed, on what, and what is left out of every verdict."""
    parts = [f"# Setup: {cell(started.task)}"]
    parts += [f"## {title}\n\n{markdown_table(('', 'value'), rows)}" for title, rows in blocks(started).items()]
    return "\n\n".join(parts) + "\n"


def version_of(experiment: ExperimentState) -> int:
    """The version of an experiment in the perf log."""
    return experiment.number + 1


def perf_log(state: CampaignState) -> str:
    """The append-only table, one row per verdict in the order they fell, and the staircase of main below it."""
    done = [state.experiments[ident] for ident in state.verdicts]
    rows = [_baseline_row(state), *(_log_row(experiment) for experiment in done)]
    last = max((experiment.number for experiment in done), default=0)
    stairs = "\n".join(ascii_staircase(main_steps(state), last))
    table = markdown_table(_LOG_COLUMNS, rows)
    return f"# Performance log: {cell(state.started.task)}\n\n{table}\n\n## Staircase of main\n\n```\n{stairs}\n```\n"


def _baseline_row(state: CampaignState) -> tuple[str, ...]:
    start = state.started
    noise = ", ".join(f"{w.short_device(d)} {w.percent(n.floor)}" for d, n in state.noise.items())
    about = f"noise floor {noise}" if noise else "not measured yet"
    what = "the kernel as it stood"
    return ("v1", "", w.short_commit(start.commit), "BASELINE", "1.000x", "", "", what, "", about, "")


def _log_row(experiment: ExperimentState) -> tuple[str, ...]:
    plan = experiment.plan
    gains = [estimate.gain for estimate in experiment.workloads.values()]
    return (
        f"v{version_of(experiment)}",
        experiment.agent,
        w.short_commit(experiment.commit),
        experiment.verdict.value if experiment.verdict else "",
        w.interval(experiment.overall),
        w.speedup(w.ratio(min(gains))) if gains else "-",
        w.speedup(w.ratio(max(gains))) if gains else "-",
        _change(experiment),
        plan.category if plan else "",
        f"{plan.bottleneck} ({plan.evidence})" if plan else "",
        plan.fallback if plan else "",
    )


def _change(experiment: ExperimentState) -> str:
    if experiment.plan is None:
        return "(no plan)"
    values = w.parameters(experiment.parameters)
    change = experiment.plan.change + (f" ({values})" if values else "")
    return f"rewrite: {change}" if experiment.plan.rewrite else change


def current_baseline(state: CampaignState) -> str:
    """What every agent's next experiment starts from."""
    main = main_speedup(state)
    on = f" on {w.short_device(main.device)}" if main.device else ""
    landed = [f"{index}. {_landed_line(state, landed)}" for index, landed in enumerate(state.landed, 1)]
    lines = [
        "# Current baseline",
        "",
        f"- main: `{w.plain(state.main)}`",
        f"- speedup over `{w.short_commit(state.started.commit)}`: {w.interval(main.estimate)} ({main.how}{on})",
        "",
        "## What is in it",
        "",
        *(landed or ["Nothing has landed yet."]),
    ]
    return "\n".join(lines) + "\n"


def _landed_line(state: CampaignState, landed: ev.Landed) -> str:
    experiment = state.experiments[landed.experiment]
    what = _change(experiment)
    return f"v{version_of(experiment)} {cell(what)} by {cell(experiment.agent)}: {w.interval(landed.gain)}"


def merge_log(state: CampaignState) -> str:
    """What reached main, in order, and what was kept but did not."""
    rows = [_merge_row(state, landed) for landed in state.landed]
    refused = [
        (f"v{version_of(e)}", e.agent, w.short_commit(e.commit), e.landing.removeprefix("refused: "))
        for e in state.judged
        if e.landing.startswith("refused")
    ]
    names = ("version", "agent", "experiment", "before", "main", "verified", "main over baseline")
    landed = markdown_table(names, rows)
    failed = markdown_table(("version", "agent", "commit", "why it did not land"), refused)
    return f"# Merge log\n\n{landed}\n\n## Kept, but not landed\n\n{failed}\n"


def _merge_row(state: CampaignState, landed: ev.Landed) -> tuple[str, ...]:
    experiment = state.experiments[landed.experiment]
    commits = [one.commit for one in state.landed]
    level = sum(one.gain.gain for one in state.landed[: commits.index(landed.commit) + 1])
    return (
        f"v{version_of(experiment)}",
        experiment.agent,
        w.short_commit(experiment.commit),
        w.short_commit(landed.before),
        w.short_commit(landed.commit),
        w.interval(landed.gain),
        w.speedup(w.ratio(level)),
    )


def _plan(experiment: ExperimentState, plan: Plan) -> str:
    fields = (
        ("technique", plan.technique), ("category", plan.category), ("cell", plan.cell),
        ("bottleneck", plan.bottleneck), ("evidence", plan.evidence), ("change", plan.change),
        ("mechanism", plan.mechanism), ("expected gain", w.speedup(w.ratio(plan.expected_gain))),
        ("disproof", plan.disproof), ("fallback", plan.fallback), ("rewrite", plan.rewrite),
        ("differs from the reverted try", plan.differs), ("cites", plan.cites),
    )  # fmt: skip
    lines = [f"- {name}: {cell(text)}" for name, text in fields if text]
    return f"# Plan v{version_of(experiment)} ({cell(experiment.agent)})\n\n" + "\n".join(lines) + "\n"


def _eval(experiment: ExperimentState) -> str:
    verdict = experiment.verdict.value if experiment.verdict else ""
    head = [
        f"version v{version_of(experiment)}  commit {w.plain(experiment.commit)}  base {w.plain(experiment.base)}",
        f"verdict {verdict}: {w.plain(experiment.reason)}",
        f"overall {w.interval(experiment.overall)}",
        "",
    ]
    measurement = experiment.measurement
    checks = {check.workload: check for check in measurement.checks} if measurement else {}
    body = [_eval_line(name, estimate) for name, estimate in experiment.workloads.items()]
    worst = [_check_line(name, check) for name, check in checks.items()]
    return "\n".join([*head, *body, "", *worst]).rstrip() + "\n"


def _check_line(name: str, check: WorkloadCheck) -> str:
    each = ", ".join(f"{w.plain(output)} {error:.3g}" for output, error in check.outputs.items())
    told = f" ({each})" if len(check.outputs) > 1 else ""
    return f"{w.plain(name):<28} {check.checks} outputs, worst error {check.worst:.3g} of tolerance{told}"


def _eval_line(name: str, estimate: Estimate) -> str:
    return f"{w.plain(name):<28} {w.interval(estimate)}"


def _baseline_eval(state: CampaignState) -> str:
    lines = [f"version v1  commit {w.plain(state.started.commit)}  the kernel as it stood", ""]
    for device, baseline in state.baselines.items():
        lines.append(f"on {w.plain(device)}, noise floor {w.percent(baseline.noise.floor)}")
        lines += [f"{w.plain(name):<28} {w.nanoseconds(ns)}" for name, ns in baseline.baseline_ns.items()]
    return "\n".join(lines) + "\n"


def _profiles(state: CampaignState) -> dict[str, str]:
    """Each agent's newest profile, under the version of the commit that it looked at."""
    versions = {experiment.commit: version_of(experiment) for experiment in state.judged}
    landed = {one.commit: version_of(state.experiments[one.experiment]) for one in state.landed}
    versions |= {state.started.commit: 1, **landed}
    seen = [agent.profile for agent in state.agents.values() if agent.profile is not None]
    return {f"profile/profile_v{versions[p.commit]}.md": _profile(p) for p in seen if p.commit in versions}


def _profile(report: ProfileReport) -> str:
    metrics = [f"- {cell(name)}: {value:.4g}" for name, value in report.metrics.items()]
    remarks = [f"- {cell(remark)}" for remark in report.remarks]
    title = f"# Profile of `{w.short_commit(report.commit)}` by {cell(report.tool)}"
    said = f"Position: {report.position.value}. {cell(report.claim)}".rstrip()
    return "\n".join([title, "", said, "", *metrics, *remarks]).rstrip() + "\n"

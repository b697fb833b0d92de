"""The page's sections on results: workloads, experiments, landings, what did not work."""

import math
from collections import defaultdict

from protocol import events as ev
from protocol.messages import Estimate, Verdict
from protocol.state import CampaignState, ExperimentState
from team.report import wording as w
from team.report.glyphs import inline_glyph
from team.report.levels import main_speedup
from team.report.markup import Child, Markup, el
from team.report.reading import Story, device_of
from team.report.table import code, section, small, table, tag

_BAR_WIDTH = 190.0


def workloads(state: CampaignState) -> Markup:
    """Baseline time, time now and speedup of every workload."""
    measured = next((m for m in reversed(state.main_measured) if m.estimate is not None), None)
    estimates = measured.workloads if measured else {}
    top = max((estimate.high for estimate in estimates.values()), default=0.0)
    columns = (
        ("workload", "strong"), ("shape", "soft"), ("weight", "num"), ("baseline", "num"), ("main", "num"),
        ("speedup", "num"), ("", ""),
    )  # fmt: skip
    baseline_ns = _baseline_ns(state, measured.device if measured else "")
    rows = [
        _workload_row(state, name, baseline_ns.get(name), estimates.get(name), top) for name in state.started.workloads
    ]
    about = "Main has not been measured against the baseline directly yet."
    if measured:
        at = f"Commit {w.short_commit(measured.commit)} against the baseline, measured directly"
        about = f"{at} on {measured.device}. The product of the landings, {w.times(w.ratio(measured.product))}, "
        about += "agrees." if measured.agrees else "does not agree."
    return section("Workloads", about, table(columns, rows))


def _baseline_ns(state: CampaignState, device: str) -> dict[str, float]:
    baseline = state.baselines.get(device) or next(iter(state.baselines.values()), None)
    return baseline.baseline_ns if baseline else {}


def _workload_row(
    state: CampaignState, name: str, baseline_ns: float | None, estimate: Estimate | None, top: float
) -> list[Child]:
    ratio = w.ratio(estimate.gain) if estimate else None
    dims = " ".join(f"{key}={value}" for key, value in state.started.workloads[name].items())
    return [
        name,
        dims,
        f"{state.started.weights.get(name, 1.0):g}",
        w.page_time(baseline_ns) if baseline_ns else "-",
        w.page_time(baseline_ns / ratio) if baseline_ns and ratio else "-",
        w.span(estimate),
        _bar(estimate, top) if estimate else None,
    ]


def _bar(estimate: Estimate, top: float) -> Markup:
    """Log gain as a bar from the baseline, with its interval as a whisker."""
    scale = (_BAR_WIDTH - 8.0) / max(top, 0.05)
    low, gain, high = (min(_BAR_WIDTH, max(0.0, v * scale)) for v in (estimate.low, estimate.gain, estimate.high))
    whisker = f"M{low:.1f} 7H{high:.1f}M{low:.1f} 3v8M{high:.1f} 3v8"
    bar = el("rect", x=0, y=2, width=round(gain, 1), height=10, rx=1.5, class_="fill")
    line = el("path", d=whisker, class_="whisker")
    return el("svg", bar, line, class_="key", viewBox=f"0 0 {_BAR_WIDTH:.0f} 14", width=_BAR_WIDTH, height=14)


def landings(story: Story) -> Markup:
    """What reached main, where it was verified, and what was kept but refused."""
    columns = (
        ("#", "num"), ("technique", "strong"), ("agent", "fit"), ("judged", "num"), ("verified", "num"),
        ("on", "fit"), ("main became", "num"), ("commit", "fit"),
    )  # fmt: skip
    verified = {body.experiment: body for _, body in story.of(ev.LandingMeasured)}
    prepared = {body.candidate: body for _, body in story.of(ev.LandingPrepared)}
    level, rows = 0.0, list[list[Child]]()
    for landed in story.state.landed:
        level += landed.gain.gain
        rows.append(_landing_row(story.state, landed, verified.get(landed.experiment), prepared, level))
    about = "Each kept commit was put on main's newest tree and measured again with fresh inputs and processes."
    refused = [e for e in story.state.judged if e.landing.startswith("refused")]
    rest = [el("li", f"#{e.number} {_name(e)}: {e.landing.removeprefix('refused: ')}") for e in refused]
    kept = el("div", "Kept, but not landed:", el("ul", rest), class_="small after") if rest else None
    return section("Landings", about, table(columns, rows, "Nothing has landed."), kept)


def _landing_row(
    state: CampaignState,
    landed: ev.Landed,
    verified: ev.LandingMeasured | None,
    prepared: dict[str, ev.LandingPrepared],
    level: float,
) -> list[Child]:
    experiment = state.experiments[landed.experiment]
    how = prepared[landed.commit].how if landed.commit in prepared else ""
    return [
        str(experiment.number),
        _name(experiment),
        _agent(state, experiment.agent),
        w.span(experiment.overall),
        w.span(landed.gain),
        w.short_device(verified.device) if verified else "-",
        w.times(w.ratio(level)),
        [code(w.short_commit(landed.commit)), small(how) if how not in ("", "cherry-pick") else None],
    ]


def _name(experiment: ExperimentState) -> str:
    return experiment.plan.technique if experiment.plan else "(no plan)"


def _agent(state: CampaignState, name: str) -> Markup:
    return el("span", inline_glyph(list(state.agents).index(name)), " ", name, class_="fit")


def experiments(state: CampaignState) -> Markup:
    """Every experiment with a number, in order."""
    columns = (
        ("#", "num"), ("agent", "fit"), ("idea", "wide"), ("speedup over its base", "num"), ("verdict and why", "wide"),
        ("time", "num"), ("commit", "fit"),
    )  # fmt: skip
    numbered = sorted((e for e in state.experiments.values() if e.number), key=lambda e: e.number)
    about = "One change each, committed before it ran, measured against its base in pairs on its agent's own device."
    return section("Experiments", about, table(columns, [_experiment_row(state, e) for e in numbered]))


def _experiment_row(state: CampaignState, experiment: ExperimentState) -> list[Child]:
    device = device_of(experiment.measurement, state.agents[experiment.agent].member.device)
    commit = experiment.commit
    return [
        str(experiment.number),
        [_agent(state, experiment.agent), small(w.short_device(device))],
        _idea(experiment),
        _figures(experiment),
        [tag(experiment.verdict), _landed_tag(experiment), small(experiment.reason)],
        _seconds(experiment),
        [code(w.short_commit(commit)) if commit else None, small("on ", code(w.short_commit(experiment.base)))],
    ]


def _idea(experiment: ExperimentState) -> Child:
    plan = experiment.plan
    if plan is None:
        return "(no plan)"
    head = [el("span", plan.technique, class_="strong"), el("span", f"  {plan.category}", class_="small")]
    values = w.parameters(experiment.parameters)
    change = f"Rewrite: {plan.rewrite}" if plan.rewrite else plan.change
    return [*head, small(change), small(code(values)) if values else None]


def _landed_tag(experiment: ExperimentState) -> Child:
    word = "not landed" if experiment.landing.startswith("refused") else experiment.landing
    return [" ", el("span", word, class_="tag plain")] if word else None


def _figures(experiment: ExperimentState) -> Child:
    if experiment.overall is None:
        return "-"
    return [w.span(experiment.overall), small(f"{experiment.overall.pairs} pairs")]


def _seconds(experiment: ExperimentState) -> Child:
    if experiment.measurement is None:
        return "-"
    parts = experiment.measurement.seconds
    total = sum(parts.values())
    return el("span", f"{total:.1f} s", title=", ".join(f"{part} {value:.1f} s" for part, value in parts.items()))


def failures(state: CampaignState) -> Markup:
    """Techniques that were tried and never kept."""
    tried: dict[str, list[ExperimentState]] = defaultdict(list)
    for experiment in state.judged:
        if experiment.plan is not None and experiment.verdict is not Verdict.LOST:
            tried[experiment.plan.technique].append(experiment)
    never = {name: tries for name, tries in tried.items() if not any(_kept(e) for e in tries)}
    columns = (("technique", "strong"), ("tries", "num"), ("best", "num"), ("verdicts", "fit"), ("last reason", "wide"))
    about = "Techniques that were tried and never kept. Abandoned ones crashed too often and are closed for the team."
    rows = [_failure_row(state, name, tries) for name, tries in never.items()]
    return section(
        "What did not work", about, table(columns, rows, "Every technique that was tried was kept at least once.")
    )


def _kept(experiment: ExperimentState) -> bool:
    return experiment.verdict is not None and experiment.verdict.kept


def _failure_row(state: CampaignState, name: str, tries: list[ExperimentState]) -> list[Child]:
    best = max(
        (e.overall for e in tries if e.overall), key=lambda o: -math.inf if math.isnan(o.gain) else o.gain, default=None
    )
    verdicts = list(dict.fromkeys(e.verdict for e in tries))
    abandoned = (
        el("span", "abandoned", class_="tag odd") if name in {abandoned for abandoned, _ in state.abandoned} else None
    )
    numbers = ", ".join(f"#{e.number}" for e in tries[:8]) + (" ..." if len(tries) > 8 else "")
    return [
        name,
        str(len(tries)),
        w.span(best),
        [[tag(verdict), " "] for verdict in verdicts] + [abandoned],
        [tries[-1].reason, small(numbers)],
    ]


def headline_speedup(state: CampaignState) -> tuple[str, str]:
    """Main's speedup as the page's large figure (without its sign), and its interval."""
    estimate = main_speedup(state).estimate
    low, high = w.times(w.ratio(estimate.low)), w.times(w.ratio(estimate.high))
    return w.speedup(w.ratio(estimate.gain)).removesuffix("x"), f"{low} to {high}"

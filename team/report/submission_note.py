"""``notes/submission_<tag>.md``: what is submitted, how fast it is, by what, what did not work, what remains."""

from protocol.messages import Verdict
from protocol.state import CampaignState, ExperimentState
from protocol.submission import Average, SubmissionState, by_workload, name_of, overall
from team.report import wording as w
from team.report.notes import version_of
from team.report.notes_text import cell, markdown_table

_REMAINING = 8


def submission_note(state: CampaignState, submission: SubmissionState) -> str:
    """The note as Markdown. The same state gives the same note."""
    started, runs = submission.started, submission.runs
    found = overall(runs)
    parts = [
        f"# {cell(name_of(started.tag, started.version))}: {cell(state.started.task)}",
        f"**{_speedup(found)}** over the baseline, the average of {found.runs} full evaluations "
        f"({_spread(found)}) of `{w.short_commit(started.evaluated)}` against `{w.short_commit(state.started.commit)}` "
        f"in a clean clone on {w.short_device(started.device)}; every workload was correct in each of them.",
        _workloads(state, submission),
        "## Headline techniques\n\n" + _techniques(state),
        "## What did not work\n\n" + _failures(state),
        "## What remains\n\n" + _remains(state),
    ]
    return "\n\n".join(parts) + "\n"


def _speedup(found: Average) -> str:
    return w.speedup(w.ratio(found.gain))


def _spread(found: Average) -> str:
    lowest, highest = w.speedup(w.ratio(found.low)), w.speedup(w.ratio(found.high))
    return f"from {lowest} to {highest}, standard deviation {w.percent(found.spread)}"


def _workloads(state: CampaignState, submission: SubmissionState) -> str:
    rows: list[tuple[str, ...]] = []
    for name, found in by_workload(submission.runs).items():
        dims = " ".join(f"{key}={value}" for key, value in state.started.workloads.get(name, {}).items())
        rows.append((name, dims, _speedup(found), _spread(found)))
    return markdown_table(("workload", "dims", "speedup", "spread"), rows)


def _techniques(state: CampaignState) -> str:
    """What landed, the largest gain first."""
    lines: list[tuple[float, str]] = []
    for landed in state.landed:
        experiment = state.experiments[landed.experiment]
        if experiment.plan is None:
            continue
        told = f"{cell(experiment.plan.technique)}: {cell(experiment.plan.change)}"
        lines.append((-landed.gain.gain, f"- v{version_of(experiment)} {told}, verified {w.interval(landed.gain)}"))
    return "\n".join(line for _, line in sorted(lines)) or "Nothing has landed."


def _failures(state: CampaignState) -> str:
    """Techniques that were tried and never kept, with the last reason."""
    tried: dict[str, list[ExperimentState]] = {}
    for experiment in state.judged:
        if experiment.plan is not None and experiment.verdict is not Verdict.LOST:
            tried.setdefault(experiment.plan.technique, []).append(experiment)
    never = {name: tries for name, tries in tried.items() if not any(e.verdict and e.verdict.kept for e in tries)}
    lines = [f"- {cell(name)}, {_tries(tries)}: {cell(tries[-1].reason)}" for name, tries in never.items()]
    return "\n".join(lines) or "Every technique that was tried was kept at least once."


def _tries(tries: list[ExperimentState]) -> str:
    return "1 try" if len(tries) == 1 else f"{len(tries)} tries"


def _remains(state: CampaignState) -> str:
    """Keeps that did not reach main, searched techniques that nobody tried, and fallbacks of the last plans."""
    lines = [
        f"- v{version_of(e)} {cell(e.plan.technique)} was kept but did not land: "
        f"{cell(e.landing.removeprefix('refused: '))}"
        for e in state.judged
        if e.plan is not None and e.landing.startswith("refused")
    ]
    tried = {e.plan.technique for e in state.judged if e.plan is not None}
    reports = [r for r in state.searches.values() if r.technique not in tried]
    lines += [f"- {cell(r.technique)} was found by a search and not tried: {cell(r.why)}" for r in reports]
    fallbacks = [e.plan.fallback for e in reversed(state.judged) if e.plan and not (e.verdict and e.verdict.kept)]
    lines += [f"- next idea: {cell(text)}" for text in dict.fromkeys(fallbacks)]
    return (
        "\n".join(lines[:_REMAINING]) or f"The campaign ended because {cell(state.finished or 'it was interrupted')}."
    )

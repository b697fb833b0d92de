"""What a person reads: ``summary.md`` of a run and ``analysis.md`` of an iteration, from state and artifacts alone."""

from collections.abc import Iterator
from math import exp
from pathlib import Path
from typing import Any

from team.optimize.artifacts import write_text
from team.optimize.branches import Idea
from team.optimize.evidence import Standing
from team.optimize.session import Session
from team.optimize.state import State

_FRONTIER = 10


def write_summary(folder: Path, state: State) -> None:
    """``summary.md``."""
    write_text(folder / "summary.md", "\n".join(_summary(state)) + "\n")


def _summary(state: State) -> Iterator[str]:
    yield f"# {Path(state.baseline_file_original).name}: {_headline(state)}"
    yield ""
    yield f"- status: {state.run_status}" + (f", {state.stop_reason} ({state.stop_stage})" if state.stop_reason else "")
    yield f"- your shape: {_dims(state.dims)}; numerics: {state.numerics_mode}; mind: {state.options.mind}"
    done = f"{state.verified_iterations} verified of {state.finished_iterations}"
    yield f"- iterations: {done}, {state.iterations_total} allowed"
    yield f"- best: {state.best_file or 'the baseline'}"
    if state.noise is not None:
        yield f"- noise floor of this device and task: {state.noise.floor:.2%}"
    if state.claim:
        yield f"- claim: {state.claim}"
    if state.dollars:
        yield f"- money: {state.dollars:.2f} US dollars"
    yield from (f"- {note}" for note in state.notes)
    yield from _table("Shapes", ("name", "dims", "weight", "bytes"), [
        (w["name"], _dims(w["dims"]), w["weight"], w.get("bytes")) for w in state.workload_matrix
    ])  # fmt: skip
    yield from _table("Iterations", ("iteration", "method", "result", "over the best before", "your shape (ms)"), [
        (row["iter"], ", ".join(row["method_names"]), row["status"], _ratio(row["interval"]), _ms(row["ms"]))
        for row in state.history
    ])  # fmt: skip
    yield from _table("Rooflines", ("iteration", "bound", "share of the roof", "mode"), [
        (row["iter"], row["bound"], _share(row["share_of_roof"]), row["roofline_mode"])
        for row in state.roofline_history
    ])  # fmt: skip
    yield from _table("Methods", ("list", "methods"), [
        ("effective", ", ".join(str(one["method"]) for one in state.effective_methods)),
        ("ineffective", ", ".join(state.ineffective_methods)),
        ("implementation failed", ", ".join(state.implementation_failed_methods)),
        ("unverified", ", ".join(state.unverified_methods)),
        ("selected", ", ".join(state.selected_methods)),
    ])  # fmt: skip
    yield from _table("Frontier: beat its base, was no champion", ("iteration", "method", "gain in its race"), [
        (one["experiment"], one["technique"], f"{exp(one['gain']):.3f}x") for one in state.frontier[:_FRONTIER]
    ])  # fmt: skip


def _headline(state: State) -> str:
    if state.stop_reason:
        return f"stopped: {state.stop_reason}"
    if state.final:
        return f"{_ratio(state.final['full'])} over the baseline at your shape, measured directly"
    if state.global_champion is not None and state.global_champion.iter == 0 and state.finished_iterations:
        return "nothing faster was proven; the baseline stands"
    return state.run_status


def _table(title: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Iterator[str]:
    if not rows:
        return
    yield from ("", f"## {title}", "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}")
    yield from (f"| {' | '.join(str(cell) for cell in row)} |" for row in rows)


def _ratio(found: dict[str, float] | None) -> str:
    return f"{found['speedup']:.3f}x [{found['low']:.3f}, {found['high']:.3f}]" if found else "not timed"


def _ms(value: float | None) -> str:
    return f"{value:.4g}" if value is not None else ""


def _share(value: float | None) -> str:
    return f"{value:.1%}" if value is not None else "unknown"


def _dims(dims: dict[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in dims.items()) or "none"


def write_analysis(
    session: Session, staged: Path, number: int, idea: Idea, standing: Standing, outcome: dict[str, Any]
) -> None:
    """``analysis.md`` of an iteration: evidence, the change and what is on top of it, predicted against actual."""
    write_text(staged / "analysis.md", "\n".join(_analysis(session, number, idea, standing, outcome)) + "\n")


def _analysis(session: Session, number: int, idea: Idea, standing: Standing, outcome: dict[str, Any]) -> Iterator[str]:
    row, roof, plan = outcome["row"], standing.roofline, idea.plan
    yield f"# Iteration {number}: {plan.change}"
    yield from ("", "## Where the kernel stood", "")
    yield f"- {standing.profile.tool}: {standing.profile.claim}"
    yield f"- bound: {roof['bound']}; {_share(roof['share_of_roof'])} of the {roof['roof'] or 'unknown'} roof"
    for axis in ("compute", "memory", "latency"):
        gap = roof[f"delta_{axis}"]
        yield f"- {axis}: gap {_share(gap)}, budget {standing.budget.get(axis, 0)}"
    yield from (f"- {remark}" for remark in standing.profile.remarks[:5])
    yield from ("", "## The change of every branch", "")
    yield f"- technique: {plan.technique} ({plan.category})"
    for name in ("bottleneck", "evidence", "mechanism", "disproof", "fallback", "differs"):
        if said := getattr(plan, name):
            yield f"- {name}: {said}"
    yield from (f"- passed over {one.name}: {one.kind.value}, {one.reason}" for one in plan.passed_over)
    if further := idea.plans[1:]:
        yield from ("", f"## On top of it, from branch b{idea.plain + 1} on", "")
        yield from (f"- {one.technique} ({one.category}): {one.change}; {one.mechanism}" for one in further)
    yield from ("", "## Predicted and actual", "")
    yield f"- the champion holds: {', '.join(row['method_names'])}"
    yield f"- predicted of {plan.technique}: {exp(plan.expected_gain):.3f}x; at your shape: {_ratio(row['interval'])}"
    yield f"- all shapes, weighted: {_ratio(row['overall'])}"
    yield f"- {outcome['verdict']}: {outcome['reason']}"
    yield f"- branches, with what the race saw of each: branch_results.json; frontier: {len(session.state.frontier)}"

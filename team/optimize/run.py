"""A whole run: gates, baseline, iterations, the last measurement, the summary. New, or resumed where it stopped."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from protocol.messages import Outcome
from protocol.sequential import decide
from team.errors import UserError
from team.judge.failures import BaselineBroken
from team.optimize import records
from team.optimize.ablation import ablate_champion
from team.optimize.artifacts import Folder, write_json
from team.optimize.baseline import at_gate, policy_of, prepare, verify_baseline, write_environment
from team.optimize.gates import Exit, Stopped
from team.optimize.hardware import device_of, hardware_gate, use_chosen_tools
from team.optimize.iteration import iterate, left_behind
from team.optimize.options import Options
from team.optimize.session import Session, opened
from team.optimize.state import Store, held, read_state
from team.optimize.summary import write_summary
from team.scope import refuse_unknown_mind

Say = Callable[[str], None]


def diagnose(options: Options, say: Say) -> int:
    """``--diagnostic``: what the hardware gate sees. It reports and authorizes nothing."""
    use_chosen_tools(options)
    try:
        environment = hardware_gate(options)
    except Stopped as stopped:
        environment = stopped.environment
        say(str(stopped))
    write_environment(options, environment)
    for name in ("required_checks", "stop_reason", "hardware_attempts", "primary_sm_arch", "ncu"):
        say(f"{name}: {environment[name]}")
    return Exit.VERIFIED


def begin(options: Options, say: Say) -> int:
    """Start a run; the exit code."""
    refuse_unknown_mind(options.mind, options.mind_options)
    policy_of(options)
    use_chosen_tools(options)
    try:
        environment = hardware_gate(options)
    except Stopped as stopped:
        write_environment(options, stopped.environment)
        say(f"stopped at {stopped.stage}: {stopped}")
        return stopped.exit_code
    write_environment(options, environment)
    try:
        folder, store = prepare(options, environment, say)
    except Stopped as stopped:
        say(f"stopped at {stopped.stage}: {stopped}")
        return stopped.exit_code
    say(f"run: {folder.path}")
    return _drive(folder, store, say)


def resume(path: Path, say: Say) -> int:
    """Go on with a run that was broken off; the exit code."""
    if not path.is_dir():
        raise UserError(f"There is no run {path}.", "Name a folder run_YYYYMMDD_HHMMSS of: kernelteam optimize")
    folder = Folder(path.resolve())
    state = read_state(folder)
    if state.run_status == "stopped":
        raise UserError(
            f"The run {folder.path.name} was stopped at a gate: {state.stop_reason}.",
            f"Mend that ({folder.path / 'stop.json'} says more) and start a new run.",
        )
    if state.run_status == "completed":
        say(f"the run is complete: {folder.path / 'summary.md'}")
        return Exit.VERIFIED
    if not (folder.task / ".git").is_dir():
        raise UserError(f"The run {folder.path.name} ended before its task was made.", "Start a new run.")
    use_chosen_tools(state.options)
    return _drive(folder, Store(folder, state), say)


def _drive(folder: Folder, store: Store, say: Say) -> int:
    with held(folder.path):
        try:
            device = device_of(store.state.options)
            with opened(folder, store, policy_of(store.state.options), device, say) as session:
                _run(session)
        except Stopped as stopped:
            at_gate(folder, store, stopped)
            say(f"stopped at {stopped.stage}: {stopped}")
            return stopped.exit_code
    say(f"summary: {folder.path / 'summary.md'}")
    return Exit.VERIFIED


def _run(session: Session) -> None:
    state = session.state
    if not state.baseline_verified:
        verify_baseline(session)
    state.run_status = "running"
    session.store.save()
    for number in range(state.finished_iterations + 1, state.iterations_total + 1):
        if left_behind(session, number):
            continue
        shutil.rmtree(session.folder.iteration(number), ignore_errors=True)
        if not iterate(session, number):
            break
        write_summary(session.folder.path, state)
    _refuse_fruitless(session)
    _measure_directly(session)
    ablate_champion(session)
    state.run_status, state.generation_allowed = "completed", False
    session.store.save()
    write_summary(session.folder.path, state)


def _refuse_fruitless(session: Session) -> None:
    """A run of which no iteration had a valid branch has verified nothing beyond its baseline."""
    state = session.state
    if state.finished_iterations and not state.verified_iterations:
        last = state.history[-1]
        detail = f"{state.finished_iterations} iterations, the last: {last['failure'] or last['status']}"
        raise Stopped("iteration", "iteration_no_valid_branch", detail, state.finished_iterations)


def _measure_directly(session: Session) -> None:
    """The best against the baseline, in fresh processes: the headline is measured and never multiplied up."""
    state = session.state
    if session.best == state.baseline_commit:
        return
    try:
        seen = session.ask(lambda: session.compare(state.baseline_commit, session.best))
    except BaselineBroken as broken:
        raise Stopped("final", "baseline_timing_invalid", str(broken), state.finished_iterations) from None
    if seen.outcome is not Outcome.MEASURED:
        raise Stopped("final", "iteration_timing_invalid", seen.detail, state.finished_iterations)
    decision = decide(seen.restarts, session.weights, state.noise, session.policy)
    state.final = {
        "full": records.ratio(decision.workloads[session.full]),
        "overall": records.ratio(decision.overall),
        "baseline_ms": records.average_ms(seen, session.full, "base"),
        "best_ms": records.average_ms(seen, session.full, "candidate"),
    }
    told: dict[str, Any] = {**state.final, "decision": decision.model_dump(mode="json")}
    write_json(session.folder.path / "final.json", told)
    found = state.final["full"]
    session.say(f"best over baseline at your shape: {found['speedup']:.3f}x [{found['low']:.3f}, {found['high']:.3f}]")

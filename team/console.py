"""A campaign as its user meets it: the scope to confirm, Ctrl-C once and twice, and the last words."""

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import exp
from pathlib import Path
from types import FrameType

import typer
from rich.console import Console

from protocol.messages import Estimate
from protocol.state import CampaignState
from protocol.steering import Request
from roles.minds.registry import is_free
from team.attribution import ablate_run
from team.errors import UserError
from team.guardian import orphaned
from team.launch import Scope, conduct, prepare, state_of
from team.memory import remember
from team.report.html import write_report
from team.report.live import Tail, follow
from team.report.setup import scope_rows
from team.runs import Run
from team.scope import refuse_unknown_mind
from team.submission import submit_run

out = Console(highlight=False, soft_wrap=True)


def show_scope(scope: Scope) -> None:
    """What is going to happen, in the words that the user can check."""
    spec, policy = scope.spec, scope.policy
    out.print(f"[bold]{spec.name}[/bold]: make {', '.join(spec.editable_files)} faster, on {spec.device}")
    names = [w.name for w in spec.must_pass]
    agreed = scope_rows(names, policy, scope.tooling, scope.run.name, scope.task_folder, scope.submit)
    for name, reason in spec.broken.items():
        out.print(f"  known broken {name}: {reason} (in no verdict)")
    for name, text in agreed:
        out.print(f"  {name:<11} {text}", markup=False)
    for name, text in (*scope.problem.rows(), *scope.hardware.rows()):
        out.print(f"  {name:<16} {text}", markup=False)
    out.print(f"  memory      {scope.advice_note}")
    for advice in scope.advice:
        out.print(
            f"              {advice.word} {advice.technique} ({advice.positives} for, {advice.negatives} against)"
        )
    for member in scope.members:
        out.print(f"  agent       {member.name} thinks with '{member.mind}' on {member.device}")
    out.print(f"  campaign    {scope.run.name}")


def start(scope: Scope, yes: bool, address: str | None) -> int:
    """Confirm, prepare, run to the end, sum up. The exit status."""
    show_scope(scope)
    if not yes and not confirmed([member.mind for member in scope.members], sys.stdin.isatty()):
        return 1
    prepare(scope)
    return go(scope.run, address, resume=False)


def confirmed(minds: Sequence[str], terminal: bool) -> bool:
    """Whether to start. Without a terminal there is nobody to ask: what is free starts, what costs money is refused."""
    if terminal:
        return typer.confirm("Start?", default=True)
    if costly := [mind for mind in minds if not is_free(mind)]:
        raise UserError(
            f"Nobody can confirm this scope, which may cost money (mind '{costly[0]}'): standard input is no terminal.",
            "Start at once with --yes.",
        )
    out.print("  started     without asking: standard input is no terminal, and these minds cost nothing")
    return True


def go(run: Run, address: str | None, resume: bool) -> int:
    """Run a prepared campaign under this terminal."""
    for member in state_of(run).started.members if resume else ():
        refuse_unknown_mind(member.mind, member.options)  # a key that was there once may be missing now
    stopped = threading.Event()
    tail = _tail(run, resume)  # before anything starts, so that what is mended at the start is told

    def watch(over: threading.Event) -> None:
        with _interruptible(run, stopped):  # from here on: Ray has installed its own handlers by now
            follow(run.folder, print, lambda _: over.is_set(), out, tail)

    if resume:
        _remember(run)
    try:
        state = conduct(run, address, resume, watch)
    finally:
        _remember(run)
    sum_up(run, ablated(run, state))
    if (state.wrap_up or (state.started.submit and not state.stop)) and state.finished:
        _submit(run, state)
    return 130 if stopped.is_set() else 0


def ablated(run: Run, state: CampaignState) -> CampaignState:
    """Take the landings out one by one when the law gives time for it at the end; the state afterwards."""
    minutes = state.policy.ablation_minutes
    if minutes is None or not state.finished or not state.landed:
        return state
    out.print(ablate_run(run, minutes, out.print))
    return state_of(run)


def _submit(run: Run, state: CampaignState) -> None:
    """Phase C as the last phase of a run: it was wrapped up, or started with --submit."""
    if state.main != state.started.commit:
        out.print(submit_run(run, None, "", say=out.print))


def _remember(run: Run) -> None:
    """Write what the campaign taught so far into the strategy memory; a campaign that was killed does so on resume."""
    if trouble := remember(state_of(run)):
        out.print(f"What this campaign taught is not remembered. {trouble}")


def _tail(run: Run, resume: bool) -> Tail:
    """Where to start telling: at the beginning, or, when a campaign goes on, at what is new."""
    tail = Tail(run.folder)
    if resume:
        for _ in tail.fresh():
            pass
    return tail


@contextmanager
def _interruptible(run: Run, asked: threading.Event) -> Iterator[None]:
    """Ctrl-C once drains; twice ends at once. The ledger is valid either way."""

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        run.inbox.leave(Request(kind="stop", why="stopped by the user"))
        out.print("Stopping: what runs is finished and landed. Press Ctrl-C again to end at once.")

    before = signal.signal(signal.SIGINT, on_interrupt)
    terminated = signal.signal(signal.SIGTERM, on_interrupt)
    if orphaned():  # its end was told while Ray was starting, whose handler raises where exceptions are ignored
        on_interrupt(signal.SIGTERM, None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, terminated)


def sum_up(run: Run, state: CampaignState) -> None:
    """The last words: why it ended, what was won, where the chart is, and what to type next."""
    write_report(run.folder, run.report)
    kept = sum(e.verdict is not None and e.verdict.kept for e in state.experiments.values())
    out.print(f"\nEnded: {state.finished or state.stop or 'interrupted'}.")
    out.print(f"{len(state.judged)} experiments, {kept} kept, {len(state.landed)} landed on main.")
    if state.main == state.started.commit:
        out.print("Main is still the baseline: nothing was faster beyond doubt.")
    else:
        out.print(f"Winning commit {state.main[:12]}: {_headline(state)}")
    out.print(f"Chart and evidence: {run.report}")
    if state.main != state.started.commit:
        out.print(f"Bring it to your repository: kernelteam submit {_argument(run)}")


def _headline(state: CampaignState) -> str:
    last = state.main_measured[-1] if state.main_measured else None
    if last is None or last.estimate is None or last.commit != state.main:
        return "not yet measured against the baseline directly"
    doubt = "" if last.agrees else f" (the product of its steps says {exp(last.product):.3f}x: they disagree)"
    return f"{_speedup(last.estimate)} over the baseline, measured directly on {last.device}{doubt}"


def _speedup(estimate: Estimate) -> str:
    return f"{exp(estimate.gain):.3f}x [{exp(estimate.low):.3f}, {exp(estimate.high):.3f}]"


def _argument(run: Run) -> str:
    return run.name


def report_path(run: Run, path: Path | None) -> Path:
    """Write the report of a campaign, alive or dead."""
    state_of(run)
    return write_report(run.folder, path or run.report)


def watch_elsewhere(run: Run) -> None:
    """Follow a campaign that another process runs, until it ends or Ctrl-C."""
    from contextlib import suppress

    with suppress(KeyboardInterrupt):
        follow(run.folder, print, lambda state: bool(state.finished), out)

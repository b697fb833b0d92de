"""Following a campaign while it runs: lines as they happen, and on a terminal a view below them that stays in place."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event as Pause

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.text import Text

from protocol.events import Event
from protocol.ledger import Ledger, LedgerError
from protocol.state import CampaignState, apply
from team.report.levels import main_steps
from team.report.lines import line, styled
from team.report.reading import LEDGER, coordinator_pid
from team.report.staircase import spark
from team.report.status import Status, status_of
from team.report.status_view import agents_table, budget_view, headline

POLL_SECONDS = 0.2
_BIRTH_SECONDS = 10.0
_MAX_AGENTS = 12
_SPARK_WIDTH = 60


class Tail:
    """The events of a ledger as they come, and the state after the last one. May be followed, left, and followed again.

    A ledger that does not exist yet has no events; one that cannot be read is a ``LedgerError``.
    """

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.state = CampaignState()
        self._ledger: Ledger | None = None
        self._patient_until = time.monotonic() + _BIRTH_SECONDS

    def fresh(self) -> Iterator[Event]:
        """Events that were not seen before; ``state`` is the one after each as it is yielded."""
        ledger = self._opened()
        if ledger is None:
            return
        try:
            for event in ledger.events(after=self.state.last_seq, samples=False):
                apply(self.state, event)
                yield event
        except LedgerError:
            if not self._being_born():
                raise

    def close(self) -> None:
        """Close the file; the next ``fresh`` opens it again."""
        if self._ledger is not None:
            self._ledger.close()
        self._ledger = None

    def _opened(self) -> Ledger | None:
        path = self.run_dir / LEDGER
        if self._ledger is None and path.is_file():
            self._ledger = Ledger(path)
        return self._ledger

    def _being_born(self) -> bool:
        """Whether the file is so young that its writer may not have made the table yet."""
        return self.state.last_seq == 0 and time.monotonic() < self._patient_until


def follow(
    run_dir: Path,
    on_line: Callable[[str], None],
    stop_when: Callable[[CampaignState], bool],
    console: Console | None = None,
    tail: Tail | None = None,
) -> CampaignState:
    """Tell what happens until ``stop_when`` says so of the state; the last state.

    Lines go to ``on_line``, or, when ``console`` is a terminal, onto it in colours above a live view. Whatever ends
    this, also Ctrl-C, the terminal is left as it was. Give the same ``tail`` again to go on where a call ended.
    """
    tail = tail or Tail(run_dir)
    pause = Pause()
    with _shown(tail, on_line, console) as (say, refresh):
        while True:
            over = stop_when(tail.state)
            for event in tail.fresh():
                say(event)
            refresh()
            if over:
                break
            pause.wait(POLL_SECONDS)
    tail.close()
    return tail.state


Say = Callable[[Event], None]
Refresh = Callable[[], None]


@contextmanager
def _shown(tail: Tail, on_line: Callable[[str], None], console: Console | None) -> Iterator[tuple[Say, Refresh]]:
    """How to say an event and how to refresh the view, for a terminal or for plain lines."""
    if console is None or not console.is_terminal:
        yield lambda event: _say_plain(on_line, event, tail.state), lambda: None
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield (
            lambda event: _say_styled(console, event, tail.state),
            lambda: live.update(view(tail.state, console, coordinator_pid(tail.run_dir), time.time()), refresh=True),
        )


def _say_plain(on_line: Callable[[str], None], event: Event, state: CampaignState) -> None:
    said = line(event, state)
    if said is not None:
        on_line(said)


def _say_styled(console: Console, event: Event, state: CampaignState) -> None:
    said = styled(event, state, console.width)
    if said is not None:
        console.print(said)


def view(state: CampaignState, console: Console, pid: int | None, now: float) -> RenderableType:
    """Headline, the staircase so far, budget and who does what; at most a dozen agents, busy ones first."""
    if state.start is None:
        return Text("waiting for the campaign to begin", "dim")
    status = status_of(state, pid, now)
    hidden = _shorten(status)
    parts = [Rule(style="dim"), headline(status), _staircase(state, console), budget_view(status), agents_table(status)]
    return Group(*parts, *([Text(f"and {hidden} more agents", "dim")] if hidden else []))


def _shorten(status: Status) -> int:
    """Keep the agents that fit; how many were left out."""
    agents: list[Status] = status["agents"]
    hidden = max(0, len(agents) - _MAX_AGENTS)
    if hidden:
        status["agents"] = sorted(agents, key=lambda agent: not agent["duty"])[:_MAX_AGENTS]
    return hidden


def _staircase(state: CampaignState, console: Console) -> Text:
    steps = main_steps(state)
    at = dict(steps)
    levels: list[float] = []
    for number in range(max(state.numbered, steps[-1][0]) + 1):
        levels.append(at.get(number, levels[-1] if levels else 0.0))
    drawn = spark(levels, min(_SPARK_WIDTH, max(8, console.width - 20)), console.encoding.startswith("utf"))
    return Text.assemble(("main over experiments  ", "dim"), (drawn, "green"))

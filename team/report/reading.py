"""Reading a campaign that someone else writes, or wrote: its events, its state, and whether its coordinator lives.

A run directory holds ``ledger.sqlite`` and ``coordinator.lock``; the coordinator keeps an exclusive flock on the latter
for as long as it lives and writes its pid into it.
"""

import fcntl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from protocol import events as ev
from protocol.ledger import Ledger
from protocol.messages import Measurement
from protocol.snapshot import glance, restore
from protocol.state import CampaignState, fold
from team.errors import UserError

LEDGER = "ledger.sqlite"
LOCK = "coordinator.lock"

_B = TypeVar("_B", bound=ev.Body)


@dataclass(frozen=True)
class Story:
    """A campaign as it is told: its state, and the events in order for what the fold forgets."""

    state: CampaignState
    events: tuple[ev.Event, ...]

    def of(self, kind: type[_B]) -> list[tuple[ev.Event, _B]]:
        """Events of one kind with their bodies, in order."""
        return [(event, event.body) for event in self.events if isinstance(event.body, kind)]


def tell(events: Iterable[ev.Event]) -> Story:
    """The story of these events."""
    kept = tuple(events)
    return Story(fold(kept), kept)


def read_story(run_dir: Path) -> Story:
    """The story in a run directory, without raw samples; a ``UserError`` when there is no ledger in it."""
    with _ledger_in(run_dir) as ledger:
        return tell(ledger.events(samples=False))


def read_state(run_dir: Path) -> CampaignState:
    """The state alone, from the newest snapshot on; a ``UserError`` when there is no ledger."""
    with _ledger_in(run_dir) as ledger:
        return restore(ledger)[0]


def glance_at(run_dir: Path) -> CampaignState:
    """The state without its settled records (see ``protocol.snapshot.glance``); a ``UserError`` without a ledger."""
    with _ledger_in(run_dir) as ledger:
        return glance(ledger)


def _ledger_in(run_dir: Path) -> Ledger:
    path = run_dir / LEDGER
    if not path.is_file():
        raise UserError(f"There is no campaign in {run_dir}.", "Start one with: kernelteam run TASK")
    return Ledger(path)


def read_started_story(run_dir: Path) -> Story:
    """Like ``read_story``, for readers that need a campaign's first event; a ``UserError`` when it is not there yet."""
    story = read_story(run_dir)
    if story.state.start is None:
        raise UserError(f"The campaign in {run_dir} has not started yet.", "Try again in a moment.")
    return story


def coordinator_pid(run_dir: Path) -> int | None:
    """The pid of the living coordinator, 0 when it lives but its pid is not written yet, None when it is dead.

    Probes with a shared, non-blocking flock that is given back at once; a coordinator that starts should therefore
    retry its own exclusive flock for a moment before it believes that another one lives.
    """
    try:
        with (run_dir / LOCK).open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                written = lock.read().strip()
                return int(written) if written.isdecimal() else 0
    except FileNotFoundError:
        pass
    return None


def device_of(measurement: Measurement | None, otherwise: str) -> str:
    """The id of the device that a measurement ran on."""
    return measurement.device.id if measurement is not None and measurement.device is not None else otherwise

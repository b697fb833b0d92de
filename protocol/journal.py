"""Group commit: events of many reports wait together and become durable in one transaction.

``append`` numbers and packs events without touching the disk, so the law may go on deciding against the newest state;
``commit`` stores all that wait. Nothing may be acknowledged before the commit that holds it; ``Ledger.append`` is the
same without waiting. After a commit that failed the state is ahead of the disk: every further call raises, and the
process that owns the journal must end and fold the ledger afresh.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from protocol.events import AnyBody, Event
from protocol.ledger import Ledger, LedgerError, Row, Snapshot, numbered, row_of


@dataclass(frozen=True)
class Batch:
    """What one transaction makes durable."""

    rows: list[Row]
    snapshot: Snapshot | None


class Journal:
    """What waits for the disk."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._last = ledger.last()
        self._waiting: list[Row] = []
        self._snapshot: Snapshot | None = None
        self._failed: LedgerError | None = None

    @property
    def last(self) -> int:
        """Sequence number of the newest event, durable or not."""
        return self._last

    @property
    def waits(self) -> bool:
        """Whether something is not durable yet and no commit has taken it along."""
        return bool(self._waiting) or self._snapshot is not None

    def append(self, time: float, entries: Sequence[tuple[str, AnyBody]]) -> list[Event]:
        """Number ``(agent, body)`` entries and keep them for the next commit. ``WireError``: nothing was kept."""
        self._live()
        events = numbered(self._last, time, entries)
        self._waiting += [row_of(event) for event in events]
        self._last += len(events)
        return events

    def remember(self, snapshot: Snapshot) -> None:
        """Keep a snapshot of the state after the newest event for the next commit."""
        self._live()
        self._snapshot = snapshot

    def take(self) -> Batch:
        """What waits now, for one ``store``; it waits no more. To be called where ``append`` is, in the same thread."""
        self._live()
        taken, self._waiting, self._snapshot = Batch(self._waiting, self._snapshot), [], None
        return taken

    def store(self, batch: Batch) -> None:
        """Make a batch durable, in any thread, one at a time. Raises ``LedgerError``, and from then on always."""
        self._live()
        try:
            self._ledger.store(batch.rows, batch.snapshot)
        except LedgerError as error:
            self._failed = error
            raise

    def commit(self) -> None:
        """Make everything durable that waits now."""
        self.store(self.take())

    def _live(self) -> None:
        if self._failed is not None:
            raise LedgerError(f"nothing may be decided after a failed commit: {self._failed}")

    # -- reading, as from the ledger

    def events(self, after: int = 0, samples: bool = True) -> Iterator[Event]:
        """The durable events."""
        return self._ledger.events(after, samples)

    def recall(self, code: str, settled: bool = True) -> Snapshot | None:
        """The newest snapshot that this law folded."""
        return self._ledger.recall(code, settled)

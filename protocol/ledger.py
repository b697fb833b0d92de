"""The ledger: one SQLite file per campaign, one table of events, one writer, acknowledged only after commit.

The only class of this package that touches a file. WAL with ``synchronous=FULL``: when ``append`` returns, the events
are on disk, and a reader in another process (``kernelteam status``) sees them, also after every writer has died.

Raw samples, nine tenths of a report, stand in a column of their own (``protocol.columns``), so that whoever needs only
what the state is folded from (``events(samples=False)``) does not read them. Beside the events lies the newest snapshot
of the state: a cache, never a source; see ``protocol.snapshot``.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from pydantic import ValidationError

from protocol.columns import columns, restarts_from, restarts_of_maps
from protocol.events import SCHEMA, AnyBody, Event, body_from
from protocol.messages import Measurement
from protocol.trouble import LedgerTrouble
from protocol.wire import WireError, decode, pack

_TABLE = """
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY,
    time REAL NOT NULL,
    kind TEXT NOT NULL,
    agent TEXT NOT NULL,
    schema INTEGER NOT NULL,
    body BLOB NOT NULL,
    samples BLOB
)
"""
_CACHE = (
    "CREATE TABLE IF NOT EXISTS snapshot (seq INTEGER NOT NULL, code TEXT NOT NULL, digest BLOB NOT NULL, body BLOB)",
    "CREATE TABLE IF NOT EXISTS parts (part INTEGER PRIMARY KEY, digest BLOB NOT NULL, body BLOB NOT NULL)",
)
_INSERT = "INSERT INTO events (seq, time, kind, agent, schema, body, samples) VALUES "
_ROW, _AT_ONCE = "(?, ?, ?, ?, ?, ?, ?)", 128
"""Rows that one statement stores. A statement gives up Python's lock and must win it back from the law, which decides
meanwhile: once for each would be once for each row."""
_BUSY_SECONDS = 30.0


Row = tuple[int, float, str, str, int, bytes, bytes | None]
"""An event as it is stored: seq, time, kind, agent, schema, body, samples."""


@dataclass(frozen=True)
class Snapshot:
    """A folded state as bytes: what may still change in ``body``, what is settled by its name.

    ``code`` names the law that folded it; ``whole`` says that ``settled`` holds all, not only what settled since the
    last snapshot. Each snapshot's is one part of the file: a few large rows are read faster than many small ones.
    """

    seq: int
    code: str
    body: bytes
    settled: dict[str, bytes]
    whole: bool = True


class LedgerError(LedgerTrouble):
    """The ledger cannot be read or written; the message says which file and why."""


class Ledger:
    """Events of one campaign, in order. Open with ``writer=True`` in the coordinator alone."""

    def __init__(self, path: Path, writer: bool = False) -> None:
        self.path = path
        if not writer and not path.is_file():
            raise LedgerError(f"there is no ledger at {path}")
        if _ends_within_a_page(path):
            raise LedgerError(f"the ledger {path} is torn: its end is missing")
        try:
            self._db = sqlite3.connect(
                f"file:{quote(str(path))}?{'mode=rwc' if writer else _reading(path)}",
                uri=True,
                timeout=_BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            if writer:
                self._prepare()
        except sqlite3.Error as error:
            raise LedgerError(f"cannot open the ledger {path}: {error}") from error

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute(_TABLE)
        if not _splits_samples(self._db):
            self._db.execute("ALTER TABLE events ADD COLUMN samples BLOB")
        for statement in _CACHE:
            self._db.execute(statement)

    def last(self) -> int:
        """Sequence number of the newest event, 0 when there is none."""
        try:
            return int(self._db.execute("SELECT max(seq) FROM events").fetchone()[0] or 0)
        except sqlite3.Error as error:
            raise LedgerError(f"cannot read the ledger {self.path}: {error}") from error

    def append(self, time: float, entries: Sequence[tuple[str, AnyBody]]) -> list[Event]:
        """Store ``(agent, body)`` entries in one transaction; returns them with their sequence numbers, durable.

        Raises ``WireError`` for a body that msgpack cannot hold, ``LedgerError`` when the file takes no more; then
        nothing was stored.
        """
        events = numbered(self.last(), time, entries)
        self.store([row_of(event) for event in events])
        return events

    def store(self, rows: Sequence[Row], snapshot: Snapshot | None = None) -> None:
        """Store rows, and a snapshot of the state after them, in one transaction.

        ``LedgerError``: nothing was stored.
        """
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for start in range(0, len(rows), _AT_ONCE):
                some = rows[start : start + _AT_ONCE]
                self._db.execute(_INSERT + ", ".join([_ROW] * len(some)), list(chain.from_iterable(some)))
            if snapshot is not None:
                self._remember(snapshot)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise LedgerError(f"cannot write the ledger {self.path}: {error}") from error

    def remember(self, snapshot: Snapshot) -> None:
        """Store a snapshot of the state after the newest event."""
        self.store([], snapshot)

    def _remember(self, snapshot: Snapshot) -> None:
        if snapshot.whole:
            self._db.execute("DELETE FROM parts")
        part = pack(snapshot.settled)
        self._db.execute("INSERT INTO parts (digest, body) VALUES (?, ?)", (_digest(part), part))
        self._db.execute("DELETE FROM snapshot")
        values = (snapshot.seq, snapshot.code, _digest(snapshot.body, self._stored(snapshot.seq)), snapshot.body)
        self._db.execute("INSERT INTO snapshot VALUES (?, ?, ?, ?)", values)

    def recall(self, code: str, settled: bool = True) -> Snapshot | None:
        """The newest snapshot that this law folded, when it is as it was written and ends with the same event; with or
        without what is settled."""
        try:
            found = self._db.execute("SELECT seq, body, digest FROM snapshot WHERE code = ?", (code,)).fetchone()
            parts = (
                self._db.execute("SELECT body, digest FROM parts ORDER BY part").fetchall() if found and settled else []
            )
            newest = self._stored(found[0]) if found else b""
        except sqlite3.Error:  # no tables: a ledger of an older version, or a damaged page in what is only a cache
            return None
        if not found or _digest(found[1], newest) != found[2] or any(_digest(body) != told for body, told in parts):
            return None
        return Snapshot(found[0], code, found[1], {k: v for body, _ in parts for k, v in decode(body).items()})

    def _stored(self, seq: int) -> bytes:
        """An event's bytes, empty when there is none."""
        found = self._db.execute("SELECT body FROM events WHERE seq = ?", (seq,)).fetchone()
        return bytes(found[0]) if found else b""

    def events(self, after: int = 0, samples: bool = True) -> Iterator[Event]:
        """Every event with a sequence number above ``after``, in order; with or without its raw samples."""
        try:
            column = "samples" if samples and _splits_samples(self._db) else "NULL"
            query = f"SELECT seq, time, agent, schema, body, {column} FROM events WHERE seq > ? ORDER BY seq"
            for seq, time, agent, schema, body, raw in self._db.execute(query, (after,)):
                if seq != (after := after + 1):
                    raise LedgerError(f"the ledger {self.path} is torn: event {after} is missing")
                if schema > SCHEMA:
                    raise LedgerError(
                        f"{self.path} was written by a newer version (schema {schema}); update kernelteam"
                    )
                yield Event(seq=seq, time=time, agent=agent, body=body_from(_joined(body, raw)))
        except (sqlite3.Error, WireError, ValidationError) as error:
            raise LedgerError(f"cannot read the ledger {self.path}: {error}") from error

    def close(self) -> None:
        """Close the file; the events stay."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def numbered(last: int, time: float, entries: Sequence[tuple[str, AnyBody]]) -> list[Event]:
    """``(agent, body)`` entries as the events that follow number ``last``."""
    return [Event(seq=last + n, time=time, agent=agent, body=body) for n, (agent, body) in enumerate(entries, start=1)]


def row_of(event: Event) -> Row:
    """An event as it is stored. Raises ``WireError`` for a body that msgpack cannot hold."""
    holds = "measurement" in type(event.body).model_fields  # asking an instance for what it lacks takes far longer
    measured: Measurement | None = getattr(event.body, "measurement", None) if holds else None
    if measured is None or not measured.restarts:
        raw, samples = event.body.model_dump(mode="json"), None
    else:
        raw = event.body.model_dump(mode="json", exclude={"measurement": {"restarts"}})
        samples = pack(columns(measured.restarts))
    return event.seq, event.time, event.body.kind, event.agent, SCHEMA, pack(raw), samples


def _joined(body: bytes, samples: bytes | None) -> Any:
    """A stored body with its samples back in their place."""
    raw = decode(body)
    if samples is not None:
        found: Any = decode(samples)
        of_a_version = restarts_of_maps if type(found) is list else restarts_from
        raw["measurement"]["restarts"] = of_a_version(found)
    return raw


def _splits_samples(db: sqlite3.Connection) -> bool:
    """Whether the table has its column for samples; a file of an older version keeps them in the bodies."""
    return any(row[1] == "samples" for row in db.execute("PRAGMA table_info(events)"))


def _digest(*parts: bytes) -> bytes:
    return blake2b(b"".join(parts), digest_size=16).digest()


def _ends_within_a_page(path: Path) -> bool:
    """Whether the file lost a part of its last page, for which SQLite would read zeros.

    While a log lies beside it, the log may hold that page, and SQLite knows better.
    """
    log = path.with_name(f"{path.name}-wal")
    if not path.is_file() or (log.exists() and log.stat().st_size):
        return False
    with path.open("rb") as file:
        page = int.from_bytes(file.read(18)[16:], "big")
    return bool(page) and path.stat().st_size % (page if page > 1 else 1 << 16) != 0


def _reading(path: Path) -> str:
    """How SQLite is to open a ledger for reading.

    Readers of a WAL file need the shared-memory file beside it and make it when it is not there. In a folder where they
    cannot, a ledger that was closed (no ``-wal`` is left) is read as a file that never changes.
    """
    closed = not path.with_name(f"{path.name}-wal").exists()
    return "immutable=1" if closed and not os.access(path.parent, os.W_OK) else "mode=ro"

"""The ledger: one SQLite file per campaign, one table of events, one writer, acknowledged only after commit.

The only class of this package that touches a file. WAL with ``synchronous=FULL``: when ``append`` returns, the events
are on disk, and a reader in another process (``kernelteam status``) sees them, also after every writer has died.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from pydantic import ValidationError

from protocol.events import SCHEMA, AnyBody, Event, body_from
from protocol.wire import WireError, decode, pack

_TABLE = """
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY,
    time REAL NOT NULL,
    kind TEXT NOT NULL,
    agent TEXT NOT NULL,
    schema INTEGER NOT NULL,
    body BLOB NOT NULL
)
"""
_BUSY_SECONDS = 30.0


class LedgerError(Exception):
    """The ledger cannot be read or written; the message says which file and why."""


class Ledger:
    """Events of one campaign, in order. Open with ``writer=True`` in the coordinator alone."""

    def __init__(self, path: Path, writer: bool = False) -> None:
        self.path = path
        if not writer and not path.is_file():
            raise LedgerError(f"there is no ledger at {path}")
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

    def append(self, time: float, entries: Sequence[tuple[str, AnyBody]]) -> list[Event]:
        """Store ``(agent, body)`` entries in one transaction; returns them with their sequence numbers, durable.

        Raises ``WireError`` for a body that msgpack cannot hold, ``LedgerError`` when the file takes no more; then
        nothing was stored.
        """
        blobs = [pack(body.model_dump(mode="json")) for _, body in entries]
        events: list[Event] = []
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for (agent, body), blob in zip(entries, blobs, strict=True):
                cursor = self._db.execute(
                    "INSERT INTO events (time, kind, agent, schema, body) VALUES (?, ?, ?, ?, ?)",
                    (time, body.kind, agent, SCHEMA, blob),
                )
                events.append(Event(seq=int(cursor.lastrowid or 0), time=time, agent=agent, body=body))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise LedgerError(f"cannot write the ledger {self.path}: {error}") from error
        return events

    def events(self, after: int = 0) -> Iterator[Event]:
        """Every event with a sequence number above ``after``, in order."""
        query = "SELECT seq, time, agent, schema, body FROM events WHERE seq > ? ORDER BY seq"
        try:
            for seq, time, agent, schema, body in self._db.execute(query, (after,)):
                if schema > SCHEMA:
                    raise LedgerError(
                        f"{self.path} was written by a newer version (schema {schema}); update kernelteam"
                    )
                yield Event(seq=seq, time=time, agent=agent, body=body_from(decode(body)))
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


def _reading(path: Path) -> str:
    """How SQLite is to open a ledger for reading.

    Readers of a WAL file need the shared-memory file beside it and make it when it is not there. In a folder where they
    cannot, a ledger that was closed (no ``-wal`` is left) is read as a file that never changes.
    """
    closed = not path.with_name(f"{path.name}-wal").exists()
    return "immutable=1" if closed and not os.access(path.parent, os.W_OK) else "mode=ro"

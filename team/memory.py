"""The strategy memory on disk: one SQLite file in the user's data directory, shared by all campaigns of this user.

Evidence is written under campaign, experiment and stage, so writing it again changes nothing, and two campaigns may
write at once. What was forgotten stays forgotten: only its keys are remembered. A file that cannot be used never stops
a campaign.
"""

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from protocol.memory import Evidence, Place, advise, evidence_of, place_of
from protocol.messages import Advice
from protocol.policy import Policy
from protocol.state import CampaignState
from team.errors import UserError
from team.runs import home

_BUSY_SECONDS = 10.0
_TABLES = """
CREATE TABLE IF NOT EXISTS evidence (
    campaign TEXT NOT NULL, experiment TEXT NOT NULL, stage TEXT NOT NULL,
    operator TEXT NOT NULL, language TEXT NOT NULL, arch TEXT NOT NULL, dims TEXT NOT NULL,
    technique TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (campaign, experiment, stage)
);
CREATE INDEX IF NOT EXISTS places ON evidence (operator, language, arch, dims);
CREATE TABLE IF NOT EXISTS forgotten (
    campaign TEXT NOT NULL, experiment TEXT NOT NULL, stage TEXT NOT NULL,
    PRIMARY KEY (campaign, experiment, stage)
);
"""
_FILTERS = ("operator", "language", "arch", "dims", "technique", "campaign")


class MemoryBroken(UserError):
    """The file cannot be used; the sentence says which and why."""

    def __init__(self, path: Path, error: Exception) -> None:
        super().__init__(f"The strategy memory {path} cannot be used ({error}).", f"Move it away: mv {path} {path}.old")


class StrategyMemory:
    """Evidence of all campaigns. ``MemoryBroken`` when its file cannot be read or written."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or home() / "memory.sqlite"

    def learn(self, place: Place, evidence: Iterable[Evidence]) -> int:
        """Take evidence in; how much of it is new."""
        where = (place.operator, place.language, place.arch, place.dims)
        rows = [
            (one.campaign, one.experiment, one.stage, *where, one.technique, one.model_dump_json()) for one in evidence
        ]
        with self._open() as db:
            before = db.total_changes
            for row in rows:
                db.execute(
                    "INSERT OR IGNORE INTO evidence SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? "
                    "WHERE (?, ?, ?) NOT IN (SELECT campaign, experiment, stage FROM forgotten)",
                    (*row, *row[:3]),
                )
            return db.total_changes - before

    def recall(self, place: Place) -> list[Evidence]:
        """All evidence about one place, oldest first."""
        return [one for _, one in self.find(**place.model_dump())]

    def find(self, **wanted: str) -> list[tuple[Place, Evidence]]:
        """All evidence whose columns hold what is ``wanted``, oldest first. Nothing is made when there is no file."""
        if not self.path.is_file():
            return []
        where, values = _where(wanted)
        with self._open() as db:
            rows = db.execute(f"SELECT operator, language, arch, dims, body FROM evidence {where}", values).fetchall()
        found = [
            (Place(operator=row[0], language=row[1], arch=row[2], dims=row[3]), Evidence.model_validate_json(row[4]))
            for row in rows
        ]
        return sorted(found, key=lambda each: (each[1].time, each[1].campaign, each[1].experiment, each[1].stage))

    def forget(self, **wanted: str) -> int:
        """Delete what ``find`` finds, for good; how many pieces of evidence that were."""
        if not self.path.is_file():
            return 0
        where, values = _where(wanted)
        with self._open() as db:
            db.execute(
                f"INSERT OR IGNORE INTO forgotten SELECT campaign, experiment, stage FROM evidence {where}", values
            )
            return db.execute(f"DELETE FROM evidence {where}", values).rowcount

    def export(self) -> str:
        """Everything, as JSON."""
        return json.dumps(
            [place.model_dump() | evidence.model_dump(mode="json") for place, evidence in self.find()], indent=2
        )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        db: sqlite3.Connection | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
            _prepare(db)
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")
        except (sqlite3.Error, OSError, ValueError) as error:
            raise MemoryBroken(self.path, error) from None
        finally:
            if db is not None:
                db.close()


def _prepare(db: sqlite3.Connection) -> None:
    """WAL and the tables. Switching a new file to WAL does not wait for another process that does so: ask again."""
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    for statement in _TABLES.split(";"):
        db.execute(statement)


def _where(wanted: dict[str, str]) -> tuple[str, list[str]]:
    names = [name for name in _FILTERS if name in wanted]
    assert len(names) == len(wanted)
    return (f"WHERE {' AND '.join(f'{name} = ?' for name in names)}" if names else ""), [wanted[n] for n in names]


def advice_for(place: Place, policy: Policy) -> tuple[tuple[Advice, ...], str]:
    """The advice for a campaign that begins, and a sentence about it; a broken memory gives none and says so."""
    try:
        evidence = StrategyMemory().recall(place)
    except MemoryBroken as broken:
        return (), f"{broken.what} The campaign goes on without advice."
    given = advise(evidence, policy)
    if not evidence:
        return (), "nothing is known yet about this operator on such hardware and shapes"
    campaigns = len({one.campaign for one in evidence})
    prefer = sum(one.word == "prefer" for one in given)
    return given, f"{prefer} to prefer, {len(given) - prefer} with caution, from {campaigns} earlier campaigns"


def remember(state: CampaignState) -> str:
    """Write down what a campaign taught; a sentence when that was not possible, else empty."""
    started = state.started
    arch = started.hardware.arch if started.hardware else ""
    place = place_of(started.operator, started.language, arch, started.workloads)
    try:
        StrategyMemory().learn(place, evidence_of(state))
    except MemoryBroken as broken:
        return str(broken)
    return ""

"""Group commit: numbered at once, durable together, and nothing more after a commit that failed."""

from pathlib import Path

import pytest
from story import measured

from protocol import events as ev
from protocol.journal import Journal
from protocol.ledger import Ledger, LedgerError
from protocol.wire import WireError


def stop(why: str) -> ev.StopRequested:
    return ev.StopRequested(why=why)


def test_many_reports_become_durable_in_one_commit_and_in_their_order(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l", writer=True) as ledger, Ledger(tmp_path / "l") as reader:
        ledger.append(0.0, [("", stop("before"))])
        journal = Journal(ledger)
        told = [journal.append(float(n), [("a", stop(str(n))), ("b", stop(str(n)))]) for n in range(5)]
        assert journal.waits
        assert [event.body.why for event in reader.events()] == ["before"]
        journal.commit()
        assert not journal.waits
        assert list(reader.events(after=1)) == [event for events in told for event in events]
        assert journal.last == ledger.last() == 11
        assert list(journal.events(after=1)) == list(reader.events(after=1))


def test_what_cannot_be_stored_takes_no_number(tmp_path: Path) -> None:
    body = ev.ExperimentReported(
        experiment="x1", commit="c", parameters={"knob": 2**70}, screened=(), measurement=measured()
    )
    with Ledger(tmp_path / "l", writer=True) as ledger:
        journal = Journal(ledger)
        with pytest.raises(WireError):
            journal.append(1.0, [("a", stop("first")), ("a", body)])
        assert not journal.waits
        assert [event.seq for event in journal.append(1.0, [("a", stop("next"))])] == [1]


def test_after_a_failed_commit_nothing_is_decided_any_more(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l", writer=True) as ledger:
        journal = Journal(ledger)
        journal.append(0.0, [("a", stop("lost"))])
        ledger._db.execute("PRAGMA query_only=ON")
        with pytest.raises(LedgerError, match="cannot write"):
            journal.commit()
        ledger._db.execute("PRAGMA query_only=OFF")
        for call in (journal.commit, lambda: journal.append(1.0, [("a", stop("after"))])):
            with pytest.raises(LedgerError, match="after a failed commit"):
                call()
        assert list(ledger.events()) == []


def test_a_second_writer_is_told_and_not_merged(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l", writer=True) as ledger, Ledger(tmp_path / "l", writer=True) as other:
        journal = Journal(ledger)
        journal.append(0.0, [("a", stop("mine"))])
        other.append(0.0, [("b", stop("theirs"))])
        with pytest.raises(LedgerError, match="cannot write"):
            journal.commit()
        assert [event.agent for event in other.events()] == ["b"]


def test_samples_stand_beside_the_facts(tmp_path: Path) -> None:
    body = ev.ExperimentReported(experiment="x1", commit="c", parameters={}, screened=(), measurement=measured())
    with Ledger(tmp_path / "l", writer=True) as ledger:
        ledger.append(0.0, [("a", body), ("a", stop("x"))])
        assert [event.body for event in ledger.events()] == [body, stop("x")]
        (facts, _) = ledger.events(samples=False)
    slim = body.model_copy(update={"measurement": body.measurement.without_samples()})
    assert facts.body == slim


def test_a_file_of_an_older_version_is_read_and_written_on(tmp_path: Path) -> None:
    body = ev.ExperimentReported(experiment="x1", commit="c", parameters={}, screened=(), measurement=measured())
    with Ledger(tmp_path / "l", writer=True) as ledger:
        ledger.append(0.0, [("a", stop("x"))])
        ledger._db.execute("ALTER TABLE events DROP COLUMN samples")
        with Ledger(tmp_path / "l") as reader:
            assert [event.body for event in reader.events()] == [stop("x")]
            assert reader.recall("any") is None
    with Ledger(tmp_path / "l", writer=True) as ledger:
        ledger.append(1.0, [("a", body)])
        assert [event.body for event in ledger.events()] == [stop("x"), body]

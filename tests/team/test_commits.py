"""Group commit with a real ledger: few commits for many calls, and no call returns before its own event is on disk."""

import asyncio
from pathlib import Path

import pytest

from protocol import events as ev
from protocol.journal import Batch, Journal
from protocol.ledger import Ledger, LedgerError
from team.commits import Commits


class Counted(Journal):
    """A journal that counts its commits."""

    commits = 0

    def store(self, batch: Batch) -> None:
        self.commits += 1
        super().store(batch)


def stop(why: str) -> ev.StopRequested:
    return ev.StopRequested(why=why)


def test_calls_that_meet_share_commits_and_return_durable(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with Ledger(path, writer=True) as ledger, Ledger(path) as reader:
        journal = Counted(ledger)
        commits = Commits(journal)

        async def call(number: int) -> None:
            for _ in range(number % 3):
                await asyncio.sleep(0)
            (event,) = journal.append(0.0, [(f"a{number}", stop("x"))])
            await commits.durable()
            assert event in list(reader.events(after=event.seq - 1))

        async def everybody() -> None:
            await asyncio.gather(*(call(number) for number in range(60)))

        asyncio.run(everybody())
        assert 1 <= journal.commits <= 6
        assert len(list(reader.events())) == 60


def test_what_is_decided_during_a_commit_waits_for_the_next_and_is_stored_once(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l", writer=True) as ledger:
        journal = Journal(ledger)
        journal.append(0.0, [("a", stop("first"))])
        batch = journal.take()
        journal.append(1.0, [("a", stop("meanwhile"))])
        journal.store(batch)
        assert [event.body for event in ledger.events()] == [stop("first")]
        journal.commit()
        assert [event.body for event in ledger.events()] == [stop("first"), stop("meanwhile")]


def test_a_call_with_nothing_to_wait_for_costs_no_commit(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l", writer=True) as ledger:
        journal = Counted(ledger)
        asyncio.run(Commits(journal).durable())
        assert journal.commits == 0


def test_a_repeated_report_waits_for_the_commit_of_the_first(tmp_path: Path) -> None:
    """It changes nothing and appends nothing, but its answer says that the report is durable."""
    with Ledger(tmp_path / "l", writer=True) as ledger, Ledger(tmp_path / "l") as reader:
        journal = Counted(ledger)
        commits = Commits(journal)

        async def both() -> None:
            journal.append(0.0, [("a", stop("x"))])
            first = asyncio.create_task(commits.durable())
            await asyncio.sleep(0)
            await commits.durable()
            assert len(list(reader.events())) == 1
            await first

        asyncio.run(both())
        assert journal.commits == 1


def test_nobody_is_told_yes_after_a_commit_that_failed(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l", writer=True) as ledger:
        journal = Counted(ledger)
        commits = Commits(journal)
        ledger._db.execute("PRAGMA query_only=ON")

        async def call(number: int) -> None:
            journal.append(0.0, [(f"a{number}", stop("x"))])
            await commits.durable()

        async def everybody() -> list[BaseException | None]:
            return await asyncio.gather(*(call(number) for number in range(5)), return_exceptions=True)

        assert [type(answer) for answer in asyncio.run(everybody())] == [LedgerError] * 5
        ledger._db.execute("PRAGMA query_only=OFF")
        with pytest.raises(LedgerError):
            asyncio.run(call(9))
        assert list(ledger.events()) == []


def test_a_call_that_is_cancelled_leaves_its_commit_to_those_who_wait_for_it(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l", writer=True) as ledger:
        journal = Counted(ledger)
        commits = Commits(journal)

        async def both() -> None:
            journal.append(0.0, [("a", stop("x"))])
            first, second = asyncio.create_task(commits.durable()), asyncio.create_task(commits.durable())
            await asyncio.sleep(0)
            first.cancel()
            await second
            assert first.cancelled()
            assert journal.commits == 1

        asyncio.run(both())
        assert len(list(ledger.events())) == 1

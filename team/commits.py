"""Group commit for the coordinator actor: many calls decide, one transaction makes them all durable.

A call that finds a commit under way waits for it, and then for at most one more, which takes along whatever was decided
meanwhile. The disk works in a thread; the law goes on deciding on the loop. A commit belongs to none of the calls that
wait for it, so one that is cancelled leaves it going.
"""

import asyncio

from protocol.journal import Journal


class Commits:
    """The commits of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._durable = journal.last
        self._under_way: asyncio.Task[None] | None = None

    async def durable(self) -> None:
        """Return when everything that is decided now is on disk. ``LedgerError``: it is not, and never will be."""
        wanted = self._journal.last
        while self._durable < wanted:
            if self._under_way is None:
                self._under_way = asyncio.get_running_loop().create_task(self._commit())
            await asyncio.shield(self._under_way)

    async def _commit(self) -> None:
        try:
            taken_along, batch = self._journal.last, self._journal.take()
            await asyncio.to_thread(self._journal.store, batch)
            self._durable = taken_along
        finally:
            self._under_way = None

"""Group commit for the coordinator actor: many calls decide, one transaction makes them all durable.

A call that finds a commit under way waits for it, and then for at most one more, which takes along whatever was decided
meanwhile. The disk works in a thread; the law goes on deciding on the loop.
"""

import asyncio

from protocol.journal import Journal


class Commits:
    """The commits of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._durable = journal.last
        self._one_at_a_time = asyncio.Lock()

    async def durable(self) -> None:
        """Return when everything that is decided now is on disk. ``LedgerError``: it is not, and never will be."""
        wanted = self._journal.last
        if self._durable >= wanted:
            return
        async with self._one_at_a_time:
            if self._durable < wanted:
                taken_along, batch = self._journal.last, self._journal.take()
                await asyncio.to_thread(self._journal.store, batch)
                self._durable = taken_along

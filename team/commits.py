"""Group commit for the coordinator actor: many calls decide, one transaction makes them all durable.

A call that finds a commit under way waits for it, and then for at most one more, which takes along whatever was decided
meanwhile. The disk works in a thread; the law goes on deciding on the loop. A commit belongs to none of the calls that
wait for it, so one that is cancelled leaves it going.
"""

import asyncio
from collections import deque

from protocol.journal import Journal


class Commits:
    """The commits of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._durable = journal.last
        self._waiting = deque[tuple[int, asyncio.Future[None]]]()
        """The newest event that each call needs on disk, in their order, and what wakes it."""
        self._under_way: asyncio.Task[None] | None = None

    async def durable(self) -> None:
        """Return when everything that is decided now is on disk. ``LedgerError``: it is not, and never will be."""
        wanted = self._journal.last
        if self._durable >= wanted:
            return
        loop = asyncio.get_running_loop()
        mine = loop.create_future()
        self._waiting.append((wanted, mine))
        if self._under_way is None or self._under_way.done():
            self._under_way = loop.create_task(self._commit_all())
            self._under_way.add_done_callback(self._ended)
        await mine

    async def _commit_all(self) -> None:
        """One commit after the other until nobody waits."""
        while self._waiting:
            taken_along, batch = self._journal.last, self._journal.take()
            await asyncio.to_thread(self._journal.store, batch)
            self._durable = taken_along
            while self._waiting and self._waiting[0][0] <= taken_along:
                _, call = self._waiting.popleft()
                if not call.done():  # a cancelled call waits no more
                    call.set_result(None)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """When the commits ended by an error, it is that of everybody who still waits."""
        stopped = task.cancelled()
        error = None if stopped else task.exception()
        if not stopped and error is None:
            return
        for _, call in self._waiting:
            if call.done():
                continue
            if error is None:
                call.cancel()
            else:
                call.set_exception(error)
        self._waiting.clear()

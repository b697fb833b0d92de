"""The coordinator actor: ``Coordination`` and the landing desk behind Ray. The only writer of the ledger.

Async only here: agents' calls are short and run on the loop; git and the disk work in threads. No call returns, and no
landing is carried out, before what it rests on is durable (``_durable``). A killed coordinator is restarted by Ray,
folds the ledger and goes on; agents' calls are retried by Ray and are idempotent.
"""

import asyncio
import fcntl
import logging
import os
import time
from pathlib import Path
from typing import Any, NoReturn

from protocol.briefing import Told, briefing_of, chronicle_of
from protocol.events import LandingRefused, Mended, NotesFailed, body_from
from protocol.journal import Journal
from protocol.landings import pending
from protocol.ledger import Ledger, LedgerError
from protocol.messages import DeviceInfo, ModelCall, Plan
from team import garbage, scribe
from team.commits import Commits
from team.coordination import Coordination
from team.landing import LandingDesk
from team.recovery import mend
from team.runs import Run, log_to
from team.workspace.command import GitFailed
from team.workspace.hub import Hub, NotForward

log = logging.getLogger(__name__)
NAME = "coordinator"
ACTOR_OPTIONS = {"max_restarts": -1, "max_task_retries": -1, "num_cpus": 0, "max_concurrency": 128}
_TICK_SECONDS = 0.2
_LOCK_SECONDS = 60.0
_LANDING_TRIES = 5
_NOTES_REST = 25
"""Ticks between a failure to write notes and the next try."""


class Coordinator:
    """What agents and the driver may call. Messages travel as plain dicts, as they stand in the ledger."""

    def __init__(self, folder: str) -> None:
        garbage.collect_seldom()
        self._run = Run(Path(folder))
        log_to(self._run.log(NAME))
        self._lock = _hold(self._run.folder / "coordinator.lock")
        journal = Journal(Ledger(self._run.ledger, writer=True))
        self._commits = Commits(journal)
        self._coordination = Coordination(journal, time.time)
        hub = Hub.open(self._run.folder)
        self._hub = hub
        if mended := mend(hub, self._coordination.state):
            self._coordination.record("", Mended(what=mended))
        self._desk = LandingDesk(hub, self._coordination.state.started.editable)
        self._loop_task: asyncio.Task[None] | None = None
        self._stumbles = 0
        self._writing = False
        self._notes_rest = 0
        self._being_taken: set[Path] = set()
        self._told = Told()

    async def _durable(self) -> None:
        """Wait until everything decided is on disk. When it cannot be, this process believes what never happened."""
        try:
            await self._commits.durable()
        except LedgerError as error:
            _die(f"the ledger takes no more: {error}", error)

    async def ready(self) -> int:
        """Start the landing loop (once); the coordinator's process id."""
        if self._loop_task is None:
            self._loop_task = asyncio.get_running_loop().create_task(self._tend())
            self._loop_task.add_done_callback(_die_with)
        return os.getpid()

    async def resume(self) -> None:
        """Go on after a stop or a crash of the whole campaign."""
        self._coordination.resume()
        await self._durable()

    async def join(self, agent: str, incarnation: str, device: dict[str, Any], pid: int) -> None:
        """An agent's process lives."""
        await self.ready()
        self._coordination.join(agent, incarnation, DeviceInfo.model_validate(device), pid)
        await self._durable()

    async def lost(self, agent: str, why: str) -> None:
        """An agent's process died."""
        await self.ready()
        self._coordination.lost(agent, why)
        await self._durable()

    async def next_duty(self, agent: str, incarnation: str, ask: str) -> dict[str, Any]:
        """The duty for one request."""
        await self.ready()
        await self._take_requests()
        duty = self._coordination.next_duty(agent, incarnation, ask)
        await self._durable()
        return duty.model_dump(mode="json")

    async def briefing(self, agent: str, base: str, since: int) -> tuple[dict[str, Any], list[bytes], int]:
        """What the agent's mind is told, the history apart: only what came after the first ``since`` verdicts, in
        msgpack, and how many verdicts there are now."""
        state = self._coordination.state
        told = len(state.verdicts)
        briefing = briefing_of(state, agent, base, since=told).model_dump(mode="json")
        history = self._told.history(state, agent, since)
        await self._durable()
        return briefing, history, told

    async def chronicle(self) -> dict[str, Any]:
        """What a research duty reads."""
        return chronicle_of(self._coordination.state).model_dump(mode="json")

    async def admit(self, agent: str, experiment: str, plan: dict[str, Any], commits: list[str], dollars: float) -> str:
        """Empty when the plan may run, else why not."""
        why = self._coordination.admit(agent, experiment, Plan.model_validate(plan), tuple(commits), dollars)
        await self._durable()
        return why

    async def refuse(self, agent: str, experiment: str, plan: dict[str, Any], why: str, dollars: float) -> None:
        """A plan's edit may not be committed."""
        self._coordination.refuse(agent, experiment, Plan.model_validate(plan), why, dollars)

    async def spent(self, agent: str, call: dict[str, Any]) -> None:
        """A model answered an agent's mind; durable when this returns."""
        self._coordination.spent(agent, ModelCall.model_validate(call))
        await self._durable()

    async def report(self, agent: str, body: dict[str, Any], bundle: bytes = b"") -> str:
        """Take in a duty's result, durable when this returns; for an experiment, its verdict."""
        await self.ready()
        if bundle:
            await asyncio.to_thread(self._hub.unbundle, bundle)
        parsed = body_from(body)
        self._coordination.report(agent, parsed)
        await self._durable()
        experiment = self._coordination.state.experiments.get(getattr(parsed, "experiment", ""))
        return experiment.verdict.value if experiment and experiment.verdict else ""

    async def facts(self, device: str) -> dict[str, Any]:
        """What an agent needs beside its duty: the device's noise, when it is calibrated."""
        noise = self._coordination.state.noise.get(device)
        return {"noise": noise.model_dump(mode="json") if noise else None}

    async def bundle(self, commit: str, known: list[str]) -> bytes:
        """A commit for a node that shares no file system with this one."""
        return await asyncio.to_thread(self._hub.bundle, [commit], known)

    async def request_stop(self, why: str) -> None:
        """Drain."""
        self._coordination.request_stop(why)
        await self._durable()

    async def _take_requests(self) -> None:
        """Take in what a person asked for. A request is a file until its event is durable; two calls may meet here."""
        fresh = [found for found in self._run.inbox.waiting() if found[0] not in self._being_taken]
        for path, request in fresh:
            self._being_taken.add(path)
            self._coordination.steer(request)
        await self._durable()
        for path, _ in fresh:
            path.unlink(missing_ok=True)
            self._being_taken.discard(path)

    async def _tend(self) -> None:
        """Carry out landings and time limits for as long as the process lives."""
        while True:
            await self._take_requests()
            if not await self._land():
                await asyncio.sleep(_TICK_SECONDS)
            self._coordination.advance()
            await self._write_notes()
            self._told.keep_up(self._coordination.state)
            if self._coordination.remember():
                garbage.settle()
            await self._durable()

    async def write_up(self) -> None:
        """The last notes, before the driver ends this process; without a pause since the last failure."""
        self._coordination.advance()
        while self._writing:
            await asyncio.sleep(_TICK_SECONDS)
        self._notes_rest = 0
        await self._write_notes()
        await self._durable()

    async def _write_notes(self) -> None:
        """What the hub is owed of notes and tags. A failure is on record, and tried again after a while."""
        self._notes_rest -= 1
        state = self._coordination.state
        if self._writing or self._notes_rest > 0 or (page := scribe.due(state)) is None:
            return
        self._writing = True
        try:
            self._coordination.record("", await asyncio.to_thread(scribe.write, self._hub, page))
        except (GitFailed, OSError) as error:
            log.warning("notes: %s", error)
            self._notes_rest = _NOTES_REST
            if state.notes_failed != (why := str(error)[:500]):
                self._coordination.record("", NotesFailed(why=why))
        finally:
            self._writing = False

    async def _land(self) -> bool:
        step = pending(self._coordination.state)
        if step is None:
            return False
        await self._durable()
        try:
            done = await asyncio.to_thread(self._desk.carry_out, step)
        except (GitFailed, NotForward) as error:
            self._stumbles += 1
            log.warning("landing of %s: %s", step.experiment.id, error)
            if self._stumbles < _LANDING_TRIES:
                return False
            done = (LandingRefused(experiment=step.experiment.id, why=f"git could not land it: {error}"[:500]),)
        self._stumbles = 0
        self._coordination.record("", *done)
        return True


def _die_with(task: asyncio.Task[None]) -> None:
    """The landing loop may not end while the actor lives: die with it, so that Ray starts a coordinator afresh."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _die("the landing loop failed", error)


def _die(why: str, error: BaseException) -> NoReturn:
    log.critical(why, exc_info=error)
    logging.shutdown()
    os._exit(1)


def _hold(path: Path) -> Any:
    """Hold the coordinator's lock for life: one writer per ledger, and ``status`` can tell a dead campaign."""
    handle = path.open("a+")
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    handle.truncate(0)
    handle.write(str(os.getpid()))
    handle.flush()
    return handle

"""The warm pool: runners that wait for a kernel, and those that served and wait to be taken down. Trusted.

The driver makes or takes down one context at a time, and both disturb a measurement. So a thread of its own does one
such step after the other while a compiler runs or somebody thinks; before anything is timed it is asked to stand still
and ends the step in hand, no more. A runner that has seen foreign code is never handed out again.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Thread

from team.errors import UserError
from team.judge.cuda.process import CudaRunner
from team.judge.failures import RunnerEnded, RunnerFaulted, RunnerSilent
from team.judge.timeline import TIMELINE

SOON = 5  # spares that come before the taking down: a check and two restarts of two


class Pool:
    """Spares and retired runners of one device; ``start`` starts the process of a new one and does not wait for it."""

    def __init__(self, start: Callable[[], CudaRunner]) -> None:
        self._start = start
        self._changed = Condition()
        self._spares: list[CudaRunner] = []
        self._retired: list[CudaRunner] = []
        self._wanted = 0
        self._working = False
        self._stepping = False
        self._closed = False
        self._thread: Thread | None = None

    @property
    def spares(self) -> int:
        """Processes that wait for a kernel."""
        return len(self._spares)

    @property
    def retired(self) -> tuple[CudaRunner, ...]:
        """Those that served and are still there."""
        return tuple(self._retired)

    def pids(self) -> set[int]:
        """Process ids of all of them."""
        return {runner.pid for runner in (*self._spares, *self._retired)}

    def work(self, wanted: int | None = None) -> None:
        """From now on, until ``wanted`` spares wait (as many as before, by default) and nobody who served."""
        with self._changed:
            self._wanted = self._wanted if wanted is None else wanted
            self._working = True
            self._closed = False
            self._changed.notify_all()
        if self._thread is None:
            self._thread = Thread(target=self._steps, name="warm pool", daemon=True)
            self._thread.start()

    def stand_still(self, ready: int = 0) -> None:
        """Make no context and take none down until ``work`` is called; at least ``ready`` spares wait then."""
        self._working = False
        with self._turn():
            if len(self._spares) < ready:
                self._make(ready - len(self._spares))

    def take(self) -> CudaRunner:
        """A runner that nobody has used, ready to be asked."""
        with self._turn():
            if not self._spares:
                self._make(1)
            return self._spares.pop(0)

    def retire(self, runner: CudaRunner) -> None:
        """Stop a runner for good; it is taken down later."""
        runner.freeze()
        self._retired.append(runner)

    def reap(self) -> None:
        """End the retired and wait until they are gone."""
        with self._turn():
            self._take_down(len(self._retired))

    def drop_spares(self) -> None:
        """End every spare."""
        with self._turn():
            for spare in self._spares:
                spare.kill()
            for spare in self._spares:
                spare.close()
            self._spares = []

    def close(self) -> None:
        """End all processes and the thread."""
        with self._changed:
            self._closed, self._working = True, False
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.reap()
        self.drop_spares()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One at a time: the thread's step, or whoever asks."""
        with self._changed:
            self._changed.wait_for(lambda: not self._stepping)
            self._stepping = True
        try:
            yield
        finally:
            with self._changed:
                self._stepping = False
                self._changed.notify_all()

    def _steps(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or (self._working and not self._stepping and self._due()))
                if self._closed:
                    return
                self._stepping = True
            try:
                if self._retired and len(self._spares) >= min(SOON, self._wanted):
                    self._take_down(1)
                else:
                    self._make(1)
            except (OSError, UserError):  # met again by whoever takes one; those that are there must not die with it
                self._working = False
            finally:
                with self._changed:
                    self._stepping = False
                    self._changed.notify_all()

    def _due(self) -> bool:
        return bool(self._retired) or len(self._spares) < self._wanted

    def _make(self, count: int) -> None:
        made = [self._start() for _ in range(count)]
        for runner in made:
            with contextlib.suppress(RunnerEnded, RunnerSilent, RunnerFaulted):  # met again by whoever takes it
                runner.await_ready()
        self._spares.extend(made)

    def _take_down(self, count: int) -> None:
        leaving = self._retired[:count]
        if not leaving:
            return
        with TIMELINE.stage("take down", f"{count} runners"):
            for runner in leaving:
                runner.kill()
            for runner in leaving:
                runner.close()
        self._retired = self._retired[count:]

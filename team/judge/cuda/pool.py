"""The warm pool: runners that wait for a kernel, and those that served and wait to be taken down. Trusted.

The driver makes or takes down one context at a time, the more slowly the more there are, and both disturb a
measurement. So a thread of its own does one such step after the other while a compiler runs or somebody thinks; before
anything is timed it is asked to stand still and ends the step in hand, no more. Whoever asks comes before its next
step. A runner that has seen foreign code is never handed out again.
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
BESIDE = 2  # started together: the second process loads its libraries while the first one's context is made


class Pool:
    """Spares and retired runners of one device.

    ``start`` starts the process of a new one and does not wait for it; ``furnish`` waits until it can be handed out.
    """

    def __init__(self, start: Callable[[], CudaRunner], furnish: Callable[[CudaRunner], None]) -> None:
        self._start = start
        self._furnish = furnish
        self._changed = Condition()
        self._spares: list[CudaRunner] = []
        self._retired: list[CudaRunner] = []
        self._wanted = 0
        self._working = False
        self._stepping = False
        self._asking = 0
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

    def hush(self) -> None:
        """Begin no further step until ``work`` is called."""
        with self._changed:
            self._working = False

    def stand_still(self, ready: int = 0) -> None:
        """``hush``, and see the step in hand end; at least ``ready`` spares wait then."""
        self.hush()
        with self.alone():
            if len(self._spares) < ready:
                self._make(ready - len(self._spares))

    def take(self) -> CudaRunner:
        """A runner that nobody has used, ready to be asked."""
        with self._changed:
            if self._spares:
                return self._spares.pop(0)
        with self.alone():
            if not self._spares:
                self._make(1)
            return self._spares.pop(0)

    def retire(self, runner: CudaRunner) -> None:
        """Stop a runner for good; it is taken down later."""
        runner.freeze()
        with self._changed:
            self._retired.append(runner)

    def reap(self) -> None:
        """End the retired and wait until they are gone."""
        with self.alone():
            self.take_down_retired()

    def take_down_retired(self) -> None:
        """The same for whoever is ``alone`` already."""
        self._take_down(len(self._retired))

    def furnish_again(self) -> None:
        """Furnish every spare anew, or end it where that fails; for whoever is ``alone``."""
        for spare in list(self._spares):
            try:
                self._furnish(spare)
            except (RunnerEnded, RunnerSilent, RunnerFaulted):
                with self._changed:
                    self._spares.remove(spare)
                spare.close()

    def drop_spares(self) -> None:
        """End every spare; for whoever is ``alone``."""
        with self._changed:
            dropped, self._spares = self._spares, []
        for spare in dropped:
            spare.kill()
        for spare in dropped:
            spare.close()

    def close(self) -> None:
        """End all processes and the thread."""
        with self._changed:
            self._closed, self._working = True, False
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self.alone():
            self.take_down_retired()
            self.drop_spares()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Without the thread, which takes its next step afterwards."""
        with self._changed:
            self._asking += 1
            self._changed.wait_for(lambda: not self._stepping)
            self._asking -= 1
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
                self._changed.wait_for(lambda: self._closed or self._may_step())
                if self._closed:
                    return
                self._stepping = True
                missing = self._wanted - len(self._spares)
            try:
                if self._retired and self._wanted - missing >= min(SOON, self._wanted):
                    self._take_down(1)
                else:
                    self._make(min(missing, BESIDE))
            except (OSError, UserError):  # met again by whoever takes one; those that are there must not die with it
                self._working = False
            finally:
                with self._changed:
                    self._stepping = False
                    self._changed.notify_all()

    def _may_step(self) -> bool:
        return self._working and not self._stepping and not self._asking and self._due()

    def _due(self) -> bool:
        return bool(self._retired) or len(self._spares) < self._wanted

    def _make(self, count: int) -> None:
        made: list[CudaRunner] = []
        try:
            for _ in range(count):
                made.append(self._start())
        finally:
            for runner in made:
                with contextlib.suppress(RunnerEnded, RunnerSilent, RunnerFaulted):  # met again by whoever takes it
                    self._furnish(runner)
            with self._changed:
                self._spares.extend(made)

    def _take_down(self, count: int) -> None:
        with self._changed:
            leaving = self._retired[:count]
        if not leaving:
            return
        with TIMELINE.stage("take down", f"{count} runners"):
            for runner in leaving:
                runner.kill()
            for runner in leaving:
                runner.close()
        with self._changed:
            self._retired = self._retired[count:]

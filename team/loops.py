"""The agents' loops as the driver keeps them going: begun again after a death, given up after too many.

Ray starts a dead actor's process anew, and refuses every call to it meanwhile. Such a refusal is no death: on a busy
machine a process takes many seconds to start, and an agent must not be given up for that. So a loop is begun again only
when the new process has answered.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

log = logging.getLogger(__name__)
GIVE_UP_AFTER = 5
_DEATHS_WITHIN_SECONDS = 120.0
_RESTART_SECONDS = 600.0


class Loops:
    """One loop for each agent. ``lost`` is told of every death: whose, and why. ``clock`` gives seconds."""

    def __init__(
        self,
        ray: Any,
        agents: Mapping[str, Any],
        lost: Callable[[str, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ray = ray
        self._agents = agents
        self._lost = lost
        self._clock = clock
        self._running = {agent.run.remote(): name for name, agent in agents.items()}
        self._starting: dict[Any, str] = {}
        self._since: dict[str, float] = {}
        self._deaths: dict[str, list[float]] = {name: [] for name in agents}
        self.abandoned = ""
        """What the last agent that was given up said, when nobody is left."""

    def __bool__(self) -> bool:
        return bool(self._running or self._starting)

    def settle(self, timeout: float) -> None:
        """Wait so many seconds for a loop to end or a new process to answer, and act on it."""
        done, _ = self._ray.wait([*self._running, *self._starting], num_returns=1, timeout=timeout)
        for call in done:
            if call in self._running:
                self._ended(self._running.pop(call), call)
            else:
                self._answered(self._starting.pop(call), call)

    def _ended(self, name: str, loop: Any) -> None:
        errors = self._ray.exceptions
        try:
            log.info("%s stopped: %s", name, self._ray.get(loop))
        except (errors.RayActorError, errors.RayTaskError) as error:
            self._died(name, sentence(error))

    def _answered(self, name: str, call: Any) -> None:
        errors = self._ray.exceptions
        try:
            self._ray.get(call)
        except errors.ActorUnavailableError as error:
            if self._clock() - self._since[name] > _RESTART_SECONDS:
                self._give_up(name, sentence(error))
            else:
                self._starting[self._agents[name].ready.remote()] = name
        except (errors.RayActorError, errors.RayTaskError) as error:
            self._died(name, sentence(error))
        else:
            self._running[self._agents[name].run.remote()] = name

    def _died(self, name: str, why: str) -> None:
        self._lost(name, why)
        now = self._clock()
        self._deaths[name] = [at for at in self._deaths[name] if now - at < _DEATHS_WITHIN_SECONDS] + [now]
        if len(self._deaths[name]) >= GIVE_UP_AFTER:
            self._give_up(name, why)
            return
        self._since[name] = now
        self._starting[self._agents[name].ready.remote()] = name

    def _give_up(self, name: str, why: str) -> None:
        log.error("%s is given up: %s", name, why)
        if not self:
            self.abandoned = why


def sentence(error: Exception) -> str:
    """An error of Ray in one line."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1].strip() if lines else 'no message'}"[:300]

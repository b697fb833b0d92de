"""Agents that die, that take long to start again, and that cannot be kept alive. Ray's calls are played from a list."""

from collections.abc import Sequence

import pytest
from ray import exceptions

from team.loops import GIVE_UP_AFTER, Loops

DIED = exceptions.ActorDiedError()
RESTARTING = exceptions.ActorUnavailableError("The actor is restarting.", b"0" * 16)


class Call:
    """A reference to what a call comes to."""

    def __init__(self, outcome: object) -> None:
        self.outcome = outcome


class Method:
    """What calls of an actor's method come to, in turn: an error, or an answer; ``last`` from then on."""

    def __init__(self, outcomes: Sequence[object], last: object) -> None:
        self._outcomes, self._last = list(outcomes), last
        self.calls = 0

    def remote(self) -> Call:
        self.calls += 1
        return Call(self._outcomes.pop(0) if self._outcomes else self._last)


class Actor:
    def __init__(self, run: Sequence[object], ready: Sequence[object] = ()) -> None:
        self.run, self.ready = Method(run, "the budget is spent"), Method(ready, None)


class Ray:
    """``wait`` says that the first call is done, ``get`` gives or raises what it came to."""

    exceptions = exceptions

    def wait(self, calls: list[Call], num_returns: int, timeout: float) -> tuple[list[Call], list[Call]]:
        return calls[:1], calls[1:]

    def get(self, call: Call) -> object:
        if isinstance(call.outcome, Exception):
            raise call.outcome
        return call.outcome


def played(agents: dict[str, Actor], seconds_a_call: float = 1.0) -> tuple[Loops, list[str]]:
    lost: list[str] = []
    now = [0.0]

    def clock() -> float:
        now[0] += seconds_a_call
        return now[0]

    loops = Loops(Ray(), agents, lambda name, why: lost.append(name), clock)
    for _ in range(1000):
        if not loops:
            return loops, lost
        loops.settle(0.0)
    raise AssertionError("no end")


@pytest.mark.parametrize("refusals", [0, 1, GIVE_UP_AFTER, 60])
def test_a_killed_agent_works_again_however_long_its_process_takes_to_start(refusals: int) -> None:
    agent = Actor([RESTARTING], [RESTARTING] * refusals)
    loops, lost = played({"a": agent})
    assert (lost, loops.abandoned) == (["a"], "")
    assert (agent.run.calls, agent.ready.calls) == (2, refusals + 1)


@pytest.mark.parametrize("error", [DIED, RESTARTING])
def test_an_agent_that_dies_again_and_again_is_given_up(error: Exception) -> None:
    agent = Actor([error] * 100)
    loops, lost = played({"a": agent})
    assert (len(lost), agent.run.calls) == (GIVE_UP_AFTER, GIVE_UP_AFTER)
    assert type(error).__name__ in loops.abandoned


def test_deaths_that_are_far_apart_are_forgiven() -> None:
    loops, lost = played({"a": Actor([DIED] * 20)}, seconds_a_call=100.0)
    assert (len(lost), loops.abandoned) == (20, "")


def test_an_agent_whose_process_never_comes_back_is_given_up_and_the_others_go_on() -> None:
    gone, other = Actor([RESTARTING], [RESTARTING] * 10_000), Actor([])
    _, lost = played({"gone": gone, "other": other}, seconds_a_call=10.0)
    assert lost == ["gone"]
    assert 30 < gone.ready.calls < 100
    assert other.run.calls == 1


def test_a_process_that_cannot_be_made_is_a_death() -> None:
    loops, lost = played({"a": Actor([DIED], [DIED] * 100)})
    assert len(lost) == GIVE_UP_AFTER
    assert "ActorDiedError" in loops.abandoned

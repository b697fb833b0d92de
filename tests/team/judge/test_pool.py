"""The warm pool: what it makes and takes down, in which order, and that it stands still when it is told to."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pytest

from team.errors import UserError
from team.judge.cuda.pool import BESIDE, SOON, Pool
from team.judge.failures import RunnerFaulted

PATIENCE_S = 60.0  # until a thread that does nothing wrong has surely done it


@dataclass
class Runner:
    """Stands for a process: remembers what was done to it, in the order in which it happened to all of them."""

    pid: int
    log: list[str]
    made: Event
    frozen: bool = False

    def await_ready(self) -> None:
        self.made.wait(PATIENCE_S)
        self.log.append(f"made {self.pid}")

    def freeze(self) -> None:
        self.frozen = True

    def kill(self) -> None:
        self.log.append(f"killed {self.pid}")

    def close(self) -> None:
        self.log.append(f"closed {self.pid}")


@dataclass
class Works:
    """Starts runners, whose contexts are made at once unless ``held``."""

    log: list[str] = field(default_factory=list[str])
    made: Event = field(default_factory=Event)
    begun: Event = field(default_factory=Event)
    started: int = 0
    broken: bool = False

    def start(self) -> Any:
        if self.broken:
            raise UserError("No process can be started.", "Wait.")
        self.started += 1
        self.begun.set()
        return Runner(self.started, self.log, self.made)


@pytest.fixture
def works() -> Works:
    works = Works()
    works.made.set()
    return works


@pytest.fixture
def pool(works: Works) -> Iterator[Pool]:
    pool = Pool(works.start, lambda runner: runner.await_ready())
    yield pool
    works.made.set()
    pool.close()


def done(pool: Pool) -> None:
    with pool._changed:
        assert pool._changed.wait_for(lambda: not pool._due() and not pool._stepping, PATIENCE_S)


def test_as_many_wait_as_are_wanted(pool: Pool, works: Works) -> None:
    pool.work(3)
    done(pool)
    assert (pool.spares, works.started) == (3, 3)
    assert pool.pids() == {1, 2, 3}
    assert pool.take().pid == 1
    pool.work()
    done(pool)
    assert pool.pids() == {2, 3, 4}


def test_the_next_requests_runners_come_before_the_taking_down_and_the_rest_after_it(pool: Pool, works: Works) -> None:
    served = pool.take()
    pool.retire(served)
    pool.work(SOON + 4)
    done(pool)
    last = 1 + -(-SOON // BESIDE) * BESIDE  # the first was made for whoever took it
    expected = [f"made {number}" for number in range(1, last + 1)]
    rest = [f"made {number}" for number in range(last + 1, SOON + 6)]
    assert works.log == [*expected, "killed 1", "closed 1", *rest]


def test_who_served_is_never_handed_out_again(pool: Pool) -> None:
    served = [pool.take() for _ in range(3)]
    for runner in served:
        pool.retire(runner)
    assert all(runner.frozen for runner in served)
    assert pool.pids() == {1, 2, 3}
    assert pool.take().pid == 4


def test_it_ends_the_step_in_hand_and_no_more(pool: Pool, works: Works) -> None:
    works.made.clear()
    pool.work(8)
    assert works.begun.wait(PATIENCE_S)
    pool.hush()
    works.made.set()
    pool.stand_still()
    assert (pool.spares, works.started) == (BESIDE, BESIDE)
    pool.stand_still(ready=BESIDE + 1)
    assert (pool.spares, works.started) == (BESIDE + 1, BESIDE + 1)


def test_none_is_made_or_taken_down_while_it_stands_still(pool: Pool, works: Works) -> None:
    pool.work(2)
    done(pool)
    pool.stand_still()
    pool.retire(pool.take())
    before = list(works.log)
    pool.reap()
    assert works.log == [*before, "killed 1", "closed 1"]


def test_what_cannot_be_started_is_met_by_whoever_takes_it(pool: Pool, works: Works) -> None:
    pool.work(1)
    done(pool)
    works.broken = True
    pool.work(4)
    with pool._changed:
        assert pool._changed.wait_for(lambda: not pool._working, PATIENCE_S)
    assert pool.take().pid == 1
    with pytest.raises(UserError, match="No process"):
        pool.take()
    works.broken = False
    pool.work()
    done(pool)
    assert pool.spares == 4


def test_a_spare_is_handed_out_at_once_while_others_are_being_made(pool: Pool, works: Works) -> None:
    pool.work(1)
    done(pool)
    works.begun.clear()
    works.made.clear()
    pool.work(3)
    assert works.begun.wait(PATIENCE_S)
    assert pool.take().pid == 1
    works.made.set()
    assert pool.take().pid == 2


def test_a_spare_that_cannot_be_furnished_again_is_ended(works: Works) -> None:
    refused: set[int] = set()

    def furnish(runner: Any) -> None:
        if runner.pid in refused:
            raise RunnerFaulted("cudaErrorInvalidValue")

    pool = Pool(works.start, furnish)
    pool.work(3)
    done(pool)
    refused.add(2)
    with pool.alone():
        pool.furnish_again()
    assert pool.pids() == {1, 3}
    assert works.log == ["closed 2"]
    pool.close()


def test_everything_ends_with_it(pool: Pool, works: Works) -> None:
    pool.work(2)
    done(pool)
    pool.retire(pool.take())
    pool.close()
    assert {line for line in works.log if line.startswith("closed")} == {"closed 1", "closed 2"}
    assert pool.pids() == set()
    assert pool._thread is None

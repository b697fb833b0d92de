"""What runs alone is there, comes last, and shuts out whatever may run beside others."""

import fcntl
from contextlib import suppress
from pathlib import Path

import pytest
from two_at_once import ALONE, alone, machine

ROOT = Path(__file__).resolve().parents[1]
TIMED, OTHER = f"{ALONE[0]}::test_one", "tests/test_two_at_once.py::test_one"


def test_every_place_that_is_named_is_there() -> None:
    assert [place for place in ALONE if not (ROOT / place).exists()] == []


def test_what_runs_alone_comes_after_everything_else(request: pytest.FixtureRequest) -> None:
    last = [alone(item.nodeid) for item in request.session.items]
    assert last == sorted(last)


@pytest.mark.parametrize(
    ("first", "second", "together"), [(OTHER, OTHER, True), (OTHER, TIMED, False), (TIMED, OTHER, False)]
)
def test_only_what_may_run_side_by_side_does(first: str, second: str, together: bool, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    with machine(first, lock), lock.open() as other:
        entered = False
        with suppress(BlockingIOError):
            fcntl.flock(other, (fcntl.LOCK_EX if alone(second) else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            entered = True
        assert entered == together

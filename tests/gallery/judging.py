"""What both halves of the gallery ask: a verdict, and whether it is the one that an exhibit's first line promises."""

from pathlib import Path

import pytest
from exhibits import CHEATS, NO_GAIN, TASK, expected, gains

from protocol.messages import Measurement, Outcome
from team.judge.client import Judge
from team.judge.request import Compare

SEEDS = (2, 3)
RARE = pytest.mark.slow  # two thirds of the copies: a third is judged at every run, all of them with the slow tests
COPIED = [pytest.param(one, marks=RARE if rank % 3 else (), id=one.stem) for rank, one in enumerate(CHEATS)]


def by_its_times(exhibit: Path) -> bool:
    """Whether a machine that has something else to do could change what is said of it."""
    return bool(expected(exhibit) & {Outcome.MEASURED, Outcome.TAMPERED})


def judged(judge: Judge, text: str, tree: Path) -> Measurement:
    (tree / "softmax.cpp").write_text(text)
    return judge.compare(Compare(task=str(TASK), base=str(TASK), candidate=str(tree)))


def reject(exhibit: Path, seen: Measurement) -> None:
    """Hold a verdict against what the exhibit's first line promises."""
    assert seen.outcome in expected(exhibit), seen.detail
    if seen.outcome is Outcome.MEASURED:
        assert max(gains(seen)) < NO_GAIN
    else:
        assert seen.detail

"""Cheats whose times give them away, or gain them nothing, are rejected; every honest kernel passes."""

from pathlib import Path

import pytest
from exhibits import CHEATS, CONTAINED, HONEST, copy_of, text_of
from judging import COPIED, SEEDS, by_its_times, judged, reject

from protocol.messages import Outcome
from team.judge.client import Judge

TIMED_CHEATS = [one for one in CHEATS if by_its_times(one)]
TIMED_COPIED = [one for one in COPIED if by_its_times(one.values[0])]


@pytest.mark.parametrize("exhibit", TIMED_CHEATS, ids=lambda path: path.stem)
def test_cheat_is_rejected(exhibit: Path, judge: Judge, tmp_path: Path) -> None:
    reject(exhibit, judged(judge, text_of(exhibit), tmp_path))


@pytest.mark.parametrize("exhibit", TIMED_COPIED)
def test_copy_of_a_cheat_is_rejected(exhibit: Path, judge: Judge, tmp_path: Path) -> None:
    reject(exhibit, judged(judge, copy_of(exhibit), tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exhibit", TIMED_CHEATS, ids=lambda path: path.stem)
def test_other_copies_of_a_cheat_are_rejected(exhibit: Path, seed: int, judge: Judge, tmp_path: Path) -> None:
    reject(exhibit, judged(judge, copy_of(exhibit, seed), tmp_path))


@pytest.mark.parametrize("exhibit", [*HONEST, *CONTAINED], ids=lambda path: path.stem)
def test_honest_kernel_passes(exhibit: Path, judge: Judge, tmp_path: Path) -> None:
    seen = judged(judge, text_of(exhibit), tmp_path)
    assert seen.outcome is Outcome.MEASURED, seen.detail
    assert seen.pairs >= 8


@pytest.mark.slow
@pytest.mark.parametrize("exhibit", HONEST, ids=lambda path: path.stem)
def test_copy_of_an_honest_kernel_passes(exhibit: Path, judge: Judge, tmp_path: Path) -> None:
    seen = judged(judge, copy_of(exhibit), tmp_path)
    assert seen.outcome is Outcome.MEASURED, seen.detail

"""Every cheat is rejected as its first line says, and every honest kernel passes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import GALLERY, TASK  # pyright: ignore

from protocol.messages import Outcome
from team.judge.client import Judge
from team.judge.request import Compare

CHEATS = sorted((GALLERY / "cheats").glob("*.cpp"))
HONEST = sorted((GALLERY / "honest").glob("*.cpp"))


def expected(fixture: Path) -> set[Outcome]:
    """The outcomes named on a fixture's first line: ``// A01 incorrect|tampered: why``."""
    words = fixture.read_text().splitlines()[0].removeprefix("// ").split(":")[0].split()[-1]
    return {Outcome(word) for word in words.split("|")}


@pytest.mark.parametrize("fixture", CHEATS, ids=lambda path: path.stem)
def test_cheat_is_rejected(fixture: Path, judge: Judge, tree_of: Callable[[Path], Path]) -> None:
    seen = judge.compare(Compare(task=str(TASK), base=str(TASK), candidate=str(tree_of(fixture))))
    assert seen.outcome in expected(fixture), seen.detail
    assert seen.detail


@pytest.mark.parametrize("fixture", HONEST, ids=lambda path: path.stem)
def test_honest_kernel_passes(fixture: Path, judge: Judge, tree_of: Callable[[Path], Path]) -> None:
    seen = judge.compare(Compare(task=str(TASK), base=str(TASK), candidate=str(tree_of(fixture))))
    assert seen.outcome is Outcome.MEASURED, seen.detail
    assert seen.pairs >= 8

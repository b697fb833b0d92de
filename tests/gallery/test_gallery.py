"""Every cheat is rejected as its first line says, and every honest kernel passes."""

from pathlib import Path

import pytest
from exhibits import CHEATS, CONTAINED, HONEST, TASK, expected, text_of

from protocol.messages import Measurement, Outcome
from team.judge.client import Judge
from team.judge.request import Compare


def judged(judge: Judge, exhibit: Path, tree: Path) -> Measurement:
    (tree / "softmax.cpp").write_text(text_of(exhibit))
    return judge.compare(Compare(task=str(TASK), base=str(TASK), candidate=str(tree)))


@pytest.mark.parametrize("exhibit", CHEATS, ids=lambda path: path.stem)
def test_cheat_is_rejected(exhibit: Path, judge: Judge, tmp_path: Path) -> None:
    seen = judged(judge, exhibit, tmp_path)
    assert seen.outcome in expected(exhibit), seen.detail
    assert seen.detail


@pytest.mark.parametrize("exhibit", [*HONEST, *CONTAINED], ids=lambda path: path.stem)
def test_honest_kernel_passes(exhibit: Path, judge: Judge, tmp_path: Path) -> None:
    seen = judged(judge, exhibit, tmp_path)
    assert seen.outcome is Outcome.MEASURED, seen.detail
    assert seen.pairs >= 8

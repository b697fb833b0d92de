"""Every cheat is rejected as its first line says, its disguised copies too: those that no clock is needed for."""

import re
from pathlib import Path

import pytest
from copies import disguised
from exhibits import CHEATS, CUDA, HERE, SCREENED, TASK, copy_of, expected, refused_text, table, text_of
from judging import COPIED, SEEDS, by_its_times, judged, reject

from team.judge.client import Judge
from team.judge.request import Check

ALL = [*CHEATS, *SCREENED, *CUDA["cheats"], *CUDA["screened"]]
WRONG_CHEATS = [one for one in CHEATS if not by_its_times(one)]
WRONG_COPIED = [one for one in COPIED if not by_its_times(one.values[0])]


@pytest.mark.parametrize("exhibit", WRONG_CHEATS, ids=lambda path: path.stem)
def test_cheat_is_rejected(exhibit: Path, judge: Judge, tmp_path: Path) -> None:
    reject(exhibit, judged(judge, text_of(exhibit), tmp_path))


@pytest.mark.parametrize("exhibit", WRONG_COPIED)
def test_copy_of_a_cheat_is_rejected(exhibit: Path, judge: Judge, tmp_path: Path) -> None:
    reject(exhibit, judged(judge, copy_of(exhibit), tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exhibit", WRONG_CHEATS, ids=lambda path: path.stem)
def test_other_copies_of_a_cheat_are_rejected(exhibit: Path, seed: int, judge: Judge, tmp_path: Path) -> None:
    reject(exhibit, judged(judge, copy_of(exhibit, seed), tmp_path))


@pytest.mark.parametrize("exhibit", SCREENED, ids=lambda path: path.stem)
def test_the_screen_speaks_for_the_judge(exhibit: Path, judge: Judge, tmp_path: Path) -> None:
    """With the screen on, as every task has it unless it says otherwise."""
    task, tree = tmp_path / "task", tmp_path / "tree"
    for folder in (task, tree):
        folder.mkdir()
        for path in TASK.iterdir():
            if path.is_file():
                (folder / path.name).write_text(path.read_text().replace("active = false", "active = true"))
    (tree / "softmax.cpp").write_text(text_of(exhibit))
    seen = judge.check(Check(task=str(task), tree=str(tree)))
    assert seen.outcome in expected(exhibit), seen.detail
    assert re.search(r"softmax\.cpp:\d+ \w+", seen.detail)


@pytest.mark.parametrize("exhibit", ALL, ids=lambda path: path.name)
def test_a_copy_only_looks_different(exhibit: Path) -> None:
    """It shares no name of its own with the original, and the screen says of it what it says of the original."""
    original, copy = text_of(exhibit), copy_of(exhibit)
    assert copy == copy_of(exhibit)
    assert copy != copy_of(exhibit, 2)
    assert "honest" not in re.findall(r"\w+", copy)
    assert bool(refused_text(exhibit, original)) == bool(refused_text(exhibit, copy))


def test_independent_code_changes_places() -> None:
    text = "int a() { return 1; }\nint b() { return 2; }\nint c() { int x = 3; int y = 4; return a() + x - y; }\n"
    orders = {tuple(re.findall(r"0x([1-4])\b", disguised(text, "cpp", seed))) for seed in range(16)}
    assert ("1", "2", "3", "4") not in orders
    assert {tuple(sorted(order)) for order in orders} == {("1", "2", "3", "4")}


def test_the_table_lists_every_exhibit_with_its_verdict_and_layer() -> None:
    """README.md of the gallery: family, exhibit, verdict, layer; the layer begins with the screen where it speaks."""
    rows = table()
    assert sorted(rows) == sorted(str(path.relative_to(HERE)) for path in ALL)
    for exhibit in ALL:
        family, verdict, layer = rows[str(exhibit.relative_to(HERE))]
        first = exhibit.read_text().splitlines()[0].removeprefix("// ").split(":")[0]
        assert first == f"{family} {verdict}"
        seen = bool(refused_text(exhibit, text_of(exhibit))) or exhibit.parent.name == "screened"
        assert layer.startswith("screen") == seen

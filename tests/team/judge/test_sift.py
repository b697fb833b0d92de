"""Many variants screened in few processes: who is right, who is fast, and who takes whom along."""

from collections.abc import Sequence
from pathlib import Path

from tasks_on_disk import ONCE, TWICE, write_task, write_tree

from protocol.messages import Measurement
from team.judge.client import Judge
from team.judge.request import Screen
from team.race import Raced, race
from team.tasks.spec import read_spec

WRONG = "    for (int i = 0; i < n; i++) y[i] = x[i];\n"
CRASHES = "    *(volatile int*)8 = n;\n"
UNBUILT = "    undefined(x);\n"
SCALED = "    for (int i = 0; i < n; i++) y[i] = kept() * std::sin(x[i]);\n"
KEPT = "#pragma once\ninline float& kept() {{ static float value = {}; return value; }}\n"
WEIGHTS = {"small": 1.0, "odd": 1.0}


def again(times: int) -> str:
    """``TWICE`` so many times: a variant of known slowness."""
    return "".join(f"    // {number}\n{TWICE}" for number in range(times))


def sifted(judge: Judge, task: Path, trees: Sequence[Path]) -> Raced:
    request = Screen(task=str(task), base=str(task), candidates=tuple(map(str, trees)))
    return race(judge, request, WEIGHTS, read_spec(task).policy)


def outcomes(measured: Sequence[Measurement]) -> list[str]:
    return [one.outcome.value for one in measured]


def test_the_fastest_right_one_wins_whatever_becomes_of_the_others(judge: Judge, tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", TWICE)
    bodies = {
        again(2): "measured", WRONG: "incorrect", UNBUILT: "build_failed", ONCE: "measured", CRASHES: "crashed",
        again(3): "measured",
    }  # fmt: skip
    raced = sifted(judge, task, [write_tree(tmp_path / f"v{at}", body) for at, body in enumerate(bodies)])
    assert outcomes(raced.measured) == list(bodies.values())
    assert raced.champion == list(bodies).index(ONCE)
    assert [gain is not None for gain in raced.gains] == [said == "measured" for said in bodies.values()]
    assert "error" in raced.measured[2].detail
    assert len([stage for stage in judge.stages() if stage.name == "sift"]) == 4  # two groups, a suspect, the finalists


def test_siblings_share_no_state_that_their_texts_name_alike(judge: Judge, tmp_path: Path) -> None:
    """With unique symbols the first one's value would be everybody's, and all of them right or all wrong."""
    task = write_task(tmp_path / "task", TWICE)
    trees = [write_tree(tmp_path / f"v{number}", SCALED) for number in range(5)]
    for number, tree in enumerate(trees):
        (tree / "extra.h").write_text(KEPT.format("2.0f" if number % 2 else "1.0f") + f"// {number}\n")
    measured = sifted(judge, task, trees).measured
    assert outcomes(measured) == ["measured", "incorrect", "measured", "incorrect", "measured"]

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
REPEATS = 'extern "C" char* getenv(const char*);\n'
SHARED = "inline int& kept() { static int calls = 0; return calls; }\n"
WEIGHTS = {"small": 1.0, "odd": 1.0}


def again(times: int) -> str:
    """``TWICE`` so many times: a variant of known slowness."""
    return "".join(f"    // {number}\n{TWICE}" for number in range(times))


def sifted(judge: Judge, folder: Path, bodies: Sequence[str], base: str = TWICE) -> Raced:
    task = write_task(folder / "task", base)
    trees = tuple(str(write_tree(folder / f"v{number}", body)) for number, body in enumerate(bodies))
    return race(judge, Screen(task=str(task), base=str(task), candidates=trees), WEIGHTS, read_spec(task).policy)


def outcomes(measured: Sequence[Measurement]) -> list[str]:
    return [one.outcome.value for one in measured]


def test_the_fastest_right_one_wins_whatever_becomes_of_the_others(judge: Judge, tmp_path: Path) -> None:
    bodies = [again(3), WRONG, UNBUILT, again(2), ONCE, CRASHES, again(4)]
    raced = sifted(judge, tmp_path, bodies)
    assert outcomes(raced.measured) == ["measured", "incorrect", "build_failed", "measured", "measured", "crashed",
                                        "measured"]  # fmt: skip
    assert raced.champion == 4
    seen = [gain for gain in raced.gains if gain is not None]
    assert len(seen) == 4
    assert raced.gains[4] == max(seen) > 0.3

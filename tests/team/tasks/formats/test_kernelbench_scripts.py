"""The scripts that evaluate KernelBench exports: fast_p, intervals, the order of the set, and a short run on a CPU."""

import importlib.util
import json
import subprocess
import sys
from math import exp, log
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[4]


def script(name: str) -> ModuleType:
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def result(speedup: dict[str, tuple[float, float, float]] | None = None, correct: bool = True, **more: Any) -> Any:
    return script("fast_p").Result("a problem", correct, "", speedup=speedup or {}, **more)


def test_fast_p_counts_wrong_and_untimed_problems_and_is_strict() -> None:
    results = [
        result({"eager": (0.9, 1.0, 1.1), "compile": (0.4, 0.6, 0.8)}),
        result({"eager": (1.9, 2.1, 2.2)}),  # torch.compile did not take it
        result({"eager": (1.4, 1.6, 1.8), "compile": (2.1, 2.2, 2.3)}, as_it_comes="trial 1: largest error 0.002"),
        result({"eager": (9.0, 9.0, 9.0), "compile": (9.0, 9.0, 9.0)}, correct=False),
        result(correct=False),
    ]
    found = script("fast_p").summary(results)
    assert (found["problems"], found["correct"], found["correct as torch comes"]) == (5, 3, 2)
    assert found["fast_p over eager"] == {"0.0": 0.6, "0.5": 0.6, "0.8": 0.6, "1.0": 0.4, "1.5": 0.4, "2.0": 0.2}
    assert found["fast_p over eager, beyond doubt"]["1.5"] == 0.2
    assert found["fast_p over compile"] == {"0.0": 0.4, "0.5": 0.4, "0.8": 0.2, "1.0": 0.2, "1.5": 0.2, "2.0": 0.2}
    assert found["geometric mean over compile"] == pytest.approx((0.6 * 2.2) ** 0.5)


def test_an_interval_is_students_over_the_rounds() -> None:
    low, middle, high = script("fast_p").interval([2.0, 2.0, 2.0 * exp(0.3)], [1.0, 1.0, 1.0])
    half = 4.302653 * (0.3 / 3**0.5) / 3**0.5  # t of 2 degrees of freedom at 97.5 %
    assert log(middle) == pytest.approx(log(2.0) + 0.1)
    assert (log(low), log(high)) == (pytest.approx(log(middle) - half), pytest.approx(log(middle) + half))


def test_the_set_comes_level_by_level_in_turn_in_every_language() -> None:
    cases = script("kernelbench_cases").cases(["triton", "cuda"], [])
    right = [case for case in cases if not case.spoilt]
    assert [case.problem.split("/")[0] for case in right[:8:2]] == ["level1", "level2", "level3", "level1"]
    assert [case.language for case in right] == ["triton", "cuda"] * (len(right) // 2)
    assert len(right) == 2 * len(list((ROOT / "benchmarks" / "kernelbench_set").glob("*/*.py")))
    assert {case.problem.split("/")[0] for case in cases if case.spoilt} == {"level1", "level2", "level3"}


def test_agreement_needs_both_and_counts_a_wrong_one_that_both_find() -> None:
    module = script("kernelbench_cases")
    right, wrong = ({"problem": "p", "correct": found, "reason": ""} for found in (True, False))
    cases = [
        module.Case("level1/a", "cpp", judge="measured", script=right),
        module.Case("level1/a", "cpp", True, judge="incorrect", script=wrong),
        module.Case("level1/b", "cpp", judge="measured", script=wrong),
        module.Case("level1/c", "cpp", judge="measured"),
    ]
    told = module.summaries(cases)
    assert [case.agrees for case in cases] == [True, True, False, None]
    assert (told["told by both"], told["agree"]) == (3, 2)
    assert (told["cpp"]["problems"], told["cpp"]["correct"]) == (1, 0)  # a was not timed yet, c not evaluated


@pytest.mark.slow
def test_the_whole_way_on_a_cpu_and_what_is_cut_off_keeps_what_was_done(tmp_path: Path) -> None:
    words = ["--device", "cpu", "--small", "8000", "--repeats", "20", "--parallel", "1", "--no-compile"]
    words += ["--only", "level2-01"]

    def told(seconds: str, out: Path) -> tuple[int, Any]:
        command = [sys.executable, str(ROOT / "scripts" / "bench_kernelbench_set.py"), "--out", str(out), *words]
        done = subprocess.run([*command, "--seconds", seconds], capture_output=True, text=True, timeout=230, cwd=ROOT)
        assert (out / "kernelbench-set.json").exists(), done.stderr[-2000:]
        return done.returncode, json.loads((out / "kernelbench-set.json").read_text())

    status, found = told("220", tmp_path)
    assert status == 0, (tmp_path / "kernelbench-set.txt").read_text()
    right, spoilt = found["cases"]
    assert (right["spoilt"], spoilt["spoilt"]) == (False, True)
    assert spoilt["judge"] == "incorrect"
    assert right["judge"] == "measured"
    assert right["script"]["speedup"]["eager"][0] > 0.0
    assert found["summary"]["agree"] == 2
    assert found["summary"]["cpp"]["fast_p over eager"]["0.0"] == 1.0
    status, found = told("1", tmp_path / "short")
    assert status == 1
    assert [case["agrees"] for case in found["cases"]] == [None, None]

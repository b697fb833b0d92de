"""What ``scripts/kernelbench_eval.py`` says of one file, and ``fast_p`` over many."""

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, log, sqrt
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from protocol.two_level import student_quantile  # noqa: E402

SPEEDUPS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
CONFIDENCE = 0.95
BASELINES = ("eager", "compile")


@dataclass
class Result:
    """What one file did. Times are medians and means of one call (milliseconds), ``speedup`` by baseline is [low,
    estimate, high]."""

    problem: str
    correct: bool
    reason: str
    as_it_comes: str = ""
    median_ms: float | None = None
    mean_ms: float | None = None
    eager_ms: float | None = None
    compile_ms: float | None = None
    speedup: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    repeats: int = 0
    uncompiled: str = ""


def interval(others: Sequence[float], own: Sequence[float]) -> tuple[float, float, float]:
    """(low, estimate, high) of how many times faster ``own`` is, from times of as many rounds, two at least."""
    ratios = [log(other / one) for other, one in zip(others, own, strict=True)]
    centre, count = statistics.fmean(ratios), len(ratios)
    half = student_quantile(0.5 + CONFIDENCE / 2, count - 1) * statistics.stdev(ratios) / sqrt(count)
    return exp(centre - half), exp(centre), exp(centre + half)


def summary(results: list[Result]) -> dict[str, Any]:
    """fast_p over eager and over torch.compile, and geometric means over the right ones."""
    right = [one for one in results if one.correct]
    found: dict[str, Any] = {"problems": len(results), "correct": len(right)}
    found["correct as torch comes"] = sum(one.correct and not one.as_it_comes for one in results)
    for against in BASELINES:
        known = [one.speedup[against] for one in right if against in one.speedup]
        if known:
            found[f"fast_p over {against}"] = _shares([middle for _, middle, _ in known], len(results))
            found[f"fast_p over {against}, beyond doubt"] = _shares([low for low, _, _ in known], len(results))
            found[f"geometric mean over {against}"] = exp(statistics.fmean(log(middle) for _, middle, _ in known))
    return found


def _shares(speedups: Sequence[float], problems: int) -> dict[str, float]:
    """fast_p for every p: the share of all problems, wrong and untimed ones too, that are more than p times faster."""
    return {str(p): sum(one > p for one in speedups) / problems for p in SPEEDUPS}

"""The cases of ``scripts/bench_kernelbench_set.py``: which there are, in which order, and what is told of them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from fast_p import BASELINES, Result, summary  # noqa: E402

from protocol.messages import Outcome  # noqa: E402

SET = ROOT / "benchmarks" / "kernelbench_set"
SPOILT = 1
"""Of every level, so many problems also have a kernel that is wrong on purpose."""


MADE = "made"
REFUSED, DIED = "REFUSED", "JUDGE DIED"
"""What stands in a judge's place when it had no answer; it agrees with nothing."""


@dataclass
class Case:
    """One problem in one language and what became of it."""

    problem: str
    language: str
    spoilt: bool = False
    made: str = ""
    judge: str = ""
    detail: str = ""
    worst: float | None = None
    script: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """A file's name that is its own."""
        return f"{self.problem.replace('/', '-')}-{self.language}{'-spoilt' if self.spoilt else ''}"

    @property
    def agrees(self) -> bool | None:
        """Whether judge and script say the same; None while one of them has no answer."""
        if self.judge in ("", REFUSED, DIED) or "correct" not in self.script:
            return None
        return (self.judge == Outcome.MEASURED.value) == self.script["correct"]

    @property
    def done(self) -> bool:
        """Whether it was evaluated to the end: a right kernel that is to be timed was timed."""
        return self.script.get("correct") is False or bool(self.script.get("repeats"))


def cases(languages: Sequence[str], only: Sequence[str]) -> list[Case]:
    """Every problem in every language; levels in turn, the spoilt ones among them."""
    levels = [sorted(folder.glob("*.py")) for folder in sorted(SET.glob("level*"))]
    mixed = [path for rank in zip_longest(*levels) for path in rank if path is not None]
    names = [f"{path.parent.name}/{path.stem}" for path in mixed]
    spoilt = {f"{path.parent.name}/{path.stem}" for level in levels for path in level[:SPOILT]}
    found = [
        Case(name, language, wrong)
        for name in names
        for language in languages
        for wrong in (False, True)
        if name in spoilt or not wrong
    ]
    return [case for case in found if not only or any(part in case.name for part in only)]


def summaries(found: Sequence[Case]) -> dict[str, Any]:
    """Agreement over everything; fast_p over the set by language, the spoilt ones left out."""
    known = [case.agrees for case in found if case.agrees is not None]
    told: dict[str, Any] = {"cases": len(found), "told by both": len(known), "agree": sum(known)}
    for language in dict.fromkeys(case.language for case in found):
        done = [case for case in found if case.language == language and not case.spoilt and case.done]
        if done:
            told[language] = summary([Result(**case.script) for case in done])
    return told


def row(case: Case) -> str:
    """One line: what both say, speedups with their intervals, seconds."""
    script = case.script
    said = {True: "right", False: "wrong", None: "-"}[script.get("correct")]
    agree = {True: "agree", False: "DISAGREE", None: "open"}[case.agrees]
    parts = [f"{case.name:48} judge {case.judge or '-':9} script {said:5} {agree:8}"]
    for name, (low, middle, high) in script.get("speedup", {}).items():
        parts.append(f"{middle:8.4f}x [{low:.4f}, {high:.4f}] of {name}")
    parts.append(" ".join(f"{name} {seconds:.0f} s" for name, seconds in case.seconds.items()))
    why = [case.made if case.made != "made" else "", case.detail, script.get("reason"), script.get("uncompiled")]
    if script.get("correct") and script["as_it_comes"]:
        why.append(f"wrong as torch comes, whose reference may use TF32: {script['as_it_comes']}")
    return "  ".join([*parts, *(one for one in why if one)])


def summary_lines(told: dict[str, Any]) -> list[str]:
    """The same for a person."""
    lines = [f"judge and script agree on {told['agree']} of {told['told by both']}, of {told['cases']} cases"]
    for language, found in told.items():
        if not isinstance(found, dict):
            continue
        as_it_comes = f"{found['correct as torch comes']} with TF32 in the reference's convolutions, as torch comes"
        lines.append(f"{language}: {found['correct']} of {found['problems']} problems right; {as_it_comes}")
        for name in BASELINES:
            if f"fast_p over {name}" not in found:
                continue
            for which in (f"fast_p over {name}", f"fast_p over {name}, beyond doubt"):
                lines.append(f"  {which}: " + "  ".join(f"{p}: {share:.3f}" for p, share in found[which].items()))
            lines.append(f"  geometric mean of the right ones over {name}: {found[f'geometric mean over {name}']:.3f}x")
    return lines

"""Ablation: the champion against itself without one of its methods, by the judge's own paired measurement.

Both sides are built, checked and timed as an experiment's are: the same task, shapes, flags and protocol, fresh inputs,
pairs until the sequential test decides. A tree that is missing, does not build, is wrong or stays undecided proves
nothing. Whatever is measured here, the other side is the very champion.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from protocol.messages import Build, Measurement, Noise, Outcome
from protocol.methods import Ablation, Contribution, absent, attributed
from protocol.policy import Policy
from protocol.sequential import decide
from team.judge.client import Judge
from team.judge.failures import BaselineBroken, JudgeDied
from team.judge.request import Check, Compare


@dataclass(frozen=True)
class Without:
    """The champion without one method: a task folder with its files, or None and ``how`` says why there is none."""

    method: str
    tree: Path | None
    how: str
    name: str = ""

    @property
    def named(self) -> str:
        """What the tree is called in the record: its commit, else its folder."""
        return self.name or ("" if self.tree is None else str(self.tree))


@dataclass(frozen=True)
class Trial:
    """What ablations are measured with: the judge of one device, the trusted task, the champion, and the law.

    ``artifact``: hash of what the champion is built to, where that is known.
    """

    judge: Judge
    trusted: Path
    champion: Path
    weights: Mapping[str, float]
    noise: Noise | None
    policy: Policy
    artifact: str = ""


@dataclass(frozen=True)
class Ablated:
    """One method's ablation with its raw measurement, None when nothing was measured.

    ``begun``: false when the time was up before its turn.
    """

    ablation: Ablation
    measurement: Measurement | None = None
    begun: bool = True

    @property
    def builds(self) -> tuple[Build, Build] | None:
        """The champion's build and that of the tree without the method; None when they are not both known."""
        if self.measurement is None or self.measurement.candidate_build is None:
            return None
        if self.ablation.gain is None and self.ablation.contribution is Contribution.NOT_CONTRIBUTED:
            return self.measurement.candidate_build, self.measurement.candidate_build  # they are the same
        base = self.measurement.base_build
        return (self.measurement.candidate_build, base) if base else None


def ablate(trial: Trial, trees: Iterable[Without], seconds: float | None = None) -> Iterator[Ablated]:
    """Each method in turn. After ``seconds`` no further one is begun: what is left is inconclusive."""
    until = None if seconds is None else time.monotonic() + seconds
    ours = trial.artifact
    for without in trees:
        if without.tree is None:
            yield Ablated(absent(without.method, without.how))
        elif until is not None and time.monotonic() >= until:
            why = f"the {seconds:g} s for ablation were spent before its turn"
            yield Ablated(absent(without.method, why), begun=False)
        else:
            ours = ours or _digest(trial, trial.champion)
            yield _measured(trial, without, without.tree, ours)


def _digest(trial: Trial, tree: Path) -> str:
    """Hash of what a tree is built to; a space when it is not."""
    try:
        build = trial.judge.check(Check(task=str(trial.trusted), tree=str(tree))).candidate_build
    except JudgeDied:
        trial.judge.start()
        return " "
    return build.artifact if build else " "


def _measured(trial: Trial, without: Without, tree: Path, ours: str) -> Ablated:
    """The tree without it is checked first: it stands on the base's side, where a failure is no outcome.

    ``ours``: what the champion is built to. A method that changes nothing there needs no clock.
    """
    try:
        checked = trial.judge.check(Check(task=str(trial.trusted), tree=str(tree)))
        if checked.outcome is not Outcome.MEASURED:
            return Ablated(_attributed(without, checked.outcome, checked.detail), checked)
        if checked.candidate_build is not None and checked.candidate_build.artifact == ours:
            return Ablated(_changes_nothing(without), checked)
        request = Compare(task=str(trial.trusted), base=str(tree), candidate=str(trial.champion), noise=trial.noise)
        measured = trial.judge.compare(request)
    except BaselineBroken as broken:
        return Ablated(absent(without.method, f"without it: {broken}"[:500]))
    except JudgeDied as died:
        trial.judge.start()
        return Ablated(absent(without.method, f"the judge died of the tree without it: {died}"[:500]))
    decision = None
    if measured.outcome is Outcome.MEASURED:
        decision = decide(measured.restarts, trial.weights, trial.noise, trial.policy)
    detail = f"the champion itself, {measured.detail}" if decision is None else ""
    return Ablated(attributed(without.method, measured.outcome, detail, decision, without.named, without.how), measured)


def _changes_nothing(without: Without) -> Ablation:
    return Ablation(
        method=without.method,
        contribution=Contribution.NOT_CONTRIBUTED,
        why="the compiler makes the same of the kernel with and without it",
        without=without.named,
        how=without.how,
    )


def _attributed(without: Without, outcome: Outcome, detail: str) -> Ablation:
    return attributed(without.method, outcome, detail, None, without.named, without.how)

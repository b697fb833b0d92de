"""The branches of one idea: raced, repaired once when nothing builds, and the champion measured afresh.

A candidate that fails fails alone: the next of its siblings is measured.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from protocol.messages import Measurement, Message, Outcome, Parameter, Plan, Proposal, Role, Variant
from team.judge.failures import BaselineBroken
from team.judge.request import Screen
from team.optimize.briefing import briefing_for
from team.optimize.gates import Stopped
from team.optimize.session import Session
from team.race import Raced, race
from team.workspace.objects import Refused

T = TypeVar("T")


class Method(Message):
    """One change that a branch holds: plan, settings of it and of all before it, what it was made on, its commit."""

    plan: Plan
    parameters: dict[str, Parameter]
    base: str
    commit: str


@dataclass
class Idea:
    """A proposal that may run: who had it, and a commit for each of its variants.

    ``stack``: methods on top of each other, the proposal's own first. The last ``stacked`` branches hold the beginnings
    of it, the last one all of it; every other branch holds the proposal's change alone.
    """

    role: Role
    proposal: Proposal
    commits: list[str]
    stack: tuple[Method, ...] = ()
    stacked: int = 0

    @property
    def plans(self) -> list[Plan]:
        """The plan of every method that some branch holds."""
        return [one.plan for one in self.stack] or [self.plan]

    @property
    def plain(self) -> int:
        """How many branches hold the proposal's change alone; they come first."""
        return len(self.commits) - self.stacked

    def methods(self, branch: int, base: str) -> tuple[Method, ...]:
        """What a branch holds on top of ``base``, in the order in which it was made."""
        if branch >= self.plain:
            return self.stack[: len(self.stack) - (len(self.commits) - 1 - branch)]
        parameters, commit = self.proposal.variants[branch].parameters, self.commits[branch]
        return (Method(plan=self.plan, parameters=parameters, base=base, commit=commit),)

    @property
    def plan(self) -> Plan:
        """What is to be changed, and why."""
        return self.proposal.plan


@dataclass
class Trial:
    """What became of an idea's branches. ``tried`` are champions in their order with what was seen of each."""

    raced: Raced
    tried: list[tuple[int, Measurement]] = field(default_factory=list)

    @property
    def champion(self) -> int | None:
        """The branch that was measured to the end; None when not one was."""
        last = self.tried[-1] if self.tried else None
        return last[0] if last and last[1].outcome is Outcome.MEASURED else None


def tried(session: Session, number: int, idea: Idea) -> Trial:
    """Race the branches, then measure the champion, or the next of its siblings when it fails."""
    trial = Trial(_raced(session, idea.commits))
    if trial.raced.champion is None and trial.raced.measured[0].outcome is Outcome.BUILD_FAILED:
        _mended(session, number, idea, trial)
    running = [(gain, -place) for place, gain in enumerate(trial.raced.gains) if gain is not None]
    for _, place in sorted(running, reverse=True):
        measured = _measured(session, idea.commits[-place])
        trial.tried.append((-place, measured))
        if measured.outcome is Outcome.MEASURED:
            break
    return trial


def _raced(session: Session, commits: Sequence[str]) -> Raced:
    request = Screen(
        task=str(session.trusted),
        base=str(session.snapshot(session.best)),
        candidates=tuple(str(session.snapshot(commit)) for commit in commits),
        noise=session.state.noise,
    )
    return _on_the_best(session, lambda: race(session.judge, request, session.weights, session.policy))


def _mended(session: Session, number: int, idea: Idea, trial: Trial) -> None:
    """The one repair that a build failure gets."""
    briefing = briefing_for(session, number, idea.role, None, ())
    mended = session.mind.repair(briefing, idea.proposal, trial.raced.measured[0].detail)
    if mended is None:
        return
    idea.proposal = idea.proposal.model_copy(update={"dollars": idea.proposal.dollars + mended.dollars})
    try:
        idea.commits = [committed(session, number, mended.plan, mended.variants[0])]
    except Refused as no:
        session.say(f"iteration {number}: a repair was refused: {no}")
        return
    idea.proposal = mended.model_copy(update={"variants": mended.variants[:1], "dollars": idea.proposal.dollars})
    idea.stack, idea.stacked = (), 0
    trial.raced = _raced(session, idea.commits)


def _measured(session: Session, commit: str) -> Measurement:
    """The strict gate where it holds, then base and candidate in fresh processes."""
    if session.options.numerics_mode == "strict":
        same = _on_the_best(session, lambda: session.identical(session.state.baseline_commit, commit))
        if same.outcome is not Outcome.MEASURED:
            return same
    return _on_the_best(session, lambda: session.compare(session.best, commit))


def _on_the_best(session: Session, question: Callable[[], T]) -> T:
    """Ask the judge; a best kernel that does not run any more is a matter of the machine."""
    try:
        return session.ask(question)
    except BaselineBroken as broken:
        number = session.state.finished_iterations + 1
        raise Stopped(
            "iteration", "iteration_timing_invalid", f"the best kernel did not run: {broken}", number
        ) from None


def committed(session: Session, number: int, plan: Plan, variant: Variant) -> str:
    return session.commit(session.best, variant, f"iterv{number}", plan.technique, plan.change)

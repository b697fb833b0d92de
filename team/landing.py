"""Bringing kept commits to main: cherry-pick, verification elsewhere, fast-forward. Git only; the law is ``protocol``.

The coordinator's loop asks ``pending(state)`` what the head of the queue needs, lets ``LandingDesk.carry_out`` do it in
a thread, and records the event that comes back. Each step may be repeated after a crash at any point.
"""

from dataclasses import dataclass
from math import exp

from protocol import events as ev
from protocol.messages import Verdict
from protocol.state import CampaignState, ExperimentState, LandingState
from protocol.verdict import judge
from team.workspace.hub import MAIN, Hub
from team.workspace.worktree import Conflict


@dataclass(frozen=True)
class Prepare:
    """Put a kept commit on top of main."""

    experiment: ExperimentState
    main: str


@dataclass(frozen=True)
class Settle:
    """Move main to a verified commit, or refuse it."""

    experiment: ExperimentState
    landing: LandingState
    verdict: Verdict
    reason: str
    main: str


def pending(state: CampaignState, simpler: bool) -> Prepare | Settle | None:
    """What the head of the landing queue needs now; None while its verification is awaited."""
    landing = next(iter(state.landings.values()), None)
    if landing is None:
        return None
    experiment = state.experiments[landing.experiment]
    if not landing.candidate or landing.main != state.main:
        return Prepare(experiment, state.main)
    if landing.measured is None:
        return None
    measured = landing.measured
    verdict, reason = judge(measured.measurement, measured.decision, simpler, state.policy)
    return Settle(experiment, landing, verdict, reason, state.main)


class LandingDesk:
    """The coordinator's hands in git."""

    def __init__(self, hub: Hub, editable: tuple[str, ...]) -> None:
        self._hub = hub
        self._editable = editable

    def carry_out(self, step: Prepare | Settle) -> ev.LandingPrepared | ev.Landed | ev.LandingRefused:
        """Do one step; the event that it makes true."""
        return self._prepare(step) if isinstance(step, Prepare) else self._settle(step)

    def _prepare(self, step: Prepare) -> ev.LandingPrepared | ev.LandingRefused:
        experiment = step.experiment
        tree = self._hub.landing()
        tree.reset(step.main)
        picked = tree.cherry_pick(experiment.commit)
        if isinstance(picked, Conflict):
            how, source = "whole tree", self._graft(experiment, step.main)
        else:
            how, source = "cherry-pick", picked
        if not self._hub.changed(step.main, source):
            return ev.LandingRefused(experiment=experiment.id, why="main holds this change already")
        candidate = self._with_trailers(experiment, source, step.main)
        self._hub.anchor(f"landing/{experiment.id}", candidate)
        return ev.LandingPrepared(experiment=experiment.id, candidate=candidate, main=step.main, how=how)

    def _graft(self, experiment: ExperimentState, main: str) -> str:
        return self._hub.merge_tree_commit(experiment.commit, main, "whole tree", {}, self._editable)

    def _with_trailers(self, experiment: ExperimentState, source: str, main: str) -> str:
        plan, overall = experiment.plan, experiment.overall
        assert plan is not None
        trailers = {"Experiment": experiment.id, "Technique": plan.technique, "Agent": experiment.agent}
        if overall is not None:
            trailers["Speedup"] = f"{exp(overall.gain):.4f}"
            trailers["Interval"] = f"[{exp(overall.low):.4f}, {exp(overall.high):.4f}]"
        git = self._hub.git
        return self._hub.objects.commit_tree(git.text("rev-parse", f"{source}^{{tree}}"), main, plan.change, trailers)

    def _settle(self, step: Settle) -> ev.Landed | ev.LandingRefused:
        decision = step.landing.measured.decision if step.landing.measured else None
        if not step.verdict.kept or decision is None:
            return ev.LandingRefused(experiment=step.experiment.id, why=f"{step.verdict.value}: {step.reason}")
        self._hub.fast_forward(MAIN, step.landing.candidate)
        return ev.Landed(
            experiment=step.experiment.id, commit=step.landing.candidate, before=step.main, gain=decision.overall
        )

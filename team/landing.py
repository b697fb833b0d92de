"""The coordinator's hands in git: cherry-pick, graft, fast-forward. What is done when is the law of ``landings``.

The coordinator's loop asks ``pending(state)`` what the head of the queue needs, lets ``LandingDesk.carry_out`` do it in
a thread, and records the events that come back. Each step may be repeated after a crash at any point.

A landed commit's trailers ``Speedup`` and ``Interval`` are what its experiment measured against the base that it
changed: the commit that is verified is the one that lands, so it is written before its verification. What a landing was
verified to give stands in the ledger (``Landed.gain``).
"""

from math import exp

from protocol import events as ev
from protocol.landings import Prepare, Settle, Step
from protocol.state import ExperimentState
from team.workspace.hub import Hub
from team.workspace.worktree import Conflict


class LandingDesk:
    """Carries out what the queue needs."""

    def __init__(self, hub: Hub, editable: tuple[str, ...]) -> None:
        self._hub = hub
        self._editable = editable

    def carry_out(self, step: Step) -> tuple[ev.AnyBody, ...]:
        """Do one step; the events that it makes true, to be recorded together."""
        return (*step.bad, self._prepare(step) if isinstance(step, Prepare) else self._settle(step))

    def _prepare(self, step: Prepare) -> ev.LandingPrepared | ev.LandingConflicted | ev.LandingRefused:
        experiment = step.experiment
        source = self._source(step)
        if isinstance(source, Conflict):
            return ev.LandingConflicted(experiment=experiment.id, main=step.main, files=source.files)
        changed = self._hub.changed(step.main, source)
        if not changed:
            return ev.LandingRefused(experiment=experiment.id, why="main holds this change already")
        if foreign := set(changed) - {self._hub.objects.inside(path) for path in self._editable}:
            why = f"it changes {', '.join(sorted(foreign))}, which the task does not list as editable"
            return ev.LandingRefused(experiment=experiment.id, why=why)
        candidate = self._with_trailers(experiment, source, step.main)
        self._hub.anchor(f"landings/{experiment.id}/{candidate[:16]}", candidate)
        return ev.LandingPrepared(
            experiment=experiment.id, candidate=candidate, main=step.main, how=step.how, against=step.against
        )

    def _source(self, step: Prepare) -> str | Conflict:
        """A commit with the tree that is to be measured."""
        if step.how == "cherry-pick":
            tree = self._hub.landing()
            tree.reset(step.main)
            return tree.cherry_pick(step.source)
        if step.how == "whole tree":
            return self._hub.merge_tree_commit(step.source, step.main, step.how, {}, self._editable)
        return step.source

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
        proof = step.proof
        if proof is None:
            return ev.LandingRefused(experiment=step.experiment.id, why=step.why)
        self._hub.fast_forward(proof)
        return ev.Landed(
            experiment=proof.experiment, commit=proof.commit, before=proof.before, gain=proof.gain, how=proof.how
        )

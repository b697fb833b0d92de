"""What an agent works with: its mind, its worktree, its judge, and its line to the lead."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from protocol.messages import Briefing, Chronicle, Measurement, Noise, Outcome, Plan
from protocol.policy import Policy
from protocol.race import settings_worth_building
from roles.minds.mind import Mind
from team.devices.device import Device
from team.judge.client import Judge
from team.judge.compiler import compile_jobs
from team.judge.failures import BaselineBroken
from team.judge.request import Compare
from team.supply import Supply
from team.workspace.hub import Hub
from team.workspace.worktree import Worktree


class Lead(Protocol):
    """What an agent may ask of the coordinator while it performs a duty."""

    def briefing(self, base: str) -> Briefing:
        """What the mind is told."""
        ...

    def chronicle(self) -> Chronicle:
        """The record of the whole team."""
        ...

    def admit(self, experiment: str, plan: Plan, commits: list[str], dollars: float) -> str:
        """Empty when the plan may run."""
        ...

    def refuse(self, experiment: str, plan: Plan, why: str, dollars: float) -> None:
        """A plan's edit may not be committed: its mind is told why at its next briefing."""
        ...

    def noise(self) -> Noise | None:
        """The calibrated noise of this agent's device."""
        ...


@dataclass
class Desk:
    """What an agent works with. ``build_s``: the seconds that the build of its latest candidate took."""

    name: str
    device: Device
    mind: Mind
    hub: Hub
    supply: Supply
    worktree: Worktree
    judge: Judge
    trusted: Path
    snapshots: Path
    editable: tuple[str, ...]
    weights: dict[str, float]
    policy: Policy
    lead: Lead
    build_s: float | None = None

    @property
    def settings(self) -> int:
        """Settings of constants that are worth building for one experiment here."""
        jobs = compile_jobs(len(self.device.cores), self.policy.compile_jobs)
        return settings_worth_building(self.policy, jobs, self.build_s)

    def saw(self, measured: Measurement) -> None:
        """Learn from a measurement how long a build takes."""
        if measured.candidate_build is not None:
            self.build_s = measured.candidate_build.seconds

    def snapshot(self, commit: str) -> str:
        """The task folder at a commit, as plain files."""
        self.supply.fetch(commit)
        return str(self.hub.export(commit, self.snapshots))

    def compare(self, base: str, candidate: str, held_out: bool = False) -> Measurement:
        """Judge one commit against another on this device. A base that fails here, of all times, measures nothing.

        ``held_out``: on the shapes that no mind is told of as well.
        """
        request = Compare(
            task=str(self.trusted),
            base=self.snapshot(base),
            candidate=self.snapshot(candidate),
            noise=self.lead.noise(),
            held_out=held_out,
        )
        try:
            return self.judge.compare(request)
        except BaselineBroken as broken:  # its turn comes again on a base that the law has seen to be right
            return Measurement(outcome=Outcome.CRASHED, detail=f"the base did not run: {broken}")

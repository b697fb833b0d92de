"""A run without a machine: the real folder, repository, law and mind, and a judge that sees what a test wants.

Its samples have the noise that they are given, so that what the law makes of them is the law's own word.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import exp
from pathlib import Path
from typing import Any

import pytest

from protocol.messages import Measurement, Noise, Outcome, ProfileReport, Restart, WorkloadCheck
from protocol.pairs import Pair
from protocol.policy import Policy
from team.devices.cpu import cpu_devices
from team.judge.request import Check, Compare, Identity, Screen
from team.optimize.baseline import policy_of, prepare
from team.optimize.options import Options
from team.optimize.session import Session, opened
from team.optimize.state import Champion
from team.tasks.skill import read_inputs

BASE_NS = 1e6
Speed = Callable[[str], float]
"""Text of a kernel -> its log gain over the baseline."""


@dataclass
class StandIn:
    """Says ``race`` of a text in a race and ``fresh`` of it in a measurement, and notes what it was asked."""

    fresh: Speed
    race: Speed
    noise: float = 0.002
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    dice: random.Random = field(default_factory=lambda: random.Random(5))

    def __call__(self, *_: Any) -> "StandIn":
        return self

    def __enter__(self) -> "StandIn":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def start(self) -> None:
        return

    close = start

    def check(self, request: Check) -> Measurement:
        return Measurement(outcome=Outcome.MEASURED)

    def screen(self, request: Screen) -> list[Measurement]:
        self.asked += [("race", text_in(request.base), text_in(one)) for one in request.candidates]
        return [self._seen(self.race, request.base, one, 1) for one in request.candidates]

    def compare(self, request: Compare) -> Measurement:
        self.asked.append(("compare", text_in(request.base), text_in(request.candidate)))
        return self._seen(self.fresh, request.base, request.candidate, 32)

    def identical(self, request: Identity) -> Measurement:
        self.asked.append(("identical", text_in(request.base), text_in(request.candidate)))
        return Measurement(outcome=Outcome.MEASURED)

    def _seen(self, speed: Speed, base: str, candidate: str, restarts: int) -> Measurement:
        gain = speed(text_in(candidate)) - speed(text_in(base))
        names = ("small", "medium", "large")
        made = [Restart.of({name: self._pairs(gain) for name in names}) for _ in range(restarts)]
        checks = tuple(WorkloadCheck(workload=name, checks=8, worst=0.1) for name in names)
        return Measurement(outcome=Outcome.MEASURED, restarts=tuple(made), checks=checks)

    def _pairs(self, gain: float) -> tuple[Pair, ...]:
        ratios = [exp(gain + self.dice.gauss(0.0, self.noise)) for _ in range(4)]
        return tuple(Pair(candidate_first=True, base_ns=BASE_NS, candidate_ns=BASE_NS / one) for one in ratios)


def text_in(tree: str) -> str:
    return (Path(tree) / "scale.cpp").read_text()


@contextmanager
def stood_in(
    options: Options, judge: StandIn, patch: pytest.MonkeyPatch, profile: Mapping[str, Any] | None = None
) -> Iterator[Session]:
    """A session with a verified baseline, before its first iteration. ``profile``: what all kernels' profiles say."""

    def profiled(_: Path, __: Path, commit: str, *___: Any) -> ProfileReport:
        return ProfileReport(commit=commit, tool="stand-in", **(profile or {}))

    patch.setattr("team.optimize.session.Judge", judge)
    patch.setattr("team.optimize.evidence.profile", profiled)
    patch.setattr("team.optimize.baseline.read_apart", read_inputs)
    policy: Policy = policy_of(options)
    folder, store = prepare(options, {"hardware_attempts": 1, "gpus": []}, lambda _: None)
    with opened(folder, store, policy, cpu_devices(1)[0], lambda _: None) as session:
        state = session.state
        state.baseline_commit = session.hub.baseline
        state.noise = Noise(restart_sd=0.0005, restart_df=23, pair_sd=judge.noise, floor=0.002)
        state.best_ns = dict.fromkeys(session.weights, BASE_NS)
        state.global_champion = Champion(
            iter=0, kernel="baseline/scale.cpp", average_ms=1.0, commit=state.baseline_commit
        )
        state.baseline_verified = state.generation_allowed = True
        yield session

"""Branch-and-select: the variants of one change raced by the judge, and the runners-up with their texts.

One race for campaigns and for ``kernelteam optimize``. It only picks whom to measure.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from protocol.messages import Measurement, Outcome, Parameter, Runnerup, Variant
from protocol.policy import Policy
from protocol.sequential import estimate
from team.judge.client import Judge
from team.judge.request import Screen
from team.workspace.hub import Hub


@dataclass(frozen=True)
class Raced:
    """What a race saw, in the order of its variants: raw measurements, and log gains (None: did not run)."""

    measured: Sequence[Measurement]
    gains: Sequence[float | None]

    @property
    def champion(self) -> int | None:
        """The variant to measure: of those that stayed to the end, the largest gain, the lower number where equal; None
        when not one ran. Who left early was behind on few samples, which say little of how far."""
        stayed = [one.pairs for one in self.measured]
        running = [(stayed[number], gain, -number) for number, gain in enumerate(self.gains) if gain is not None]
        return -max(running)[2] if running else None


def race(judge: Judge, request: Screen, weights: Mapping[str, float], policy: Policy) -> Raced:
    """Race the candidates of ``request``; its samples are never used again."""
    measured = judge.screen(request)
    return Raced(measured, [_gain(one, weights, policy) for one in measured])


def _gain(measured: Measurement, weights: Mapping[str, float], policy: Policy) -> float | None:
    """Log gain that the race saw, None when the variant did not run to its end."""
    if measured.outcome is not Outcome.MEASURED:
        return None
    return estimate(measured.restarts, weights, None, policy, policy.total_error)[0].gain


def with_texts(hub: Hub, editable: Collection[str], runners_up: Sequence[Runnerup]) -> tuple[Runnerup, ...]:
    """The same with the texts of those whose commits are in this hub; other nodes' variants are left out."""
    found: list[Runnerup] = []
    for one in runners_up:
        commit = _variants(hub, one.experiment).get(in_words(one.parameters))
        if commit:
            found.append(one.model_copy(update={"files": hub.read(editable, commit)}))
    return tuple(found)


def commit_variant(
    hub: Hub,
    editable: Collection[str],
    base: str,
    variant: Variant,
    experiment: str,
    technique: str,
    agent: str,
    change: str,
) -> str:
    """Commit a variant before it runs, and keep it for good whatever becomes of it."""
    trailers = {"Experiment": experiment, "Technique": technique, "Agent": agent}
    if variant.parameters:
        trailers["Parameters"] = in_words(variant.parameters)
    commit = hub.commit(base, variant.files, change, trailers, editable)
    hub.anchor(f"experiments/{experiment}/{commit[:16]}", commit)
    return commit


def in_words(parameters: Mapping[str, Parameter]) -> str:
    """A variant's settings as its commit's trailer ``Parameters`` has them."""
    return " ".join(", ".join(f"{key}={value}" for key, value in parameters.items()).split())


def _variants(hub: Hub, experiment: str) -> dict[str, str]:
    """Settings -> commit of every variant that was committed for an experiment."""
    listed = hub.git.text(
        "for-each-ref", "--format=%(objectname)%09%(contents:trailers:key=Parameters,valueonly,separator=)",
        f"refs/kernelteam/experiments/{experiment}/",
    )  # fmt: skip
    rows = (line.partition("\t") for line in listed.splitlines())
    return {settings.strip(): commit for commit, _, settings in rows}

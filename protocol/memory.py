"""Strategy memory: what one campaign teaches the next about the same operator on like hardware and shapes. Pure.

Each measurement of a technique is a piece of evidence. A keep speaks for it, and its landing does so once more, because
that was measured again with fresh inputs and processes. A revert, a failure and a landing that did not verify speak
against it; what could not be decided, never ran, or cheated says nothing, and neither does one more try of a technique
on top of its own keep. A landing that main was measured without speaks once more, when it is proven either way. RULES:
prefer after two positives and no negative, caution after any negative. Advice only: no plan is refused because of it.
"""

from collections.abc import Iterable, Mapping
from math import log2
from typing import Literal

from pydantic import Field

from protocol.ablations import ablations_of_main, labels, method_lists
from protocol.messages import Advice, Message, Verdict
from protocol.policy import Policy
from protocol.record import CampaignState, ExperimentState

_AGAINST = (Verdict.REVERT, Verdict.INCORRECT, Verdict.CRASHED, Verdict.BUILD_FAILED, Verdict.TIMEOUT)


class Place(Message):
    """What evidence is about: it is only ever read for the same one."""

    operator: str
    language: str
    arch: str
    dims: str = Field(description="each dim's power of two, over all workloads: 'cols=10 rows=7'")


class Evidence(Message):
    """One measurement of one technique. Known by campaign, experiment and stage."""

    campaign: str
    experiment: str
    stage: Literal["judged", "landed", "ablated"]
    technique: str
    category: str
    change: str
    positive: bool
    gain: float | None = Field(default=None, description="log gain over its base")
    low: float | None = None
    high: float | None = None
    base: str = ""
    commit: str = ""
    repository: str = ""
    device: str = ""
    time: float = Field(default=0.0, description="seconds since the epoch")


def dims_of(workloads: Mapping[str, Mapping[str, int]]) -> str:
    """Every dim as the nearest power of two of its geometric mean over the workloads."""
    sizes: dict[str, list[float]] = {}
    for dims in workloads.values():
        for name, size in dims.items():
            sizes.setdefault(name, []).append(log2(max(1, size)))
    return " ".join(f"{name}={round(sum(logs) / len(logs))}" for name, logs in sorted(sizes.items()))


def place_of(operator: str, language: str, arch: str, workloads: Mapping[str, Mapping[str, int]]) -> Place:
    """The place of a campaign."""
    return Place(operator=operator, language=language, arch=arch, dims=dims_of(workloads))


def evidence_of(state: CampaignState) -> list[Evidence]:
    """Everything that a campaign has taught so far, in the order of its verdicts. The same state gives the same."""
    found: list[Evidence] = []
    kept: set[str] = set()
    for experiment in (state.experiments[ident] for ident in state.verdicts):
        if experiment.plan is None:
            continue
        name = experiment.plan.technique
        if experiment.verdict is Verdict.KEEP:
            kept.add(name)
            found.append(_evidence(state, experiment, "judged", True))
            if (verified := _verified(experiment)) is not None:
                found.append(_evidence(state, experiment, "landed", verified))
        elif experiment.verdict in _AGAINST and name not in kept:
            found.append(_evidence(state, experiment, "judged", False))
    return [*found, *_ablated(state)]


def _ablated(state: CampaignState) -> list[Evidence]:
    """What taking the landings of main out has proven; what it left unverified says nothing."""
    lists, names = method_lists(state), labels(state)
    found: list[Evidence] = []
    for ident, one in ablations_of_main(state).items():
        if names[ident] in (*lists.effective, *lists.ineffective):
            told = _evidence(state, state.experiments[ident], "ablated", names[ident] in lists.effective)
            gain = one.ablation.gain
            bounds = {"gain": gain.gain, "low": gain.low, "high": gain.high} if gain else {}
            found.append(told.model_copy(update={"commit": one.commit, **bounds}))
    return found


def advise(evidence: Iterable[Evidence], policy: Policy) -> tuple[Advice, ...]:
    """One advice for each technique about which the evidence suffices, the most promising first."""
    heard: dict[str, list[Evidence]] = {}
    for one in evidence:
        heard.setdefault(one.technique, []).append(one)
    given = [advice for each in heard.values() if (advice := _advice(each, policy)) is not None]
    return tuple(sorted(given, key=lambda advice: (advice.word == "caution", -advice.gain, advice.technique)))


def _advice(evidence: list[Evidence], policy: Policy) -> Advice | None:
    positives = sum(one.positive for one in evidence)
    negatives = len(evidence) - positives
    if not negatives and positives < policy.prefer_after:
        return None
    gains = [one.gain for one in evidence if one.positive and one.gain is not None]
    return Advice(
        technique=evidence[0].technique,
        category=evidence[0].category,
        word="caution" if negatives else "prefer",
        positives=positives,
        negatives=negatives,
        gain=max(gains, default=0.0),
        campaigns=tuple(dict.fromkeys(one.campaign for one in evidence)),
    )


def _verified(experiment: ExperimentState) -> bool | None:
    """What the second measurement of a keep said; None when there was none, or it decided nothing."""
    if experiment.landing == "landed":
        return True
    why = experiment.landing.removeprefix("refused: ")
    return False if any(why.startswith(f"{verdict.value}:") for verdict in _AGAINST) else None


def _evidence(
    state: CampaignState, experiment: ExperimentState, stage: Literal["judged", "landed", "ablated"], positive: bool
) -> Evidence:
    assert experiment.plan is not None
    overall = experiment.overall if stage == "judged" else None
    commit = experiment.commit
    for landed in state.landed if stage == "landed" else ():
        if landed.experiment == experiment.id:
            overall, commit = landed.gain, landed.commit
    return Evidence(
        campaign=state.started.campaign,
        experiment=experiment.id,
        stage=stage,
        technique=experiment.plan.technique,
        category=experiment.plan.category,
        change=experiment.plan.change,
        positive=positive,
        gain=overall.gain if overall else None,
        low=overall.low if overall else None,
        high=overall.high if overall else None,
        base=experiment.base,
        commit=commit,
        repository=state.started.repository,
        device=state.agents[experiment.agent].member.device,
        time=experiment.ended,
    )

"""The law of the landing queue: what its head needs next, and what proves that a commit may become main.

A kept commit meets main as a merge, and the merge must beat main by a fresh measurement. When the author's own tree may
be the better of the two parents, one more measurement decides between it and the merge: the merge has to beat main, the
author's tree has to beat the merge. What does not pay together is recorded as a pair.
"""

from dataclasses import dataclass

from protocol import events as ev
from protocol.messages import Estimate, Verdict
from protocol.record import CampaignState, ExperimentState, How, LandingState, Proof
from protocol.sequential import combine
from protocol.simplicity import is_simpler
from protocol.verdict import judge


@dataclass(frozen=True)
class Prepare:
    """Make the tree that is measured next: ``source`` on top of ``main``, in this way. ``against``: see the event."""

    experiment: ExperimentState
    main: str
    how: How
    source: str
    against: str = ""
    bad: tuple[ev.InteractsBadly, ...] = ()


@dataclass(frozen=True)
class Settle:
    """The end of a landing: main moves with a proof, or stands still and ``why`` says it."""

    experiment: ExperimentState
    proof: Proof | None
    why: str
    bad: tuple[ev.InteractsBadly, ...] = ()


Step = Prepare | Settle


def pending(state: CampaignState) -> Step | None:
    """What the head of the queue needs now; None while an agent's duty for it is awaited."""
    landing = next(iter(state.landings.values()), None)
    if landing is None:
        return None
    experiment = state.experiments[landing.experiment]
    if landing.main != state.main:
        return Prepare(experiment, state.main, "cherry-pick", experiment.commit)
    if not landing.candidate:
        return _after_conflict(experiment, landing)
    if landing.measured is None:
        return None
    found = sanitizer_finding(landing.measured)
    verdict, reason = (Verdict.INCORRECT, found) if found else _judged(state, landing.measured)
    if landing.merged is not None:
        return _better_parent(state, landing, verdict, reason)
    if found:
        return Settle(experiment, None, f"{Verdict.INCORRECT.value}: {found}")
    return _kept(state, landing, reason) if verdict.kept else _refused(state, landing, verdict, reason)


def _after_conflict(experiment: ExperimentState, landing: LandingState) -> Prepare | None:
    resolution = landing.resolution
    if resolution is None:
        return None
    if resolution.commit:
        return Prepare(experiment, landing.main, "resolved", resolution.commit)
    return Prepare(experiment, landing.main, "whole tree", experiment.commit)


def _kept(state: CampaignState, landing: LandingState, reason: str) -> Step:
    """The merge beats main. Unless that is enough for its other parent too, it is measured against that one as well."""
    experiment, measured = state.experiments[landing.experiment], landing.measured
    assert measured is not None
    gain = _gain(measured)
    if landing.how != "whole tree" and _composed(state, experiment) and _ahead(state, experiment) > gain.low:
        return Prepare(experiment, landing.main, "whole tree", experiment.commit, against=landing.candidate)
    proof = Proof(experiment.id, landing.candidate, landing.main, landing.how, gain, (measured.duty,))
    return Settle(experiment, proof, reason)


def _refused(state: CampaignState, landing: LandingState, verdict: Verdict, reason: str) -> Step:
    """Main beats the merge. The author's own tree is tried when it may be the better parent."""
    experiment, why = state.experiments[landing.experiment], f"{verdict.value}: {reason}"
    if landing.how == "whole tree":
        return Settle(experiment, None, why)
    bad = () if verdict is Verdict.UNRESOLVED else _pair(state, landing.candidate, experiment, why)
    resolved = landing.how == "resolved"
    if resolved or (_composed(state, experiment) and _ahead(state, experiment) > 0.0):
        return Prepare(experiment, landing.main, "whole tree", experiment.commit, bad=bad)
    return Settle(experiment, None, why, bad)


def _better_parent(state: CampaignState, landing: LandingState, verdict: Verdict, reason: str) -> Settle:
    """The author's tree was measured against the merge: the faster of the two lands."""
    experiment, merged, measured = state.experiments[landing.experiment], landing.merged, landing.measured
    assert merged is not None
    assert measured is not None
    first = _gain(merged.measured)
    if verdict is not Verdict.KEEP:
        proof = Proof(experiment.id, merged.candidate, landing.main, merged.how, first, (merged.measured.duty,))
        return Settle(experiment, proof, "the merge is no slower than either of its parents")
    why = f"the author's own tree is faster than the merge: {reason}"
    proof = Proof(
        experiment.id,
        landing.candidate,
        landing.main,
        landing.how,
        combine([first, _gain(measured)]),
        (merged.measured.duty, measured.duty),
    )
    return Settle(experiment, proof, why, _pair(state, merged.candidate, experiment, why))


def _judged(state: CampaignState, measured: ev.LandingMeasured) -> tuple[Verdict, str]:
    simpler = is_simpler(measured.measurement.simplicity, state.policy)
    return judge(measured.measurement, measured.decision, simpler, state.policy)


def sanitizer_finding(measured: ev.LandingMeasured) -> str:
    """What compute-sanitizer found in the candidate, in its own words; empty when it found nothing."""
    found = [f"{one.tool}: {one.findings[0]}" for one in measured.sanitized if one.status == "found"]
    return f"compute-sanitizer {'; '.join(found)}"[:500] if found else ""


def _gain(measured: ev.LandingMeasured) -> Estimate:
    assert measured.decision is not None
    return measured.decision.overall


def _composed(state: CampaignState, experiment: ExperimentState) -> bool:
    """Whether the merge is another tree than the author's own."""
    ours, theirs = state.lineage.apart(state.main, experiment.commit)
    return ours | {experiment.id} != theirs


def _ahead(state: CampaignState, experiment: ExperimentState) -> float:
    """Log gain by which the author's own tree is ahead of main as their steps add up."""
    return state.levels.get(experiment.commit, 0.0) - state.levels.get(state.main, 0.0)


def _pair(state: CampaignState, candidate: str, experiment: ExperimentState, why: str) -> tuple[ev.InteractsBadly, ...]:
    others = tuple(other.id for other in state.partners(experiment))
    if not others:
        return ()
    return (ev.InteractsBadly(experiment=experiment.id, others=others, candidate=candidate, why=why[:500]),)

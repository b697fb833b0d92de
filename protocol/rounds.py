"""Rounds: the planning horizon. When one ends, and what its recap says."""

from math import exp

from protocol.messages import Verdict
from protocol.state import CampaignState, ExperimentState


def round_is_over(state: CampaignState) -> bool:
    """True when the team has judged a round's worth of experiments since the last round ended."""
    return len(state.verdicts) - state.round_from >= state.policy.round_experiments


def recap(state: CampaignState) -> tuple[str, ...]:
    """One line per agent on the experiments of the round that is ending."""
    fresh: dict[str, list[ExperimentState]] = {name: [] for name in state.agents}
    for ident in state.verdicts[state.round_from :]:
        fresh[state.experiments[ident].agent].append(state.experiments[ident])
    return tuple(_line(name, experiments) for name, experiments in fresh.items())


def _line(name: str, experiments: list[ExperimentState]) -> str:
    kept = [e for e in experiments if e.verdict is not None and e.verdict.kept]
    lost = sum(e.verdict is Verdict.LOST for e in experiments)
    gain = exp(sum(e.overall.gain for e in kept if e.overall))
    tail = f", {lost} lost" if lost else ""
    return f"{name}: {len(experiments)} experiments, {len(kept)} kept (together {gain:.3f}x){tail}"

"""How fast main, and every other commit, is against the baseline: levels, all natural-log gains over the baseline."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from protocol import events as ev
from protocol.messages import Estimate
from protocol.state import CampaignState, ExperimentState


@dataclass(frozen=True)
class MainSpeedup:
    """Main against the baseline, and where that is known from."""

    estimate: Estimate
    how: Literal["measured", "measured and landed", "landed", "baseline"]
    device: str


def together(parts: Sequence[Estimate]) -> Estimate:
    """``protocol.sequential.combine`` for readers that must not pay for importing scipy; a test holds them equal."""
    gain = sum(part.gain for part in parts)
    below = math.hypot(*(part.gain - part.low for part in parts))
    above = math.hypot(*(part.high - part.gain for part in parts))
    pairs, restarts = sum(part.pairs for part in parts), sum(part.restarts for part in parts)
    return Estimate(gain=gain, low=gain - below, high=gain + above, pairs=pairs, restarts=restarts)


def main_speedup(state: CampaignState) -> MainSpeedup:
    """The last direct measurement of main, times what landed after it; without one, the product of what landed."""
    measured = _last_measured(state)
    if measured is None or measured.estimate is None:
        how = "landed" if state.landed else "baseline"
        return MainSpeedup(together([landed.gain for landed in state.landed]), how, "")
    since = _landed_since(state, measured.commit)
    how = "measured and landed" if since else "measured"
    return MainSpeedup(together([measured.estimate, *(landed.gain for landed in since)]), how, measured.device)


def _last_measured(state: CampaignState) -> ev.MainMeasured | None:
    baseline = state.start.commit if state.start else ""
    direct = (m for m in reversed(state.main_measured) if m.estimate is not None and m.base == baseline)
    return next(direct, None)


def _landed_since(state: CampaignState, commit: str) -> Sequence[ev.Landed]:
    """What landed after main was at ``commit``; nothing when main was never there."""
    if state.start is not None and commit == state.start.commit:
        return state.landed
    at = [index for index, landed in enumerate(state.landed) if landed.commit == commit]
    return state.landed[at[-1] + 1 :] if at else ()


def main_steps(state: CampaignState) -> list[tuple[int, float]]:
    """Where main stood: (experiment number, level from there on), from the baseline at 0; numbers never fall.

    A landing is drawn at the number of the experiment that landed, or at the step before it when it was overtaken.
    """
    steps = [(0, 0.0)]
    for landed in state.landed:
        at, level = steps[-1]
        steps.append((max(at, state.experiments[landed.experiment].number), level + landed.gain.gain))
    return steps


def commit_levels(state: CampaignState) -> dict[str, float]:
    """Level of the baseline, of every commit that main was at, and of every kept commit."""
    levels = {state.start.commit: 0.0} if state.start else {}
    main = 0.0
    for landed in state.landed:
        main += landed.gain.gain
        levels[landed.commit] = main
    for experiment in state.experiments.values():
        if experiment.overall is not None and experiment.verdict is not None and experiment.verdict.kept:
            levels.setdefault(experiment.commit, levels.get(experiment.base, 0.0) + experiment.overall.gain)
    return levels


def experiment_level(experiment: ExperimentState, levels: dict[str, float]) -> float | None:
    """Level that an experiment's estimate puts it at, on top of what it started from; None when it was not measured."""
    return None if experiment.overall is None else levels.get(experiment.base, 0.0) + experiment.overall.gain

"""The law of gains: from raw pairs to an estimate, and from an estimate to keep, revert, continue or unresolved.

Fixed by the law; pure (no clock, no randomness). A gain is ``ln(base / candidate)``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import e, exp, hypot, log, log1p, sqrt
from typing import Literal

import numpy as np

from protocol.messages import Decision, Estimate, Noise, Restart
from protocol.policy import Policy
from protocol.two_level import (
    Array,
    Location,
    cost,
    moderated,
    normal_variance,
    order_effect,
    pair_location,
    student_quantile,
    trimmed_count,
    trimmed_location,
    without_order,
)


@dataclass(frozen=True)
class _Samples:
    """One workload's (or the weighted) values: one location per restart, and the pairs behind each."""

    values: Array
    pairs_per_restart: float


def estimate(
    restarts: Sequence[Restart], weights: Mapping[str, float], noise: Noise | None, policy: Policy, error: float
) -> tuple[Estimate, dict[str, Estimate]]:
    """Weighted log gain and that of each workload, with bounds that are each wrong with chance ``error``.

    Raises ValueError when there is no restart, or a restart lacks a weighted workload.
    """
    overall, workloads = _locate(restarts, weights, noise, policy)
    pairs = _pairs(restarts, weights)
    return (
        _as_estimate(overall, error, pairs, len(restarts)),
        {name: _as_estimate(where, error, pairs, len(restarts)) for name, where in workloads.items()},
    )


def look_errors(policy: Policy) -> tuple[float, ...]:
    """Error that each look may spend: increments of the Pocock-type spending function of Lan & DeMets 1983.

    ``spent(t) = total * ln(1 + (e - 1) t)`` at information ``t = pairs / cap``. Each look tests at its own increment,
    so the total holds by the union bound, whatever the correlation between looks.
    """
    cap = policy.looks[-1]
    spent = [0.0, *(policy.total_error * log(1.0 + (e - 1.0) * look / cap) for look in policy.looks)]
    return tuple(after - before for before, after in pairwise(spent))


def target_gain(noise: Noise | None, policy: Policy) -> float:
    """Smallest log gain that may be kept: the threshold, raised to the noise floor where that is higher."""
    return max(log1p(policy.threshold), noise.floor if noise else 0.0)


def decide(restarts: Sequence[Restart], weights: Mapping[str, float], noise: Noise | None, policy: Policy) -> Decision:
    """The group-sequential test at the last look that the samples reach.

    Only the restarts that complete a look are used, so asking more often than the looks cannot raise the error.
    """
    look, seen = _last_look(restarts, weights, policy)
    error = look_errors(policy)[max(look, 0)]
    location, by_workload = _locate(seen, weights, noise, policy)
    pairs = _pairs(seen, weights)
    overall = _as_estimate(location, error, pairs, len(seen))
    workloads = {name: _as_estimate(where, error, pairs, len(seen)) for name, where in by_workload.items()}
    if look < 0:
        state, reason = "continue", f"{pairs} pairs; the first look is at {policy.looks[0]}"
    else:
        hope = float(location.bound(policy.futility_error, +1))
        weakest = float(_weighted(seen, weights).values.min())
        state, reason = _verdict(overall, workloads, hope, weakest, target_gain(noise, policy), policy, look)
    return Decision(state=state, reason=reason, overall=overall, workloads=workloads)


def calibrate(restarts: Sequence[Restart], weights: Mapping[str, float], policy: Policy) -> Noise:
    """Noise of a device and task from an A/A run of at least four restarts."""
    if len(restarts) < 4:
        raise ValueError(f"calibration needs at least 4 restarts, got {len(restarts)}")
    weighted = _weighted(restarts, weights)
    centre = trimmed_location(weighted.values)
    pair_variance = _pair_variance(restarts, weights)
    total = float(normal_variance(weighted.values))
    restart_variance = max(total - _pair_share(pair_variance, weighted.pairs_per_restart), 0.0)
    return Noise(
        restart_sd=sqrt(restart_variance),
        restart_df=centre.df,
        pair_sd=sqrt(pair_variance),
        floor=_floor(centre, restart_variance, pair_variance, policy),
    )


def combine(landed: Sequence[Estimate]) -> Estimate:
    """Product of landed speedups: log gains add, half-widths of independent measurements add in quadrature."""
    gain = sum(one.gain for one in landed)
    return Estimate(
        gain=gain,
        low=gain - hypot(*(one.gain - one.low for one in landed)),
        high=gain + hypot(*(one.high - one.gain for one in landed)),
        pairs=sum(one.pairs for one in landed),
        restarts=sum(one.restarts for one in landed),
    )


def drift(before: Estimate, now: Estimate) -> Estimate:
    """How far an independent repetition moved: ``now - before``, half-widths in quadrature."""
    gain = now.gain - before.gain
    return Estimate(
        gain=gain,
        low=gain - hypot(now.gain - now.low, before.high - before.gain),
        high=gain + hypot(now.high - now.gain, before.gain - before.low),
        pairs=now.pairs,
        restarts=now.restarts,
    )


def agrees(product_gain: float | Estimate, direct: Estimate) -> bool:
    """True when the product of landed gains lies within the direct measurement's interval.

    Given ``combine``'s estimate instead of a bare log gain, its own interval counts too.
    """
    if isinstance(product_gain, Estimate):
        moved = drift(product_gain, direct)
        return moved.low <= 0.0 <= moved.high
    return direct.low <= product_gain <= direct.high


# ---------------------------------------------------------------- from messages to arrays


def _normalised(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    if total <= 0.0 or min(weights.values()) < 0.0:
        raise ValueError("workload weights must be non-negative and not all zero")
    return {name: weight / total for name, weight in weights.items()}


def _pairs(restarts: Sequence[Restart], weights: Mapping[str, float]) -> int:
    return min(sum(len(restart.pairs.get(name, ())) for restart in restarts) for name in weights)


def _corrected(restarts: Sequence[Restart], workload: str) -> list[Array]:
    """Per restart, the workload's log ratios without the order effect, which all restarts estimate together."""
    if not restarts:
        raise ValueError("no restarts to estimate from")
    if not all(restart.pairs.get(workload) for restart in restarts):
        raise ValueError(f"a restart holds no pairs of workload {workload!r}")
    counts = np.cumsum([len(restart.pairs[workload]) for restart in restarts])[:-1]
    pairs = [pair for restart in restarts for pair in restart.pairs[workload]]
    ratios = np.array([log(pair.base_ns / pair.candidate_ns) for pair in pairs])
    first = np.array([pair.candidate_first for pair in pairs], dtype=np.bool_)
    return list(np.split(without_order(ratios, first, order_effect(ratios, first)), counts))


def _samples(restarts: Sequence[Restart], workload: str) -> _Samples:
    groups = _corrected(restarts, workload)
    values = np.array([float(pair_location(group)) for group in groups])
    return _Samples(values, float(np.mean([len(group) for group in groups])))


def _weighted(restarts: Sequence[Restart], weights: Mapping[str, float]) -> _Samples:
    parts = {name: _samples(restarts, name) for name in weights}
    shares = _normalised(weights)
    values = sum((shares[name] * part.values for name, part in parts.items()), np.zeros(len(restarts)))
    return _Samples(values, min(part.pairs_per_restart for part in parts.values()))


# ---------------------------------------------------------------- location and interval


def _locate(
    restarts: Sequence[Restart], weights: Mapping[str, float], noise: Noise | None, policy: Policy
) -> tuple[Location, dict[str, Location]]:
    """Where the weighted gain lies, and each workload's. One workload alone is noisier than the weighted mean of all:
    its calibrated noise is the weighted one's over ``sqrt(sum of squared weights)``, as for independent equals."""
    alone = 1.0 / sqrt(sum(share**2 for share in _normalised(weights).values()))
    return (
        _location(_weighted(restarts, weights), noise, policy, 1.0),
        {name: _location(_samples(restarts, name), noise, policy, alone) for name in weights},
    )


def _location(samples: _Samples, noise: Noise | None, policy: Policy, scale: float) -> Location:
    measured = trimmed_location(samples.values)
    if noise is None:
        unknown = Location(measured.centre, np.asarray(policy.disturbed_restart**2), 1)
        return measured if measured.df else unknown
    n = len(samples.values)
    one = noise.restart_sd**2 + _pair_share(noise.pair_sd**2, samples.pairs_per_restart)
    return moderated(measured, scale**2 * one * cost(n) / n, noise.restart_df)


def _pair_share(pair_variance: float, pairs: float) -> float:
    """Variance that pairs lend to one restart's location."""
    return pair_variance * cost(int(pairs)) / pairs


def _as_estimate(location: Location, error: float, pairs: int, restarts: int) -> Estimate:
    return Estimate(
        gain=float(location.centre),
        low=float(location.bound(error, -1)),
        high=float(location.bound(error, +1)),
        pairs=pairs,
        restarts=restarts,
    )


# ---------------------------------------------------------------- the test


def _last_look(
    restarts: Sequence[Restart], weights: Mapping[str, float], policy: Policy
) -> tuple[int, Sequence[Restart]]:
    """Index of the last look reached and the restarts that complete it; -1 and all restarts before the first look."""
    look, seen = -1, restarts
    for count in range(1, len(restarts) + 1):
        pairs = _pairs(restarts[:count], weights)
        if look + 1 < len(policy.looks) and pairs >= policy.looks[look + 1]:
            look = max(index for index, needed in enumerate(policy.looks) if pairs >= needed)
            seen = restarts[:count]
    return look, seen


def _verdict(
    overall: Estimate,
    workloads: Mapping[str, Estimate],
    hope: float,
    weakest: float,
    target: float,
    policy: Policy,
    look: int,
) -> tuple[Literal["keep", "revert", "continue", "unresolved"], str]:
    """State and sentence at one look. ``hope`` is the futility bound, ``weakest`` the smallest restart value."""
    told = f"{_percent(overall.gain)} [{_percent(overall.low)}, {_percent(overall.high)}] after {overall.pairs} pairs"
    lost = [name for name, one in workloads.items() if one.high < log1p(-policy.worst_workload_loss)]
    if lost:
        return "revert", f"workload {lost[0]} loses {_percent(workloads[lost[0]].gain)} beyond doubt; overall {told}"
    few = trimmed_count(overall.restarts) == 0 and weakest <= log1p(policy.disturbed_restart)
    if overall.gain >= target and overall.low > 0.0 and not few:
        return "keep", f"{told}: at least {_percent(target)} and above zero"
    if hope < target:
        return "revert", f"{told}: {_percent(target)} is out of reach (at most {_percent(hope)})"
    if look == len(policy.looks) - 1:
        return "unresolved", f"{told}: undecided at the cap, needs {_percent(target)} and a lower bound above zero"
    return "continue", f"{told}: undecided, next look at {policy.looks[look + 1]} pairs"


def _percent(gain: float) -> str:
    return f"{100.0 * (exp(gain) - 1.0):+.2f} %"


# ---------------------------------------------------------------- calibration


def _pair_variance(restarts: Sequence[Restart], weights: Mapping[str, float]) -> float:
    """Variance of one weighted pair about its restart's location, robust."""
    return sum(share**2 * _residual_variance(restarts, name) for name, share in _normalised(weights).items())


def _residual_variance(restarts: Sequence[Restart], workload: str) -> float:
    groups = _corrected(restarts, workload)
    residuals = np.concatenate([group - pair_location(group) for group in groups])
    spent = len(residuals) / max(len(residuals) - len(groups), 1)
    return float(normal_variance(residuals)) * spent


def _floor(centre: Location, restart_variance: float, pair_variance: float, policy: Policy) -> float:
    """Bound on an A/A estimate at the cap, plus the A/A centre itself where that is beyond its own interval."""
    planned = policy.looks[-1] // policy.pairs_per_restart
    one = restart_variance + _pair_share(pair_variance, policy.pairs_per_restart)
    quantile = student_quantile(1.0 - policy.total_error, centre.df)
    bias = abs(float(centre.centre))
    beyond = bias > student_quantile(0.99, centre.df) * sqrt(float(centre.variance))
    return quantile * sqrt(one * cost(planned) / planned) + (bias if beyond else 0.0)

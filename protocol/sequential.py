"""The law of gains: from raw pairs to an estimate, and from an estimate to keep, revert, continue or unresolved.

Fixed by the law; pure (no clock, no randomness). A gain is ``ln(base / candidate)``.

Each restart gives one value: per workload the trimmed mean of its pairs without the order effect, then the weighted
mean over workloads. The gain is the 25 % trimmed mean of these values (Yuen 1974); its variance pools their winsorised
scatter with the A/A calibration's (Smyth 2004). A keep needs, at one of the looks, a gain of at least the threshold or
the noise floor, a lower bound above zero, and a lower bound that stays above zero without the two best restarts: so
no one bad restart, and no two of eight, make a keep. The error is spent in proportion to the pairs (Lan & DeMets 1983,
Biometrika 70:659; Kim & DeMets 1987, Biometrika 74:149).

Chosen by ``scripts/choose_statistics.py`` (seed 7, 20,000 experiments each, calibrated on 24 restarts of 4 pairs):

===================================  ===========  ======================  ==================  ===============
noise                                false keeps  power at +1, +2, +5 %   pairs at 0, 2, 50   false, naive t
===================================  ===========  ======================  ==================  ===============
H200 graph replay, 1.3 us            0.00 %       67, 100, 100 %          16, 23, 16          0.00 %
H200 graph replay, 9.4 us            0.00 %       70, 100, 100 %          11, 17, 16          0.00 %
H200 gated launches, 4.8 us          0.06 %       54, 96, 100 %           41, 53, 16          5.2 %
shared CPU                           0.04 %       36, 98, 100 %           86, 85, 16          0.8 %
the same, 4 % pairs and 1 % bias     0.06 %       16, 86, 100 %           98, 111, 16         1.1 %
the same, two of eight 6 % off       0.25 %       52, 99, 100 %           109, 74, 16         13.4 %
===================================  ===========  ======================  ==================  ===============

Naive t is Student's on all pairs; the median with a bootstrap fares no better (4.7, 1.1, 1.6, 11.6 % in the last four
rows). Without striking the best restarts, trimming keeps 2.7 % on gated launches and 5.2 % with two of eight off, and
Huber's estimate 2.4 and 4.1 %. Order statistics of restarts are as safe but need 64 pairs for any gain.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp, hypot, inf, log1p, sqrt
from typing import Literal

import numpy as np

from protocol.messages import Decision, Estimate, Noise, Restart
from protocol.policy import Policy
from protocol.samples import Counts, counts_of, normalised, of_workloads, pairs_behind, weighted, weighted_of_pair
from protocol.two_level import (
    Array,
    Location,
    moderated_location,
    noise_floor,
    pair_share,
    scatter,
    trimmed_location,
    without_best,
)

State = Literal["keep", "revert", "continue", "unresolved"]


def estimate(
    restarts: Sequence[Restart], weights: Mapping[str, float], noise: Noise | None, policy: Policy, error: float
) -> tuple[Estimate, dict[str, Estimate]]:
    """Weighted log gain and that of each workload, with bounds that are each wrong with chance ``error``.

    Raises ValueError when there is no restart, or a restart lacks a weighted workload.
    """
    return _weigh(restarts, counts_of(restarts, weights), weights, noise, policy).estimates(error)


def look_errors(policy: Policy) -> tuple[float, ...]:
    """Error that each look may spend: its share of the cap's pairs, of the total (Kim & DeMets 1987, power 1).

    Each look tests at its own increment, so the total holds by the union bound, whatever the correlation of looks.
    """
    return tuple(look_error(policy, look) for look in range(len(policy.looks)))


def look_error(policy: Policy, look: int) -> float:
    """Error that the look of this index may spend."""
    before = policy.looks[look - 1] if look else 0
    return policy.total_error * (policy.looks[look] - before) / policy.looks[-1]


def target_gain(noise: Noise | None, policy: Policy) -> float:
    """Smallest log gain that may be kept: the threshold, raised to the noise floor where that is higher."""
    return max(log1p(policy.threshold), noise.floor if noise else 0.0)


def decide(restarts: Sequence[Restart], weights: Mapping[str, float], noise: Noise | None, policy: Policy) -> Decision:
    """The group-sequential test at the last look that the samples reach.

    Only the restarts that complete a look are used, so asking more often than the looks cannot raise the error.
    """
    counts = counts_of(restarts, weights)
    look, used = _last_look(counts, policy)
    seen = {name: count[:used] for name, count in counts.items()}
    evidence = _weigh(restarts[:used], seen, weights, noise, policy)
    overall, workloads = evidence.estimates(look_error(policy, max(look, 0)))
    state, reason = _judge(evidence, overall, workloads, look, target_gain(noise, policy), policy)
    return Decision(state=state, reason=f"{_told(overall)}: {reason}", overall=overall, workloads=workloads)


def calibrate(restarts: Sequence[Restart], weights: Mapping[str, float], policy: Policy) -> Noise:
    """Noise of a device and task from an A/A run of at least four restarts."""
    if len(restarts) < 4:
        raise ValueError(f"calibration needs at least 4 restarts, got {len(restarts)}")
    parts = of_workloads(restarts, counts_of(restarts, weights))
    shares = normalised(weights)
    found = scatter(weighted(parts, shares), weighted_of_pair(parts, shares), pairs_behind(parts))
    planned = policy.looks[-1] // policy.pairs_per_restart
    return Noise(
        restart_sd=sqrt(float(found.restart)),
        restart_df=found.centre.df,
        pair_sd=sqrt(float(found.pair)),
        floor=float(noise_floor(found, planned, policy.pairs_per_restart, policy.total_error)),
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
    """True when the product of landed gains and the direct measurement of main can be one and the same.

    Give ``combine``'s estimate, so that its interval counts too; a bare log gain must lie in the direct interval.
    """
    if isinstance(product_gain, Estimate):
        moved = drift(product_gain, direct)
        return moved.low <= 0.0 <= moved.high
    return direct.low <= product_gain <= direct.high


# ---------------------------------------------------------------- evidence


@dataclass(frozen=True)
class _Evidence:
    """Where the weighted gain lies and, in further rows, each workload's; and without its best restarts (asked for
    gains alone)."""

    located: Location
    struck: Callable[[], Location | None]
    workloads: tuple[str, ...]
    pairs: int
    restarts: int

    def estimates(self, error: float) -> tuple[Estimate, dict[str, Estimate]]:
        """The weighted gain and each workload's, with bounds that are each wrong with chance ``error``."""
        rows = (self.located.centre, self.located.bound(error, -1), self.located.bound(error, +1))
        overall, *each = [
            Estimate(gain=gain, low=low, high=high, pairs=self.pairs, restarts=self.restarts)
            for gain, low, high in zip(*(row.tolist() for row in rows), strict=True)
        ]
        return overall, dict(zip(self.workloads, each, strict=True))

    def hope(self, error: float) -> float:
        """Upper bound of the weighted gain."""
        return float(self.located.bound(error, +1)[0])

    def low_without_best(self, error: float) -> float:
        """Lower bound of the gain when the best restarts are struck out; minus infinity when none is left."""
        struck = self.struck()
        return float(struck.bound(error, -1)[0]) if struck else -inf


def _weigh(
    restarts: Sequence[Restart], counts: Counts, weights: Mapping[str, float], noise: Noise | None, policy: Policy
) -> _Evidence:
    """Evidence of these restarts. A workload alone scatters more than the weighted mean of all: its calibrated sd is
    that of the mean over ``sqrt(sum of squared weights)``, as for independent equals; its own scatter adds the rest."""
    parts = of_workloads(restarts, counts)
    shares = normalised(weights)
    alone = 1.0 / sum(share**2 for share in shares.values())
    whole = weighted(parts, shares)
    everything = np.array([whole, *(part.values for part in parts.values())])
    pairs = [pairs_behind(parts), *(part.pairs for part in parts.values())]

    def struck() -> Location | None:
        left = without_best(whole, policy.struck_restarts)
        return _locate(left[None], pairs[:1], [1.0], noise, policy) if len(left) else None

    return _Evidence(
        located=_locate(everything, pairs, [1.0, *(alone for _ in parts)], noise, policy),
        struck=struck,
        workloads=tuple(parts),
        pairs=min(map(sum, counts.values())),
        restarts=len(restarts),
    )


def _locate(
    values: Array, pairs: Sequence[float], scales: Sequence[float], noise: Noise | None, policy: Policy
) -> Location:
    """Each row's location, with calibrated variance times its scale; without calibration, on what the row shows."""
    if noise is not None:
        of_pair = noise.pair_sd**2
        of_one = [s * (noise.restart_sd**2 + pair_share(of_pair, n)) for s, n in zip(scales, pairs, strict=True)]
        return moderated_location(values, np.array(of_one), noise.restart_df)
    found = trimmed_location(values)
    return found if found.df else moderated_location(values, policy.uncalibrated_sd**2, 1)


# ---------------------------------------------------------------- the test


def _last_look(counts: Counts, policy: Policy) -> tuple[int, int]:
    """Index of the last look reached and how many restarts complete it; -1 and all restarts before the first look."""
    fewest = list(map(min, zip(*map(accumulate, counts.values()), strict=True)))
    look = bisect_right(policy.looks, fewest[-1] if fewest else 0) - 1
    return look, len(fewest) if look < 0 else bisect_left(fewest, policy.looks[look]) + 1


def _judge(
    evidence: _Evidence,
    overall: Estimate,
    workloads: Mapping[str, Estimate],
    look: int,
    target: float,
    policy: Policy,
) -> tuple[State, str]:
    """State and reason at one look."""
    if look < 0:
        return "continue", f"the first look is at {policy.looks[0]} pairs"
    lost = [name for name, one in workloads.items() if one.high < log1p(-policy.worst_workload_loss)]
    if lost:
        return "revert", f"workload {lost[0]} changes by {_percent(workloads[lost[0]].gain)}, a loss beyond doubt"
    gains = overall.gain >= target and overall.low > 0.0
    if gains and evidence.low_without_best(look_error(policy, look)) > 0.0:
        return "keep", f"reaches the bar of {_percent(target)}, and is above zero even without its best restarts"
    hope = evidence.hope(policy.futility_error)
    if hope < target:
        return "revert", f"{_percent(target)} is out of reach, at most {_percent(hope)}"
    if look == len(policy.looks) - 1:
        return "unresolved", f"undecided at the cap, needs {_percent(target)} proven without its best restarts"
    return "continue", f"undecided, next look at {policy.looks[look + 1]} pairs"


def _told(one: Estimate) -> str:
    return f"{_percent(one.gain)} [{_percent(one.low)}, {_percent(one.high)}] after {one.pairs} pairs"


def _percent(gain: float) -> str:
    speedup = exp(min(gain, 99.0))
    return f"{100.0 * (speedup - 1.0):+.2f} %" if speedup < 100.0 else f"x{speedup:.3g}"

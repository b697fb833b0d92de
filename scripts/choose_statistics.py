"""Which test may keep an experiment? Monte-Carlo of candidate rules over recorded H200 noise and a shared-CPU model.

    python scripts/choose_statistics.py [--trials 20000] [--seed 7]

Prints false keeps under A/A with their 95 % Clopper-Pearson interval, power at planted gains and mean pairs used, and
writes benchmarks/results/statistics-choice.json. ``--record RAW`` first rebuilds the compact trace file from the full
recording (shared/data/noise/h200-aa-pairs.json). Every rule gets the same looks, error spending, threshold, futility.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import ceil, log1p
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from noise_models import CAP, POLICY, M, Model, Trials, models, record
from scipy.stats import beta, binom

from protocol import two_level as tl
from protocol.sequential import look_errors
from protocol.two_level import Array, Location, Scatter

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
GAINS = (0.0, 0.01, 0.02, 0.05, 0.5)


Bounds = tuple[Array, Array, Array]
"""Centre, lower bound at the look's error, upper bound at the futility error; each (trials,)."""
Rule = Callable[[Trials, Scatter, float, float], Bounds]


# ---------------------------------------------------------------- candidate rules


def restart_values(trials: Trials) -> tuple[Array, Array]:
    """One value per restart, and the pairs about its mean: exactly ``protocol.samples.of_workload``."""
    flags = trials.first.reshape(len(trials.first), -1)
    effect = tl.order_effect(trials.pooled, flags)[:, None, None]
    ratios = tl.without_order(trials.ratios, trials.first, effect)
    values = tl.pair_location(ratios)
    return values, (ratios - ratios.mean(axis=-1, keepdims=True)).reshape(len(values), -1)


def calibration(trials: Trials) -> tuple[Scatter, Array]:
    """What ``protocol.sequential.calibrate`` finds in each trial's A/A run, and the noise floor."""
    values, residuals = restart_values(trials)
    found = tl.scatter(values, tl.pair_variance(residuals, M), M)
    return found, tl.noise_floor(found, CAP, M, POLICY.total_error)


def bounds(location: Location, error: float, futility: float) -> Bounds:
    return location.centre, location.bound(error, -1), location.bound(futility, +1)


def trimmed(trials: Trials, found: Scatter, error: float, futility: float, struck: int = 0) -> Bounds:
    """Trimmed mean of restarts, moderated variance; a keep must stand without its ``struck`` best restarts."""
    values, _ = restart_values(trials)
    one, df = found.of_one(M), found.centre.df
    centre, low, high = bounds(tl.moderated_location(values, one, df), error, futility)
    left = tl.without_best(values, struck)
    if left.shape[-1] == 0:
        return centre, np.full_like(low, -np.inf), high
    return centre, np.minimum(low, tl.moderated_location(left, one, df).bound(error, -1)), high


def law(trials: Trials, found: Scatter, error: float, futility: float) -> Bounds:
    """What ``protocol.sequential.decide`` does."""
    return trimmed(trials, found, error, futility, POLICY.struck_restarts)


def huber(trials: Trials, found: Scatter, error: float, futility: float) -> Bounds:
    """Huber's M-estimate of restarts, k = 1.345 calibrated sd (Huber 1964), moderated variance."""
    values, _ = restart_values(trials)
    n = values.shape[-1]
    reach = 1.345 * np.sqrt(np.maximum(found.of_one(M), 1e-12))[:, None]
    centre = np.median(values, axis=1, keepdims=True)
    for _ in range(15):
        inside = np.maximum((np.abs(values - centre) <= reach).mean(axis=1, keepdims=True), 0.25)
        centre = centre + np.clip(values - centre, -reach, reach).mean(axis=1, keepdims=True) / inside
    clipped = np.clip(values - centre, -reach, reach)
    measured = np.square(clipped).sum(axis=1) / (n * (n - 1)) / inside[:, 0] ** 2
    return bounds(_pooled(centre[:, 0], measured, n, 1.05, found), error, futility)


def restart_mean(trials: Trials, found: Scatter, error: float, futility: float) -> Bounds:
    """Plain mean of restarts, moderated variance: not robust."""
    values, _ = restart_values(trials)
    n = values.shape[-1]
    return bounds(_pooled(values.mean(axis=1), values.var(axis=1, ddof=1) / n, n, 1.0, found), error, futility)


def _pooled(centre: Array, measured: Array, n: int, cost: float, found: Scatter) -> Location:
    df = n - 1 + found.centre.df
    pooled = ((n - 1) * measured + found.centre.df * found.of_one(M) * cost / n) / df
    return Location(centre, np.maximum(pooled, measured), df)


def restart_order(trials: Trials, found: Scatter, error: float, futility: float) -> Bounds:
    """Median of restarts with the order-statistic (sign test) interval; no calibration."""
    values = np.sort(restart_values(trials)[0], axis=1)
    n = values.shape[-1]
    low, high = _sign_rank(n, error), _sign_rank(n, futility)
    nothing = np.full(len(values), np.inf)
    return (
        np.median(values, axis=1),
        values[:, low] if low >= 0 else -nothing,
        values[:, n - 1 - high] if high >= 0 else nothing,
    )


@cache
def _sign_rank(n: int, error: float) -> int:
    """Largest 0-based rank whose order statistic is a bound for the median at ``error``; -1 when none is."""
    return int((binom.cdf(np.arange(n), n, 0.5) <= error).sum()) - 1


def pooled_t(trials: Trials, found: Scatter, error: float, futility: float) -> Bounds:
    """Student's t on all pairs as if restarts did not matter."""
    pairs = trials.pooled
    n = pairs.shape[-1]
    return bounds(Location(pairs.mean(axis=1), pairs.var(axis=1, ddof=1) / n, n - 1), error, futility)


def pooled_bootstrap(trials: Trials, found: Scatter, error: float, futility: float) -> Bounds:
    """Median of all pairs with the percentile bootstrap, in closed form: the resampled median exceeds the k-th order
    statistic with a binomial probability, so no resampling is needed."""
    pairs = np.sort(trials.pooled, axis=1)
    n = pairs.shape[-1]
    below = binom.sf(ceil(n / 2) - 1, n, np.arange(1, n + 1) / n)
    low, high = (min(int(np.searchsorted(below, level)), n - 1) for level in (error, 1.0 - futility))
    return np.median(pairs, axis=1), pairs[:, low], pairs[:, high]


RULES: dict[str, tuple[Rule, bool]] = {
    "the law: trimmed, two struck": (law, True),
    "trimmed, none struck": (trimmed, True),
    "Huber, calibrated scale": (huber, True),
    "mean of restarts": (restart_mean, True),
    "order statistic of restarts": (restart_order, False),
    "Student t, pooled pairs": (pooled_t, False),
    "median bootstrap, pooled pairs": (pooled_bootstrap, False),
}
"""Rule and whether the calibrated noise floor raises its threshold."""


# ---------------------------------------------------------------- the sequential game


@dataclass(frozen=True)
class Played:
    kept: int
    pairs: float
    unresolved: float


def play(looks: list[Bounds], target: Array, gain: float) -> Played:
    """All trials with ``gain`` planted: a shift of every bound, since every rule is shift-equivariant."""
    waiting = np.ones(len(target), dtype=bool)
    kept, used = 0, np.full(len(target), POLICY.looks[-1])
    for pairs, (centre, low, high) in zip(POLICY.looks, looks, strict=True):
        keep = waiting & (centre + gain >= target) & (low + gain > 0.0)
        stop = keep | (waiting & (high + gain < target))
        kept += int(keep.sum())
        used[stop] = pairs
        waiting &= ~stop
    return Played(kept, float(used.mean()), float(waiting.mean()))


def run_rule(rule: Rule, floored: bool, measured: Trials, found: Scatter, floor: Array) -> dict[str, Any]:
    errors = look_errors(POLICY)
    looks = [
        rule(measured.upto(pairs // M), found, error, POLICY.futility_error)
        for pairs, error in zip(POLICY.looks, errors, strict=True)
    ]
    target = np.maximum(log1p(POLICY.threshold), floor if floored else np.zeros_like(floor))
    played = {gain: play(looks, target, log1p(gain)) for gain in GAINS}
    trials, false = len(target), played[0.0].kept
    return {
        "false_keeps": false,
        "false_rate_95": [
            float(beta.ppf(0.025, false, trials - false + 1)) if false else 0.0,
            float(beta.ppf(0.975, false + 1, trials - false)),
        ],
        "power": {f"{gain:+.0%}": played[gain].kept / trials for gain in GAINS[1:]},
        "mean_pairs": {f"{gain:+.0%}": played[gain].pairs for gain in GAINS},
        "unresolved": {f"{gain:+.0%}": played[gain].unresolved for gain in GAINS},
    }


def run_model(model: Model, trials: int, seed: int, rules: tuple[str, ...] = tuple(RULES)) -> dict[str, Any]:
    """Every rule on the same simulated calibrations and measurements."""
    rng = np.random.default_rng(seed)
    found, floor = calibration(model(rng, trials, POLICY.calibration_restarts))
    measured = model(rng, trials, CAP)
    return {
        "floor_10_50_90": [float(q) for q in np.quantile(floor, (0.1, 0.5, 0.9))],
        "rules": {name: run_rule(*RULES[name], measured, found, floor) for name in rules},
    }


# ---------------------------------------------------------------- command


def show(name: str, result: dict[str, Any]) -> None:
    floor = " / ".join(f"{100 * q:.2f}" for q in result["floor_10_50_90"])
    print(f"\n{name}   (noise floor 10/50/90 %: {floor} %)")
    for rule, got in result["rules"].items():
        low, high = got["false_rate_95"]
        power = " ".join(f"{100 * p:6.1f}" for p in got["power"].values())
        pairs = " ".join(f"{p:4.0f}" for p in got["mean_pairs"].values())
        print(f"  {rule:32s} {got['false_keeps']:5d} [{100 * low:.2f}, {100 * high:.2f}] %   {power}   {pairs}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", default="", help="models whose names begin so; the others keep their results")
    parser.add_argument("--record", type=Path, metavar="RAW", help="rebuild the compact traces from this file first")
    options = parser.parse_args()
    if options.record:
        record(options.record)
    started = time.monotonic()
    print("columns: false keeps [95 % interval]   power at +1 +2 +5 +50 %   mean pairs at 0 +1 +2 +5 +50 %")
    path = RESULTS / "statistics-choice.json"
    results = json.loads(path.read_text())["models"] if options.only else {}
    for name, model in models().items():
        if not name.startswith(options.only):
            continue
        results[name] = {"trials": options.trials, **run_model(model, options.trials, options.seed)}
        show(name, results[name])
    about = {"trials": options.trials, "seed": options.seed, "seconds": round(time.monotonic() - started, 1)}
    machine = {"platform": platform.platform(), "cores": os.cpu_count(), "numpy": np.__version__}
    where = {**machine, "scipy": scipy.__version__, "gpu traces": "NVIDIA H200, recorded"}
    written = {**about, "machine": where, "policy": POLICY.model_dump(mode="json"), "models": results}
    path.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()

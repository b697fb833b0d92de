"""Robust two-level location of paired log ratios: pairs within a process restart, then restarts.

Pure arithmetic on arrays whose last axis is the sample; leading axes are carried along, so
``scripts/choose_statistics.py`` runs the very functions of the law over 20,000 simulated experiments at once and
``protocol.sequential`` runs them over one. Every formula is equivariant: swapping the sides negates a location, a
planted gain shifts it.

Sources: trimmed mean and winsorised variance, Tukey & McLaughlin 1963 (Sankhya A 25:331) and Yuen 1974 (Biometrika
61:165); pooling a calibrated variance with a measured one, Smyth 2004 (Stat. Appl. Genet. 3:3, the moderated t).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit  # pyright: ignore[reportUnknownVariableType, reportMissingTypeStubs]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Number = TypeVar("Number", float, Array)

TRIM = 0.25
"""Share trimmed at each end: one of four, two of eight. So two bad restarts of eight never enter the mean."""

TRIMMED_COST = 1.19
"""Variance of the 25 % trimmed mean over that of the mean, for normal data: 1.19 at n = 4, 1.18 at n = 8 and 32."""


@dataclass(frozen=True)
class Location:
    """A robust centre, the variance of that centre, and the degrees of freedom behind the variance."""

    centre: Array
    variance: Array
    df: int

    def bound(self, error: float, side: int) -> Array:
        """One-sided Student bound at ``error``: below the centre for ``side`` -1, above it for +1."""
        return self.centre + side * student_quantile(1.0 - error, self.df) * np.sqrt(self.variance)


@dataclass(frozen=True)
class Scatter:
    """What scatters in an A/A run: variances of a restart's bias and of one pair, and the A/A centre itself."""

    restart: Array
    pair: Array
    centre: Location

    def of_one(self, pairs: float) -> Array:
        """Variance of one restart's value when it holds this many pairs."""
        return self.restart + pair_share(self.pair, pairs)


# ---------------------------------------------------------------- location


@lru_cache(maxsize=1024)
def student_quantile(level: float, df: float) -> float:
    """Quantile of Student's t with ``df`` degrees of freedom."""
    return float(stdtrit(df, level))  # pyright: ignore[reportUnknownArgumentType]


def mean(values: Array) -> Array:
    """Mean over the last axis; ``ndarray.mean`` spends most of its time on other things for a few values."""
    return np.add.reduce(values, axis=-1) / values.shape[-1]


def about_mean(values: Array) -> Array:
    """What is left of the values of the last axis without their mean."""
    return values - mean(values)[..., None]


def trimmed_count(n: int) -> int:
    """How many of ``n`` values are trimmed at each end."""
    return int(TRIM * n)


def trimmed_df(n: int) -> int:
    """Degrees of freedom that a trimmed mean of ``n`` values leaves for its variance (Yuen 1974)."""
    return n - 2 * trimmed_count(n) - 1


def cost(n: int) -> float:
    """Variance of the trimmed mean of ``n`` normal values, times ``n``, over the variance of one."""
    return TRIMMED_COST if trimmed_count(n) else 1.0


def trimmed_location(values: Array) -> Location:
    """Trimmed mean over the last axis with Yuen's winsorised variance. One value has variance 0 and no df."""
    n = values.shape[-1]
    cut, df = trimmed_count(n), trimmed_df(n)
    ordered = np.sort(values, axis=-1)
    centre = mean(ordered[..., cut : n - cut])
    if df == 0:
        return Location(centre, np.zeros_like(centre), 0)
    low, high = ordered[..., cut : cut + 1], ordered[..., n - cut - 1 : n - cut]
    winsorised = np.minimum(np.maximum(ordered, low), high)
    squares = np.add.reduce(np.square(about_mean(winsorised)), axis=-1)
    return Location(centre, squares / (df * (df + 1)), df)


def trimmed_mean(values: Array) -> Array:
    """Mean of the last axis without the share that is trimmed at each end."""
    cut = trimmed_count(values.shape[-1])
    return mean(np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut])


def normal_variance(values: Array) -> Array:
    """Robust variance of one value over the last axis, consistent for normal data."""
    n = values.shape[-1]
    return trimmed_location(values).variance * n / cost(n)


def moderated_location(values: Array, of_one: Array | float, calibrated_df: int) -> Location:
    """Trimmed location with its variance pooled with the calibrated variance ``of_one`` value.

    Pooling lets four restarts decide a large effect, on the calibration's degrees of freedom. The pooled variance is
    never below the measured one, so one wild restart of two or four cannot hide behind a quiet calibration.
    """
    measured = trimmed_location(values)
    n = values.shape[-1]
    df = measured.df + calibrated_df
    pooled = (measured.df * measured.variance + calibrated_df * of_one * cost(n) / n) / df
    return Location(measured.centre, np.maximum(pooled, measured.variance), df)


def without_best(values: Array, struck: int) -> Array:
    """The values without the ``struck`` largest of the last axis; the axis may become empty."""
    return np.sort(values, axis=-1)[..., : max(values.shape[-1] - struck, 0)]


# ---------------------------------------------------------------- from pairs to one value per restart


def pair_location(ratios: Array) -> Array:
    """Location of one restart: the trimmed mean of its pairs (of four: the mean of the middle two)."""
    return trimmed_mean(ratios)


def pair_share(of_pair: Number, pairs: float) -> Number:
    """Variance that ``pairs`` pairs of one restart lend to its location."""
    return of_pair * (cost(int(pairs)) / pairs)


def order_effect(ratios: Array, candidate_first: Flags) -> Array:
    """What running second costs, in log time, estimated over all pairs of the last axis; 0 unless both orders occur.

    Half the difference of the medians of both orders, so that a wild pair does not move it.
    """
    wanted = np.array([candidate_first, ~candidate_first])
    count = np.add.reduce(wanted, axis=-1, dtype=np.int64)
    medians = _medians(np.where(wanted, ratios, np.inf), count)
    return np.where(count[0] * count[1] > 0, 0.5 * (medians[0] - medians[1]), 0.0)


def _medians(values: Array, count: NDArray[np.int64]) -> Array:
    """Median of the ``count`` smallest of the last axis; where that is none, the smallest."""
    ordered = np.sort(values, axis=-1).ravel()
    rows = np.arange(count.size, dtype=np.int64).reshape(count.shape) * values.shape[-1]
    last = np.maximum(count - 1, 0)
    return 0.5 * (ordered[rows + (last >> 1)] + ordered[rows + (last + 1 >> 1)])


def without_order(ratios: Array, candidate_first: Flags, effect: Array) -> Array:
    """Log ratios ``ln(base / candidate)`` with the order effect taken out; ``effect`` must broadcast."""
    return ratios - np.where(candidate_first, effect, -effect)


# ---------------------------------------------------------------- calibration


def pair_variance(residuals: Array, pairs: float) -> Array:
    """Robust variance of one pair from the ``residuals`` of all pairs about their restart's mean (last axis).

    Raised by ``pairs / (pairs - 1)`` for the mean that each restart of ``pairs`` pairs spent.
    """
    return normal_variance(residuals) * (pairs / max(pairs - 1.0, 1.0))


def scatter(values: Array, of_pair: Array, pairs: float) -> Scatter:
    """Split the scatter of A/A restart ``values``: what the pairs behind each value do not explain is restart bias."""
    restart = np.maximum(normal_variance(values) - pair_share(of_pair, pairs), 0.0)
    return Scatter(restart, of_pair, trimmed_location(values))


def noise_floor(found: Scatter, restarts: int, pairs: float, error: float) -> Array:
    """Smallest gain that ``restarts`` restarts of ``pairs`` pairs can tell from nothing: the half-width at ``error``.

    An A/A centre beyond its own 99 % bound is a bias that restarts do not remove, and is added.
    """
    quantile = student_quantile(1.0 - error, found.centre.df + trimmed_df(restarts))
    half = quantile * np.sqrt(found.of_one(pairs) * cost(restarts) / restarts)
    bias = np.abs(found.centre.centre)
    doubt = student_quantile(0.99, found.centre.df) * np.sqrt(found.centre.variance)
    return half + np.where(bias > doubt, bias, 0.0)

"""Scales of the staircase chart: experiment numbers to the right, speedup upwards on a logarithmic scale."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

WIDTH, HEIGHT = 1120.0, 540.0
LEFT, RIGHT, TOP, BOTTOM = 50.0, 986.0, 28.0, 440.0
FAILURES = 468.0
NUMBERS = 504.0
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
_ROUND = (1.0, 2.0, 3.0, 5.0)


@dataclass(frozen=True)
class Axes:
    """``low`` and ``high`` are log gains at the bottom and the top; ``last`` is the newest experiment's number."""

    low: float
    high: float
    last: int

    def x(self, number: float) -> float:
        """Pixel column of an experiment's number; half a step of air on either side."""
        return LEFT + (RIGHT - LEFT) * number / (self.last + 0.5)

    def y(self, level: float) -> float:
        """Pixel row of a log gain; what is off the scale is put at its edge."""
        inside = min(self.high, max(self.low, level))
        return BOTTOM - (BOTTOM - TOP) * (inside - self.low) / (self.high - self.low)

    def below(self, level: float) -> bool:
        """Whether a log gain is off the scale downwards."""
        return level < self.low


def axes_for(main: Iterable[float], points: Iterable[float], last: int) -> Axes:
    """Axes that hold all of main's levels, the points above them, and the points that are not hopelessly below."""
    levels, tried = [0.0, *main], list(points)
    high = max(*levels, *(min(level, max(levels) + 1.0) for level in tried), 0.08)
    floor = min(*levels, -0.35 * high - 0.2)
    low = min([*levels, -0.04 * high, *(level for level in tried if level >= floor)])
    pad = 0.06 * (high - low)
    return Axes(low - pad, high + 1.6 * pad, max(1, last))


def speedup_ticks(axes: Axes) -> list[float]:
    """Round speedups between the ends of the axis, 1 among them."""
    low, high = math.exp(axes.low), math.exp(axes.high)
    if high / low > 4.0:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        marks = _ROUND if high / low < 200.0 else (1.0,)
        return [mark * 10.0**decade for decade in decades for mark in marks if low <= mark * 10.0**decade <= high]
    step = next((step for step in _STEPS if (high - low) / step <= 7.0), _STEPS[-1])
    first, last = math.ceil((low - 1.0) / step), math.floor((high - 1.0) / step)
    return [1.0 + step * index for index in range(first, last + 1)]


def number_ticks(last: int) -> list[int]:
    """Round experiment numbers from 0 to the last."""
    step = next(step for scale in range(9) for step in (10**scale, 2 * 10**scale, 5 * 10**scale) if last / step <= 14)
    return list(range(0, last + 1, step))

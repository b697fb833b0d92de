"""Logarithmic axes of the report's roofline, and where each step of a workload's way stands on them."""

import math
from dataclasses import dataclass

from team.report.way import Roofs, Step

WIDTH, HEIGHT = 1120.0, 470.0
LEFT, RIGHT, TOP, BOTTOM = 78.0, 1096.0, 22.0, 410.0
_FEW = 60.0  # ratio of an axis' ends below which it gets doubles and fives
_ROW = 13.0  # pixels between neighbours
_AIR = 1.8  # factor of room around the points


@dataclass(frozen=True)
class Scale:
    """Decades shown: intensities to the right, operations per second upwards."""

    left: float
    right: float
    low: float
    high: float
    beside: dict[str, float]  # workload -> pixels to the right of its place, where several share one intensity

    def x(self, intensity: float) -> float:
        """Pixel column."""
        return LEFT + (RIGHT - LEFT) * _share(intensity, self.left, self.right)

    def y(self, rate: float) -> float:
        """Pixel row."""
        return BOTTOM - (BOTTOM - TOP) * _share(rate, self.low, self.high)

    def place(self, step: Step) -> tuple[float, float]:
        """Where a step stands."""
        intensity, rate = point(step)
        return self.x(intensity) + self.beside[step.line.workload], self.y(rate)


def scale_of(roofs: Roofs, ways: dict[str, tuple[Step, ...]]) -> Scale:
    """Axes that hold every point, and the ridge where there is one."""
    points = [point(step) for steps in ways.values() for step in steps]
    across = [x for x, _ in points]
    if roofs.peak is not None:
        across += [roofs.peak / rate for rate in roofs.slopes.values()]
    left, right = min(across) / (2 * _AIR), max(across) * (2 * _AIR)
    tops = [y for _, y in points] + [roofs.under(x, rate) for x in (*across, right) for rate in roofs.slopes.values()]
    return Scale(left, right, min(y for _, y in points) / _AIR, max(tops) * _AIR, _beside(ways))


def _beside(ways: dict[str, tuple[Step, ...]]) -> dict[str, float]:
    """Workloads of like intensity stand in a row."""
    alike: dict[str, list[str]] = {}
    for name, steps in ways.items():
        alike.setdefault(f"{point(steps[0])[0]:.1e}", []).append(name)
    rows = list(alike.values())
    return {name: _ROW * (at - (len(row) - 1) / 2) for row in rows for at, name in enumerate(row)}


def point(step: Step) -> tuple[float, float]:
    """Intensity and rate; only workloads that have both are drawn."""
    return step.line.intensity or 1.0, step.line.achieved_flops_per_s or 1.0


def _share(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)


def decades(low: float, high: float) -> list[float]:
    """Powers of ten between two values; with their doubles and fives where there are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = (1.0, 2.0, 5.0) if high / low < _FEW else (1.0,)
    return [mark * 10.0**power for power in powers for mark in marks if low <= mark * 10.0**power <= high]

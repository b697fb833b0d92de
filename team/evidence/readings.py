"""From what a profiler's report holds to the house's readings, and the few of them that say most about each axis."""

import re
from collections.abc import Iterable, Mapping

from protocol.messages import Reading
from team.evidence.metrics import AXES, METRICS, PREFERRED, REASONS, STALL, WORKING, Axis, Metric

Raw = Mapping[str, tuple[float, str]]
"""What a report holds of one kernel: the profiler's name -> (value, unit)."""

_BY_NAME = {metric.name: metric for metric in METRICS}
_STALLS = (
    "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio",
    "smsp__average_warp_latency_issue_stalled_{}.ratio",
)
_NANOSECONDS = {"n": 1.0, "u": 1e3, "m": 1e6, "": 1e9}
_SCALE = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_SECONDS = re.compile(r"^([num]?)(?:s|sec|second)s?$")
_SCALED = re.compile(r"^([KMGTP])((?:byte|hz|inst|cycle).*)$")


def readings(raw: Raw) -> tuple[Reading, ...]:
    """Every metric that the report holds, the reasons for which warps stall at the end, the largest first."""
    found: list[Reading] = []
    for metric in METRICS:
        there = [_reading(metric, source, raw) for source in metric.sources if source in raw]
        if there:
            found.append(max(there, key=lambda one: one.value) if metric.largest else there[0])
    return (*found, *sorted(_stalls(raw), key=lambda one: -one.value))


def in_base_units(value: float, unit: str) -> tuple[float, str]:
    """A value whatever unit the report scaled it to: nanoseconds, bytes, shares; others as they are."""
    if unit == "%":
        return value / 100.0, "share"
    if seconds := _SECONDS.match(unit):
        return value * _NANOSECONDS[seconds[1]], "ns"
    if scaled := _SCALED.match(unit):
        return value * _SCALE[scaled[1]], scaled[2]
    return value, unit


def top(found: Iterable[Reading], most: int) -> dict[str, tuple[Reading, ...]]:
    """Per axis the metrics that say most: the preferred ones in their order, then the most severe of the others.

    Only shares have a severity: what is lost of a share that should be high, or the share that should be low.
    """
    have = {reading.metric: reading for reading in found}
    return {axis: _top_of(axis, have, most) for axis in AXES}


def _top_of(axis: Axis, have: Mapping[str, Reading], most: int) -> tuple[Reading, ...]:
    first = [have[name] for name in PREFERRED[axis] if name in have]
    rest = [r for r in have.values() if r not in first and axis in _axes_of(r.metric) and r.unit == "share"]
    return (*first, *sorted(rest, key=lambda reading: -_severity(reading)))[:most]


def _axes_of(name: str) -> tuple[Axis, ...]:
    if name.startswith(STALL):
        return () if name.removeprefix(STALL) in WORKING else ("latency",)
    return _BY_NAME[name].axes if name in _BY_NAME else ()


def _severity(reading: Reading) -> float:
    lower = reading.metric.startswith(STALL) or _BY_NAME[reading.metric].better == "lower"
    return reading.value if lower else 1.0 - reading.value


def _reading(metric: Metric, source: str, raw: Raw) -> Reading:
    value, unit = in_base_units(*raw[source])
    if metric.unit == "share" and unit != "share":  # a percentage whose unit the report did not give
        value = value / 100.0
    return Reading(metric=metric.name, source=source, value=value, unit=metric.unit)


def _stalls(raw: Raw) -> Iterable[Reading]:
    """Shares of the time that resident warps spend in each state; they sum to one."""
    for pattern in _STALLS:
        cycles = {reason: raw[pattern.format(reason)][0] for reason in REASONS if pattern.format(reason) in raw}
        total = sum(cycles.values())
        if total > 0.0:
            for reason, spent in cycles.items():
                source = pattern.format(reason)
                yield Reading(metric=f"{STALL}{reason}", source=source, value=spent / total, unit="share")
            return

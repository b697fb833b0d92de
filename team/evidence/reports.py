"""Nsight Compute's reports as numbers: its CSV of the raw page, in base units, or what NVIDIA's own reader says."""

import csv
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from protocol.messages import KernelProfile
from team.evidence.metrics import DURATION
from team.evidence.readings import readings

_NUMBER = re.compile(r"^[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_MOST_NAME = 200  # characters of a kernel's name that are kept


@dataclass(frozen=True)
class RawKernel:
    """One launch as a report holds it: the profiler's names -> (value, unit); what is no number is left out."""

    name: str
    grid: str = ""
    block: str = ""
    values: dict[str, tuple[float, str]] = field(default_factory=dict[str, tuple[float, str]])


class Unreadable(Exception):
    """A report that is not what the profiler writes; one clause."""


def parse_raw_page(text: str) -> tuple[RawKernel, ...]:
    """Launches of ``ncu --import FILE --csv --page raw``: a header, a row of units, one row per launch."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if line.lstrip('"').startswith('ID"')), None)
    if start is None:
        raise Unreadable("it has no header of columns")
    rows = list(csv.reader(lines[start:]))
    header = rows[0]
    if "Kernel Name" not in header:
        raise Unreadable("it has no column 'Kernel Name'")
    if len(rows) < 2 or rows[1][0].strip():
        raise Unreadable("it has no row of units")
    units = rows[1]
    return tuple(_launch(header, units, row) for row in rows[2:] if len(row) == len(header))


def parse_reader(text: str) -> tuple[RawKernel, ...]:
    """Launches as ``reader.py`` prints them: one JSON list of {name, grid, block, values}."""
    try:
        found = json.loads(text)
        return tuple(
            RawKernel(
                str(one["name"])[:_MOST_NAME],
                str(one["grid"]),
                str(one["block"]),
                {str(n): (float(v), str(u)) for n, (v, u) in one["values"].items() if math.isfinite(float(v))},
            )
            for one in found
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Unreadable(f"NVIDIA's reader gave no launches ({error})") from None


def profiles_of(launches: Sequence[RawKernel]) -> tuple[KernelProfile, ...]:
    """Every launch under the house's names, the longest first: it is the subject, and the others stay visible."""
    found = [_profile(launch) for launch in launches]
    return tuple(sorted(found, key=lambda one: -(one.duration_ns or 0.0)))


def number(text: str) -> float | None:
    """The number at the start of a cell, its thousands set off by commas; None when there is none."""
    match = _NUMBER.match(text.strip())
    value = float(match[0].replace(",", "")) if match else math.nan
    return value if math.isfinite(value) else None


def _launch(header: list[str], units: list[str], row: list[str]) -> RawKernel:
    cells = dict(zip(header, row, strict=True))
    values = {name: (value, unit) for name, unit, value in _numbers(header, units, row)}
    return RawKernel(cells["Kernel Name"][:_MOST_NAME], cells.get("Grid Size", ""), cells.get("Block Size", ""), values)


def _numbers(header: list[str], units: list[str], row: list[str]) -> Iterator[tuple[str, str, float]]:
    for name, unit, cell in zip(header, units, row, strict=False):
        value = number(cell) if "__" in name else None
        if value is not None:
            yield name, unit.strip(), value


def _profile(launch: RawKernel) -> KernelProfile:
    found = readings(launch.values)
    duration = next((one.value for one in found if one.metric == DURATION and one.value > 0.0), None)
    return KernelProfile(name=launch.name, grid=launch.grid, block=launch.block, duration_ns=duration, readings=found)

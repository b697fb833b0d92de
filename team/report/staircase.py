"""The staircase of kept speedups in characters: a plot for notes and terminals, and a one-line spark."""

import math
from collections.abc import Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = "_.-=+*%#"


def spark(levels: Sequence[float], width: int, blocks: bool = True) -> str:
    """Log gains as a line of characters, the newest ``width`` of them, scaled between their extremes and no change."""
    marks = _BLOCKS if blocks else _ASCII
    shown = list(levels)[-width:]
    if not shown:
        return ""
    low, high = min(0.0, *shown), max(0.0, *shown)
    span = (high - low) or 1.0
    return "".join(marks[round((level - low) / span * (len(marks) - 1))] for level in shown)


def ascii_staircase(steps: Sequence[tuple[int, float]], last: int, width: int = 64, height: int = 12) -> list[str]:
    """Lines of a plot of main's speedup over the experiments, logarithmic upwards.

    ``steps``: (experiment number, log gain of main from there on), in order; ``last``: the newest experiment's number.
    """
    steps = [(number, level) for number, level in steps if math.isfinite(level)]
    top = max((level for _, level in steps), default=0.0)
    bottom = min((level for _, level in steps), default=0.0)
    top, bottom = max(top, bottom + 0.05, 0.05), min(bottom, 0.0)
    columns = (last + 1) * max(1, width // (last + 1)) if last < width else width
    rows = [_row_of(level, bottom, top, height) for level in _sampled(steps, last, columns)]
    lines = [_line(rows, row, bottom, top, height) for row in range(height - 1, -1, -1)]
    foot = f"{'':>9} +{'-' * columns}"
    return [*lines, foot, f"{'':>9}  0{f'experiment {last}':>{max(1, columns - 1)}}"]


def _sampled(steps: Sequence[tuple[int, float]], last: int, columns: int) -> list[float]:
    """Main's level at each column."""
    levels: list[float] = []
    for column in range(columns):
        number = column * last / max(1, columns - 1)
        levels.append(next((level for at, level in reversed(steps) if at <= number), 0.0))
    return levels


def _row_of(level: float, bottom: float, top: float, height: int) -> int:
    return round((level - bottom) / (top - bottom) * (height - 1))


def _line(rows: Sequence[int], row: int, bottom: float, top: float, height: int) -> str:
    labelled = row % 3 == 0 or row == height - 1
    value = math.exp(min(50.0, bottom + (top - bottom) * row / (height - 1)))
    label = f"{value:8.2f}x" if labelled else ""
    return f"{label:>9} |{''.join(_mark(rows, column, row) for column in range(len(rows)))}".rstrip()


def _mark(rows: Sequence[int], column: int, row: int) -> str:
    """``_`` on the step, ``|`` where it rises (or falls) through this row, a space elsewhere."""
    here = rows[column]
    before = rows[column - 1] if column else here
    if row == here:
        return "_" if before == here else "|"
    return "|" if min(here, before) <= row < max(here, before) else " "

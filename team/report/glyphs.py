"""One colour and one shape per agent, so that neither alone has to tell them apart."""

import math
from collections.abc import Iterable

from team.report.markup import Markup, el

COLOURS = 6
_SHAPES = ("circle", "square", "triangle", "diamond", "inverted", "pentagon")


def colour_class(index: int) -> str:
    """The style class that carries the colour of agent number ``index``."""
    return f"c{index % COLOURS}"


def glyph(index: int, x: float, y: float, size: float, filled: bool, title: str = "") -> Markup:
    """The mark of agent number ``index`` at a place; ``size`` is its radius in pixels."""
    shape = _SHAPES[(index + index // COLOURS) % len(_SHAPES)]
    look = f"glyph {colour_class(index)} {'kept' if filled else 'hollow'}"
    tip = el("title", title) if title else None
    if shape == "circle":
        return el("circle", tip, cx=x, cy=y, r=size, class_=look)
    return el("polygon", tip, points=_points(_corners(shape), x, y, size), class_=look)


def cross(index: int, x: float, y: float, size: float, title: str) -> Markup:
    """A failure of agent number ``index``."""
    path = (
        f"M{x - size:.1f} {y - size:.1f}l{2 * size:.1f} {2 * size:.1f}m0 {-2 * size:.1f}l{-2 * size:.1f} {2 * size:.1f}"
    )
    return el("path", el("title", title), d=path, class_=f"cross {colour_class(index)}")


def inline_glyph(index: int, filled: bool = True) -> Markup:
    """The same mark within a line of text."""
    mark = glyph(index, 7.0, 7.0, 4.5, filled)
    return el("svg", mark, class_="key", viewBox="0 0 14 14", width=14, height=14, aria_hidden="true")


def _corners(shape: str) -> list[float]:
    """Directions of a polygon's corners in turns, 0 pointing up."""
    return {
        "square": [0.125, 0.375, 0.625, 0.875],
        "triangle": [0.0, 1 / 3, 2 / 3],
        "diamond": [0.0, 0.25, 0.5, 0.75],
        "inverted": [0.5, 0.5 + 1 / 3, 0.5 - 1 / 3],
        "pentagon": [0.0, 0.2, 0.4, 0.6, 0.8],
    }[shape]


def _points(turns: Iterable[float], x: float, y: float, size: float) -> str:
    reach = 1.25 * size
    angles = (2.0 * math.pi * turn for turn in turns)
    return " ".join(f"{x + reach * math.sin(a):.1f},{y - reach * math.cos(a):.1f}" for a in angles)

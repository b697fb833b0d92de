"""Placing the chart's labels so that none lies on another, on a point, or on the staircase."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

CHARACTER = 6.3
LINE = 14.0


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels, ``top`` above ``bottom``."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        """Whether the two share any area."""
        apart = self.right <= other.left or other.right <= self.left
        return not (apart or self.bottom <= other.top or other.bottom <= self.top)

    def inside(self, other: "Box") -> bool:
        """Whether this lies within the other."""
        wide = other.left <= self.left and self.right <= other.right
        return wide and other.top <= self.top and self.bottom <= other.bottom


@dataclass(frozen=True)
class Wish:
    """A label that wants to stand near a point; of two in conflict the heavier one is placed."""

    text: str
    x: float
    y: float
    weight: float


@dataclass(frozen=True)
class Label:
    """A placed label: baseline of its text at (x, y); ``anchor`` as in SVG; the point that it names."""

    text: str
    x: float
    y: float
    anchor: str
    wish: Wish


def place(wishes: Iterable[Wish], obstacles: Sequence[Box], frame: Box, most: int) -> list[Label]:
    """Labels for as many wishes as fit, the heaviest first; a wish that fits nowhere has none."""
    taken = list(obstacles)
    placed: list[Label] = []
    for wish in sorted(wishes, key=lambda wish: -wish.weight)[:most]:
        for label in _candidates(wish):
            box = box_of(label)
            if box.inside(frame) and not any(box.meets(other) for other in taken):
                placed.append(label)
                taken.append(box)
                break
    return placed


def _candidates(wish: Wish) -> Iterable[Label]:
    """Left above the point first, where a staircase leaves room, then further up, then to the right and below."""
    for rise in (7.0, 22.0, 38.0, 56.0, 76.0, 100.0):
        yield Label(wish.text, wish.x - 9.0, wish.y - rise, "end", wish)
    for drop in (24.0, 40.0, 58.0, 80.0):
        yield Label(wish.text, wish.x + 9.0, wish.y + drop, "start", wish)
    for rise in (12.0, 30.0, 50.0, 75.0):
        yield Label(wish.text, wish.x + 6.0, wish.y - rise, "start", wish)


def box_of(label: Label) -> Box:
    """The area of a label, with a little air."""
    width = CHARACTER * len(label.text) + 6.0
    left = label.x - width + 3.0 if label.anchor == "end" else label.x - 3.0
    return Box(left, label.y - LINE + 2.0, left + width, label.y + 4.0)

"""Placing the chart's labels so that none lies on another, on a point, or on the staircase."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from team.report.markup import Markup, el

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
    """A label that wants to stand near a point; of two in conflict the heavier is placed. ``tail``: its quiet end."""

    text: str
    tail: str
    x: float
    y: float
    weight: float


@dataclass(frozen=True)
class Label:
    """A placed label: baseline of its text at (x, y); ``anchor`` as in SVG; the wish that it fulfils."""

    x: float
    y: float
    anchor: str
    wish: Wish


def place(wishes: Iterable[Wish], obstacles: Sequence[Box], frame: Box, most: int) -> list[Label]:
    """Labels for as many wishes as fit, the heaviest first; a wish that fits nowhere has none."""
    taken = list(obstacles)
    placed: list[Label] = []
    for wish in sorted(wishes, key=lambda wish: -wish.weight)[:most]:
        label = next((one for one in _candidates(wish) if _fits(one, taken, placed, frame)), None)
        if label is not None:
            placed.append(label)
            taken.append(box_of(label))
    return placed


def _fits(label: Label, taken: Sequence[Box], placed: Sequence[Label], frame: Box) -> bool:
    """Inside the frame, on nothing, and its leader crosses no other label; nor is it on another's leader."""
    box, leader = box_of(label), leader_of(label)
    if not box.inside(frame) or any(box.meets(other) for other in taken):
        return False
    crossed = leader is not None and any(leader.meets(box_of(other)) for other in placed)
    leaders = [leader_of(other) for other in placed]
    return not crossed and not any(other is not None and box.meets(other) for other in leaders)


def _candidates(wish: Wish) -> Iterable[Label]:
    """Left above the point, where a staircase leaves room; right below it; right above it; the nearest first."""
    for far in (0.0, 15.0, 30.0, 46.0, 64.0, 84.0):
        yield Label(wish.x - 9.0, wish.y - 7.0 - far, "end", wish)
        yield Label(wish.x + 9.0, wish.y + 22.0 + far, "start", wish)
        if far:
            yield Label(wish.x + 5.0, wish.y - 7.0 - far, "start", wish)


def box_of(label: Label) -> Box:
    """The area of a label, with a little air."""
    width = CHARACTER * (len(label.wish.text) + len(label.wish.tail)) + 6.0
    left = label.x - width + 3.0 if label.anchor == "end" else label.x - 3.0
    return Box(left, label.y - LINE + 2.0, left + width, label.y + 4.0)


def leader_of(label: Label) -> Box | None:
    """The area of the line from a label that is not beside its point to the point: straight up or down beside it."""
    box, wish = box_of(label), label.wish
    if box.top <= wish.y + 14.0 and box.bottom >= wish.y - 12.0:
        return None
    x = box.right - 2.0 if label.anchor == "end" else box.left + 2.0
    top, bottom = (box.bottom, wish.y) if box.bottom < wish.y else (wish.y, box.top)
    return Box(min(x, wish.x) - 1.0, top, max(x, wish.x) + 1.0, bottom)


def drawn_label(label: Label) -> Markup:
    """A label as SVG, with a line to its point when it is not beside it."""
    tail = el("tspan", label.wish.tail, class_="quiet")
    text = el("text", label.wish.text, tail, x=label.x, y=label.y, class_=f"label {label.anchor}")
    leader = leader_of(label)
    if leader is None:
        return el("g", text)
    edge = label.x + (3.0 if label.anchor == "end" else -3.0)
    path = f"M{edge:.1f} {label.y - 4.0:.1f}L{label.wish.x:.1f} {label.wish.y:.1f}"
    return el("g", el("path", d=path, class_="leader"), text)

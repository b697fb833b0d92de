"""A technique card: what a technique does, when it helps, how far it may change numbers, and who says so."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from protocol.messages import Parameter, Phase, Position
from roles.techniques.transform import Transform

Language = Literal["cpp", "cuda", "triton"]
Cell = tuple[Position, Phase]


class Tier(StrEnum):
    """What kind of change a technique is; explorers take the first five, exploiters the rest."""

    ALGORITHM = "algorithm"
    DATA_MOVEMENT = "data movement"
    REGISTERS = "register blocking"
    VECTOR_MATH = "vector math"
    FUSION = "fusion"
    REDUCTIONS = "reductions"
    INVARIANTS = "invariants"
    ALIASING = "aliasing"
    UNROLLING = "unrolling"
    KNOBS = "knobs"
    PARALLEL = "parallel"
    SIMPLIFY = "simplify"


class Numerics(StrEnum):
    """How far a technique may change results.

    A task with 'strict' numerics takes ``EXACT`` ones only; ``APPROXIMATE`` ones are for 'approximate' tasks alone.
    """

    EXACT = "exact"
    REORDERED = "reordered"
    TOLERANCE = "tolerance"
    APPROXIMATE = "approximate"


@dataclass(frozen=True)
class Citation:
    """Where the knowledge on a card comes from."""

    title: str
    locator: str


@dataclass(frozen=True)
class Card:
    """One technique. ``expected_gain`` is a log gain where it applies; ``transform`` is None for knowledge alone.

    ``evidence`` from the field begins with its figure ("4 to 8 times ...") or with the words "field figure".
    ``cores`` is how many CPU cores the kernel must be allowed for the card to make sense. ``arch`` is the least
    architecture with the features used, empty for any; ``needs`` what must hold before it is tried; ``proof`` what
    shows that it took effect: metrics, instructions, launches or times. ``conflicts`` and ``combines`` name cards.
    """

    name: str
    title: str
    tier: Tier
    category: str
    cells: tuple[Cell, ...]
    languages: tuple[Language, ...]
    helps: str
    hurts: str
    bottleneck: str
    mechanism: str
    disproof: str
    fallback: str
    expected_gain: float
    evidence: str
    source: Citation
    numerics: Numerics = Numerics.EXACT
    transform: Callable[[], Transform] | None = None
    presets: tuple[dict[str, Parameter], ...] = ()
    rewrite: str = ""
    cores: int = 1
    arch: str = ""
    needs: str = ""
    proof: str = ""
    conflicts: tuple[str, ...] = ()
    combines: tuple[str, ...] = ()

    @property
    def from_field(self) -> bool:
        """True when somebody has measured the technique: a regression is then re-checked before it is closed."""
        return self.evidence[0].isdigit() or self.evidence.startswith("field figure")

    def suits(self, position: Position, phase: Phase) -> bool:
        """True when the card belongs to the matrix cell; an unknown position matches every position."""
        return any(when is phase and position in (where, Position.UNKNOWN) for where, when in self.cells)


def cells(positions: str, phases: str = "early mid late plateau") -> tuple[Cell, ...]:
    """Every combination of positions and phases, given as words."""
    return tuple((Position(position), Phase(phase)) for position in positions.split() for phase in phases.split())

"""The words in which a signature is written: what has to have changed between a kernel and its parent, in opcodes.

Patterns are those of ``team.evidence.sass.opcodes.matches``; whether a clause holds is said in
``team.evidence.sass.clauses``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Arch = Literal["sm_80", "sm_90a", "sm_100a", "sm_120a"]


@dataclass(frozen=True)
class Grew:
    """More instructions of these kinds than before, and at least ``least``."""

    kinds: tuple[str, ...]
    least: int = 1


@dataclass(frozen=True)
class Shrank:
    """Fewer instructions of these kinds than before."""

    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Here:
    """At least ``least`` instructions of these kinds, whatever was there before: said beside something that grew."""

    kinds: tuple[str, ...]
    least: int = 1


@dataclass(frozen=True)
class Denser:
    """More of ``part`` for each of ``whole`` than before, by at least ``factor``. Unrolling does not change it.

    ``otherwise`` takes the place of ``whole`` where neither kernel has any of that.
    """

    part: tuple[str, ...]
    whole: tuple[str, ...]
    otherwise: tuple[str, ...] = ()
    factor: float = 1.1


@dataclass(frozen=True)
class More:
    """More of ``part`` than of ``than`` in the kernel itself."""

    part: tuple[str, ...]
    than: tuple[str, ...]


@dataclass(frozen=True)
class Hint:
    """Where these are, it cannot be told; where they are not, it is not there."""

    kinds: tuple[str, ...]


@dataclass(frozen=True)
class AllOf:
    """Every clause holds, in the same kernel."""

    clauses: tuple["Clause", ...]


@dataclass(frozen=True)
class AnyOf:
    """At least one clause holds."""

    clauses: tuple["Clause", ...]


Clause = Grew | Shrank | Here | Denser | More | Hint | AllOf | AnyOf


@dataclass(frozen=True)
class Signature:
    """What shows a method, by architecture. ``whole``: all functions of a module count together, else one of them
    must show it."""

    clauses: Mapping[Arch, Clause]
    whole: bool = False


def grew(*kinds: str, least: int = 1) -> Grew:
    """See ``Grew``."""
    return Grew(kinds, least)


def shrank(*kinds: str) -> Shrank:
    """See ``Shrank``."""
    return Shrank(kinds)


def here(*kinds: str) -> Here:
    """See ``Here``."""
    return Here(kinds)


def both(*clauses: Clause) -> AllOf:
    """See ``AllOf``."""
    return AllOf(clauses)


def either(*clauses: Clause) -> AnyOf:
    """See ``AnyOf``."""
    return AnyOf(clauses)


def hint(*kinds: str) -> Hint:
    """See ``Hint``."""
    return Hint(kinds)


def everywhere(clause: Clause, whole: bool = False) -> Signature:
    """The same on all architectures of the table."""
    return Signature(dict.fromkeys(("sm_80", "sm_90a", "sm_100a", "sm_120a"), clause), whole)


def since_hopper(clause: Clause, sm_80: Clause | None = None) -> Signature:
    """The same from sm_90a on, and another clause or none before."""
    before: dict[Arch, Clause] = {} if sm_80 is None else {"sm_80": sm_80}
    return Signature(before | dict.fromkeys(("sm_90a", "sm_100a", "sm_120a"), clause))

"""A role's taste: which changes it looks for first. Explorer and exploiter differ by this data and by nothing else."""

from dataclasses import dataclass

from protocol.messages import Role
from roles.techniques.card import Tier


@dataclass(frozen=True)
class Taste:
    """How a role chooses. ``temperature`` is the scale of the random part added to expected log gains."""

    role: Role
    tiers: frozenset[Tier]
    temperature: float
    variants: int


def taste_of(role: Role) -> Taste:
    """The taste of a role."""
    from roles.exploiter import EXPLOITER
    from roles.explorer import EXPLORER

    return {Role.EXPLORER: EXPLORER, Role.EXPLOITER: EXPLOITER}[role]

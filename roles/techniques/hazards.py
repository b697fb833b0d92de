"""What can go wrong with a technique that a correct output does not show: the tools of compute-sanitizer to ask.

By category of the technique's card. Whoever shares memory between threads may race and may wait at a barrier that not
everybody reaches; whoever stages or splits may read what nobody wrote; whoever changes an address may miss the buffer.
"""

from collections.abc import Mapping

from protocol.methods import Tool
from roles.techniques.card import Card

ALL: tuple[Tool, ...] = ("memcheck", "racecheck", "initcheck", "synccheck")
_ADDRESSES: tuple[Tool, ...] = ("memcheck",)
_SHARING: tuple[Tool, ...] = ("memcheck", "racecheck", "synccheck")
_PARTS: tuple[Tool, ...] = ("memcheck", "racecheck", "initcheck")

HAZARDS: Mapping[str, tuple[Tool, ...]] = {
    "pipelining": ALL,
    "matrix-instructions": ALL,
    "register-blocking": ALL,
    "producer-consumer": ALL,
    "data-volume": ALL,
    "fusion": ALL,
    "shared-memory": _SHARING,
    "reductions": _SHARING,
    "parallel-decomposition": _PARTS,
    "block-schedule": _PARTS,
    "decomposition": _PARTS,
    "register-caching": _PARTS,
    "layout": _ADDRESSES,
    "vectorised-access": _ADDRESSES,
    "vector-math": _ADDRESSES,
    "cache-hints": _ADDRESSES,
    "aliasing": _ADDRESSES,
    "dispatch": _ADDRESSES,
    "invariants": _ADDRESSES,
    "knobs": _ADDRESSES,
    "occupancy": _ADDRESSES,
    "unrolling": _ADDRESSES,
}


def tools_for(card: Card | None) -> tuple[Tool, ...]:
    """The tools for a technique; all of them for an idea that has no card, of which nobody knows what it does."""
    return ALL if card is None else HAZARDS.get(card.category, ALL)

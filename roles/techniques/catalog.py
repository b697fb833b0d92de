"""All cards, and looking them up."""

from collections.abc import Iterable
from functools import lru_cache

from protocol.messages import Category, Phase, Position, Role
from roles.taste import taste_of
from roles.techniques import (
    cpp_structural,
    cpp_tuning,
    cuda_knowledge,
    cuda_layouts,
    cuda_moves,
    cuda_structural,
    cuda_tuning,
    triton_dots,
    triton_grouped,
    triton_hints,
    triton_launch,
    triton_persistent,
    triton_rows,
    triton_sizes,
    triton_warps,
)
from roles.techniques.card import Card, Language


@lru_cache(maxsize=1)
def all_cards() -> tuple[Card, ...]:
    """Every card; names are unique."""
    cards = (
        *cpp_structural.CARDS,
        *cpp_tuning.CARDS,
        *cuda_structural.CARDS,
        *cuda_moves.CARDS,
        *cuda_layouts.CARDS,
        *cuda_tuning.CARDS,
        *cuda_knowledge.CARDS,
        *triton_rows.CARDS,
        *triton_dots.CARDS,
        *triton_launch.CARDS,
        *triton_warps.CARDS,
        *triton_persistent.CARDS,
        *triton_hints.CARDS,
        *triton_grouped.CARDS,
        *triton_sizes.CARDS,
    )
    names = [card.name for card in cards]
    if len(set(names)) != len(names):
        raise ValueError(f"two cards share a name: {sorted(names)}")
    return cards


def card_named(name: str) -> Card | None:
    """The card of that name, None for an idea that has no card."""
    return next((card for card in all_cards() if card.name == name), None)


def cards_for(language: Language, position: Position, phase: Phase) -> tuple[Card, ...]:
    """Cards of one language that belong to a matrix cell."""
    return tuple(card for card in all_cards() if language in card.languages and card.suits(position, phase))


def categories(cards: Iterable[Card] | None = None) -> tuple[str, ...]:
    """Distinct categories, in catalog order."""
    return tuple(dict.fromkeys(card.category for card in (all_cards() if cards is None else cards)))


def pool(language: Language) -> tuple[Category, ...]:
    """What directions of a campaign in this language are made of: its categories, each with the role that looks there
    first, by the card that says most of it (one with a transform before one that holds knowledge alone)."""
    cards = [card for card in all_cards() if language in card.languages]
    return tuple(_category(name, [card for card in cards if card.category == name]) for name in categories(cards))


def _category(name: str, cards: list[Card]) -> Category:
    first = min(cards, key=lambda card: card.transform is None)
    explores = first.tier in taste_of(Role.EXPLORER).tiers
    return Category(name=name, role=Role.EXPLORER if explores else Role.EXPLOITER, about=first.title)

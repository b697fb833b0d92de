"""What the law is told of the catalog when a campaign starts: heavy lifts, the tactical sweep, figures from the field.

The tables are those of ``matrix`` and the cards; this only says them in the law's words.
"""

from protocol.messages import HeavyLift, Position, Strategy, SweepItem
from roles.techniques import matrix
from roles.techniques.card import Card, Language, Numerics
from roles.techniques.catalog import all_cards, card_named


def strategy_for(language: Language, numerics: str) -> Strategy:
    """What ``CampaignStarted`` carries for a campaign in this language with these numerics."""
    cards = {card.name: card for card in all_cards() if language in card.languages and _allowed(card, numerics)}
    return Strategy(
        heavy_lifts={position: _lifts(cards, position, language) for position in Position},
        sweep=tuple(_item(item) for item in matrix.sweep(language)),
        field_evidence={name: card.evidence for name, card in cards.items() if card.from_field},
    )


def _lifts(cards: dict[str, Card], position: Position, language: Language) -> tuple[HeavyLift, ...]:
    return tuple(
        HeavyLift(technique=lift.technique, category=cards[lift.technique].category, needs=lift.needs)
        for lift in matrix.heavy_lifts(position, language)
        if lift.technique in cards
    )


def _item(item: matrix.SweepItem) -> SweepItem:
    cards = [card_named(name) for name in item.techniques]
    categories = tuple(dict.fromkeys(card.category for card in cards if card is not None))
    return SweepItem(name=item.name, title=item.title, techniques=item.techniques, categories=categories)


def _allowed(card: Card, numerics: str) -> bool:
    return card.numerics is Numerics.EXACT or numerics != "strict"

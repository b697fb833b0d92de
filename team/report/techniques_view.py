"""The technique catalog for people: a table by tier and category, and one card in full."""

from collections.abc import Iterable

from rich.table import Table

from roles.techniques.card import Card
from roles.techniques.catalog import all_cards


def catalog_table(cards: Iterable[Card]) -> Table:
    """One row a card: name, what it is, languages, expected gain, and whether the built-in mind can make the edit."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("tier", "category", "technique", "what it is", "for", "gain", "edit"):
        table.add_column(column, overflow="fold", no_wrap=column in ("technique", "gain"))
    before = ""
    for card in sorted(cards, key=lambda each: (each.tier.value, each.category, each.name)):
        tier = card.tier.value if card.tier.value != before else ""
        before = card.tier.value
        made = "built in" if card.transform is not None else "by hand"
        table.add_row(
            tier, card.category, card.name, card.title, " ".join(card.languages), f"{card.expected_gain:+.2f}", made
        )
    return table


def card_in_full(card: Card) -> Table:
    """Every field that says something."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, text in _fields(card):
        if text:
            table.add_row(name, text)
    return table


def _fields(card: Card) -> list[tuple[str, str]]:
    places = dict.fromkeys(f"{where.value}/{when.value}" for where, when in card.cells)
    made = "made by the catalog mind" if card.transform is not None else "by a mind that edits itself"
    return [
        ("technique", f"{card.name}: {card.title}"),
        ("tier, category", f"{card.tier.value}, {card.category}"),
        ("languages", ", ".join(card.languages)),
        ("architecture", card.arch or "any"),
        ("cells", ", ".join(places)),
        ("helps", card.helps),
        ("hurts", card.hurts),
        ("prerequisites", card.needs),
        ("bottleneck", card.bottleneck),
        ("mechanism", card.mechanism),
        ("expected gain", f"{card.expected_gain:+.2f} (natural logarithm of the speedup, where it applies)"),
        ("numerics", card.numerics.value),
        ("proof", card.proof),
        ("disproof", card.disproof),
        ("evidence", card.evidence),
        ("conflicts with", ", ".join(card.conflicts)),
        ("combines with", ", ".join(card.combines)),
        ("otherwise", card.fallback),
        ("source", f"{card.source.title}, {card.source.locator}"),
        ("edit", made),
    ]


def card_as_data(card: Card) -> dict[str, object]:
    """The same fields for a program."""
    return {"name": card.name, **{name: text for name, text in _fields(card) if text}}


def cards_for_language(language: str) -> list[Card]:
    """The cards of one language; all of them for an empty one."""
    return [card for card in all_cards() if not language or language in card.languages]

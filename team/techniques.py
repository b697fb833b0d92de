"""``kernelteam techniques``: the catalog by tier and category, or one card in full."""

import json
from difflib import get_close_matches

from rich.table import Table

from roles.techniques.catalog import all_cards, card_named
from team.errors import UserError
from team.report.techniques_view import card_as_data, card_in_full, cards_for_language, catalog_table

LANGUAGES = ("cpp", "cuda", "triton")


def listed(language: str, as_json: bool) -> Table | str:
    """The cards of a language, or all."""
    if language and language not in LANGUAGES:
        raise UserError(f"There is no language '{language}'.", f"Choose one of: {', '.join(LANGUAGES)}.")
    cards = cards_for_language(language)
    return json.dumps([card_as_data(each) for each in cards], indent=2) if as_json else catalog_table(cards)


def one(name: str, as_json: bool) -> Table | str:
    """One card; an unknown name is answered with the nearest known ones."""
    card = card_named(name)
    if card is None:
        near = get_close_matches(name, [each.name for each in all_cards()], n=3, cutoff=0.4)
        hint = f"Did you mean {' or '.join(near)}?" if near else "List them with: kernelteam techniques"
        raise UserError(f"There is no technique '{name}'.", hint)
    return json.dumps(card_as_data(card), indent=2) if as_json else card_in_full(card)

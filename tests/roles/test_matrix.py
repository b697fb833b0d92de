"""The strategy matrix: complete, and in names that the catalog knows."""

import pytest

from protocol.messages import Phase, Position
from roles.techniques.catalog import card_named
from roles.techniques.matrix import HEAVY_LIFTS, MOVES, SWEEP, SWEEP_ON_CPU, heavy_lifts, moves, sweep

PLACES = [position for position in Position if position is not Position.UNKNOWN]


def test_every_cell_is_filled_with_known_techniques() -> None:
    assert set(MOVES) == {(position, phase) for position in PLACES for phase in Phase}
    names = {name for listed in MOVES.values() for name in listed}
    names |= {each.technique for lifts in HEAVY_LIFTS.values() for each in lifts}
    names |= {name for item in SWEEP for name in item.techniques}
    assert sorted(name for name in names if card_named(name) is None) == []


@pytest.mark.parametrize("language", ["cpp", "cuda", "triton"])
@pytest.mark.parametrize("position", Position)
def test_every_position_has_heavy_lifts_for_every_language(language, position) -> None:
    lifts = heavy_lifts(position, language)
    assert lifts
    assert len({each.technique for each in lifts}) == len(lifts)
    for each in lifts:
        card = card_named(each.technique)
        assert card is not None
        assert language in card.languages
        assert each.needs
    if language == "cuda":
        assert all(moves(position, phase, language) for phase in Phase)


def test_position_and_phase_name_the_cell_whose_moves_are_given_in_its_order() -> None:
    for (position, phase), names in MOVES.items():
        given = [moves(position, phase, language) for language in ("cpp", "cuda", "triton")]
        assert {name for each in given for name in each} == set(names)
        assert all(each == tuple(name for name in names if name in each) for each in given)


def test_the_sweep_keeps_its_order_and_its_language() -> None:
    assert [each.name for each in sweep("cuda")] == [each.name for each in SWEEP]
    assert sweep("cpp") == SWEEP_ON_CPU
    names = [name for item in SWEEP_ON_CPU for name in item.techniques]
    assert [name for name in names if (card := card_named(name)) is None or "cpp" not in card.languages] == []

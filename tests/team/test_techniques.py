"""``kernelteam techniques``: the whole catalog, one card in full, and a sentence for what is not in it."""

import json

import pytest
from typer.testing import CliRunner

from roles.techniques.catalog import all_cards
from team.cli import app
from team.errors import UserError
from team.techniques import listed, one


def shown(*words: str) -> str:
    done = CliRunner().invoke(app, ["techniques", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_list_names_every_card_of_the_language() -> None:
    text = shown("--language", "cuda")
    assert [card.name for card in all_cards() if "cuda" in card.languages and card.name not in text] == []
    assert "omp_parallel" not in text
    assert len(all_cards()) >= 65


def test_a_card_shows_all_that_it_says() -> None:
    text = shown("async_staging")
    for word in ("sm_80", "LDGSTS", "software_pipeline", "wide_staging", "pipelining", "docs.nvidia.com"):
        assert word in text


def test_json_is_json() -> None:
    assert json.loads(shown("--json", "split_depth"))["conflicts with"] == "persistent_grid"
    assert len(json.loads(shown("--json"))) == len(all_cards())


def test_unknown_names_are_answered_with_known_ones() -> None:
    with pytest.raises(UserError, match="async_staging"):
        one("asinc_staging", False)
    with pytest.raises(UserError, match="cpp, cuda, triton"):
        listed("fortran", False)


def test_cards_name_only_cards() -> None:
    names = {card.name for card in all_cards()}
    assert {other for card in all_cards() for other in (*card.conflicts, *card.combines)} <= names

"""Every rule has a row that breaks it, every row still stands in its file, and ``docs/rules.md`` names them all."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch):
    """The module that holds the table of mutations."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import mutate_law

    yield mutate_law
    del sys.modules["mutate_law"]


def named() -> list[str]:
    rows = [line for line in (ROOT / "docs" / "rules.md").read_text().splitlines() if line.startswith("| ")]
    return [name for line in rows for name in re.findall(r"`([^`]+)`", line.split(" | ")[1])]


def test_every_row_stands_once_in_its_file(table) -> None:
    assert table.misplaced(table.MUTATIONS) == []
    assert [row.rule for row in table.MUTATIONS if not (ROOT / row.tests).exists()] == []
    assert [row.rule for row in table.MUTATIONS if row.old == row.new] == []


def test_the_document_names_every_row_and_no_other(table) -> None:
    assert [name for name, count in Counter(row.rule for row in table.MUTATIONS).items() if count > 1] == []
    assert {row.rule for row in table.MUTATIONS} - set(named()) == set()
    assert set(named()) - {row.rule for row in table.MUTATIONS} == set()
    assert [name for name, count in Counter(named()).items() if count > 1] == []

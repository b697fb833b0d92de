"""Who is asked before a campaign starts, and what starts when there is nobody to ask."""

import pytest

from roles.minds.registry import is_free, mind_names
from team.console import confirmed
from team.errors import UserError


def test_without_a_terminal_free_minds_start_and_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert confirmed(["catalog", "scripted:moves.json"], terminal=False)
    assert "without asking" in capsys.readouterr().out


@pytest.mark.parametrize("costly", [name for name in mind_names() if not is_free(name)])
def test_without_a_terminal_nothing_that_costs_money_starts(costly: str) -> None:
    with pytest.raises(UserError, match="Nobody can confirm") as refusal:
        confirmed(["catalog", costly], terminal=False)
    assert "--yes" in str(refusal.value.remedy)


def test_a_person_at_a_terminal_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(question: str, default: bool) -> bool:
        asked.append(question)
        return not default

    monkeypatch.setattr("team.console.typer.confirm", answer)
    assert not confirmed(["catalog"], terminal=True)
    assert asked == ["Start?"]

"""What an agent lends to its mind: folders that are gone afterwards, and a look at editable files alone."""

from pathlib import Path

import pytest

from protocol.messages import Measurement, Outcome
from team.workshop import AgentWorkshop
from team.workspace.hub import Hub


@pytest.fixture
def looked() -> list[str]:
    return []


@pytest.fixture
def workshop(hub: Hub, tmp_path: Path, looked: list[str]) -> AgentWorkshop:
    def look(tree: Path) -> Measurement:
        looked.append((tree / "kernel.cpp").read_text())
        return Measurement(outcome=Outcome.MEASURED)

    return AgentWorkshop(hub, tmp_path / "place", tmp_path / "kept", look, lambda call: None, ("kernel.cpp",))


def left(place: Path) -> list[Path]:
    return list(place.glob("try-*"))


def spoil(workshop: AgentWorkshop, base: str) -> None:
    with workshop.laid_out(base) as folder:
        assert (folder / "kernel.cpp").is_file()
        assert not (folder / ".git").exists()
        (folder / "junk").write_text("")
        raise ZeroDivisionError


def test_a_folder_is_gone_afterwards_whatever_happened_in_it(workshop: AgentWorkshop, hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        spoil(workshop, hub.main)
    assert left(tmp_path / "place") == []
    with workshop.laid_out(hub.main) as folder:
        assert not (folder / "junk").exists()


def test_a_look_sees_the_change_and_leaves_nothing(
    workshop: AgentWorkshop, hub: Hub, tmp_path: Path, looked: list[str]
) -> None:
    assert workshop.check(hub.main, {"kernel.cpp": "// new\n"}).outcome is Outcome.MEASURED
    assert looked == ["// new\n"]
    assert left(tmp_path / "place") == []


@pytest.mark.parametrize("path", ["reference.py", "../outside", "/tmp/outside", "kernel.cpp/../task.toml"])
def test_a_look_at_a_file_that_is_not_editable_is_refused(
    workshop: AgentWorkshop, hub: Hub, tmp_path: Path, looked: list[str], path: str
) -> None:
    said = workshop.check(hub.main, {"kernel.cpp": "// new\n", path: "x"})
    assert said.outcome is Outcome.BUILD_FAILED
    assert path in said.detail
    assert looked == []
    assert not (tmp_path / "outside").exists()

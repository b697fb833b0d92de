"""What an agent lends to its mind: folders that are gone afterwards, and a look at editable files alone."""

import json
import logging
import shutil
from pathlib import Path

import pytest
from repositories import git

from protocol.messages import Build, Measurement, Outcome
from team.devices import discover
from team.judge.client import Judge
from team.judge.request import Check
from team.workshop import AgentWorkshop
from team.workspace.hub import Hub


@pytest.fixture
def looked() -> list[str]:
    return []


@pytest.fixture
def workshop(hub: Hub, tmp_path: Path, looked: list[str]) -> AgentWorkshop:
    def look(tree: Path) -> Measurement:
        looked.append((tree / "kernel.cpp").read_text())
        if "broken" in looked[-1]:
            return Measurement(outcome=Outcome.BUILD_FAILED, detail="expected ';'")
        built = Build(compiler="g++", flags=(), seconds=1.0, artifact="a" * 64)
        return Measurement(outcome=Outcome.MEASURED, candidate_build=built)

    place, kept, cache = tmp_path / "place", tmp_path / "kept", tmp_path / "cache"
    return AgentWorkshop(hub, place, kept, look, lambda call: None, ("kernel.cpp",), cache)


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


def test_machine_code_is_of_the_change_and_what_there_is_none_of_is_said(
    workshop: AgentWorkshop, hub: Hub, tmp_path: Path, looked: list[str]
) -> None:
    def said(text: str) -> str:
        return workshop.machine_code(hub.main, {"kernel.cpp": text}, "", 1)

    assert "build_failed: expected ';'" in said("// broken\n")
    assert "does not keep it any more" in said("// new\n")
    assert looked == ["// broken\n", "// new\n"]
    kept = tmp_path / "cache" / "key"
    kept.mkdir(parents=True)
    (kept / "manifest.json").write_text(json.dumps({"artifact": "a" * 64}))
    (kept / "artifact").write_bytes(b"no code of a GPU")
    assert "holds no machine code for a GPU" in said("// new\n")
    assert left(tmp_path / "place") == []


@pytest.mark.gpu
def test_machine_code_of_what_the_judge_built(tmp_path: Path, every_gpu: None) -> None:
    user = tmp_path / "user"
    shutil.copytree(Path(__file__).parents[3] / "examples" / "softmax_cuda", user)
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "a task")):
        git(user, *words)
    hub, device = Hub.create(tmp_path / "run", user), discover("cuda", 1)[0]
    scratch = tmp_path / "scratch"
    with Judge(device, scratch) as judge:

        def look(tree: Path) -> Measurement:
            return judge.check(Check(task=str(user), tree=str(tree)))

        kept = tmp_path / "kept"
        workshop = AgentWorkshop(hub, scratch / "workshop", kept, look, lambda call: None, (), scratch / "cache")
        said = workshop.machine_code(hub.main, {}, "", 1)
    logging.getLogger(__name__).info("%s", said[:2000])
    assert said.startswith("sm_")
    assert "EXIT" in said

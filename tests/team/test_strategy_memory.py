"""The strategy memory on disk: written twice, by two at once, broken, exported, and made to forget."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from protocol.memory import Evidence, Place
from protocol.policy import Policy
from team.memory import MemoryBroken, StrategyMemory, advice_for

HERE = Place(operator="softmax", language="cpp", arch="x86_64-avx2", dims="cols=10")
WRITER = """
import sys
from pathlib import Path
from protocol.memory import Evidence, Place
from team.memory import StrategyMemory
memory, place = StrategyMemory(Path(sys.argv[1])), Place.model_validate_json(sys.argv[2])
for number in range(40):
    one = Evidence(campaign=sys.argv[3], experiment=f"x{number}", stage="judged", technique="tile", category="loops",
                   change="tile", positive=True)
    assert memory.learn(place, [one]) == 1
"""


def evidence(campaign: str = "c1", stage: str = "judged", technique: str = "tile", **more: object) -> Evidence:
    words = {"experiment": "x1", "category": "loops", "change": "tile it", "positive": True, "gain": 0.1}
    return Evidence.model_validate({"campaign": campaign, "stage": stage, "technique": technique, **words, **more})


@pytest.fixture
def memory(tmp_path: Path) -> StrategyMemory:
    return StrategyMemory(tmp_path / "data" / "memory.sqlite")


def test_evidence_is_learnt_once_and_recalled_at_its_place_alone(memory: StrategyMemory) -> None:
    both = [evidence(), evidence(stage="landed")]
    assert memory.recall(HERE) == []
    assert memory.learn(HERE, both) == 2
    assert memory.learn(HERE, both) == 0
    assert memory.recall(HERE) == both
    for change in ({"operator": "x"}, {"language": "cuda"}, {"arch": "sm_90"}, {"dims": "cols=12"}):
        assert memory.recall(HERE.model_copy(update=change)) == []


def test_what_is_forgotten_is_not_learnt_again(memory: StrategyMemory) -> None:
    memory.learn(HERE, [evidence(), evidence("c2"), evidence("c1", technique="unroll", experiment="x2")])
    assert memory.forget(campaign="c1", technique="tile") == 1
    assert memory.learn(HERE, [evidence()]) == 0
    assert {one.campaign + one.technique for one in memory.recall(HERE)} == {"c2tile", "c1unroll"}
    assert memory.forget() == 2
    assert memory.find() == []
    assert memory.learn(HERE, [evidence("c3")]) == 1


def test_looking_makes_no_file(memory: StrategyMemory) -> None:
    assert memory.find() == []
    assert memory.forget() == 0
    assert not memory.path.exists()


def test_the_export_holds_everything(memory: StrategyMemory) -> None:
    memory.learn(HERE, [evidence()])
    (one,) = json.loads(memory.export())
    assert one["operator"] == "softmax"
    assert one["technique"] == "tile"
    assert one["gain"] == 0.1


def test_two_campaigns_write_at_once(memory: StrategyMemory) -> None:
    command = [sys.executable, "-c", WRITER, str(memory.path), HERE.model_dump_json()]
    writers = [subprocess.Popen([*command, name], stderr=subprocess.PIPE) for name in ("c1", "c2")]
    said = [writer.communicate(timeout=60)[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], said
    assert len(memory.recall(HERE)) == 80


def test_a_broken_file_gives_no_advice_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELTEAM_HOME", str(tmp_path))
    path = tmp_path / "memory.sqlite"
    path.write_bytes(b"this is no database, and long enough to be one" * 100)
    given, note = advice_for(HERE, Policy())
    assert given == ()
    assert str(path) in note
    assert "goes on without advice" in note
    with pytest.raises(MemoryBroken, match="mv "):
        StrategyMemory().learn(HERE, [evidence()])


def test_advice_for_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELTEAM_HOME", str(tmp_path))
    assert "nothing is known" in advice_for(HERE, Policy())[1]
    bad = evidence(technique="bad", positive=False, experiment="x2")
    StrategyMemory().learn(HERE, [evidence(), evidence(stage="landed"), bad])
    given, note = advice_for(HERE, Policy())
    assert [(one.technique, one.word) for one in given] == [("tile", "prefer"), ("bad", "caution")]
    assert note == "1 to prefer, 1 with caution, from 1 earlier campaigns"

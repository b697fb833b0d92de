"""The command mind against real command lines."""

import json
import os
from pathlib import Path

import psutil
import pytest
from workshops import FolderWorkshop

from protocol.messages import Briefing, Chronicle, HeavyLift, Phase, Plan, Position, Recheck, Role
from roles.minds.command import CommandMind, CommandOptions
from roles.minds.mind import MindFailed, NothingToPropose
from roles.minds.registry import UnknownMind, check_mind
from roles.prompts import texts

SOURCE = "int one = 1;\n"
WORDS = dict.fromkeys(("bottleneck", "evidence", "change", "mechanism", "disproof", "fallback"), "words")
PLAN = {**WORDS, "technique": "t", "category": "loops", "expected_gain": 0.1, "cell": "unknown/early"}
EDIT = "echo 'int two = 2;' > kernel.cpp\n"


def told(**changes: object) -> Briefing:
    values = {
        "agent": "explorer-1", "role": Role.EXPLORER, "number": 0, "task": "t", "language": "cpp",
        "numerics": "reference", "editable": {"kernel.cpp": SOURCE}, "base": "b" * 40, "workloads": {"w": {"n": 3}},
        "phase": Phase.EARLY, "position": Position.UNKNOWN,
    }  # fmt: skip
    return Briefing.model_validate({**values, **changes})


def answer(**fields: object) -> str:
    return f"cat > $KERNELTEAM_ANSWER <<'J'\n{json.dumps(fields)}\nJ\n"


@pytest.fixture
def mind(tmp_path: Path):
    origin = tmp_path / "origin"
    origin.mkdir()
    (origin / "kernel.cpp").write_text(SOURCE)
    (origin / "reference.py").write_text("pass\n")

    def make(script: str, **options: object) -> CommandMind:
        (tmp_path / "mind.sh").write_text(script)
        read = CommandOptions.model_validate({"run": f"sh {tmp_path / 'mind.sh'}", "seconds": 30, **options})
        return CommandMind(read, FolderWorkshop(origin, tmp_path / "scratch"))

    return make


def scraps(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "scratch").iterdir() if path.name != "transcripts")


def test_its_edits_and_its_plan_become_a_proposal(mind, tmp_path: Path) -> None:
    proposal = mind(EDIT + answer(plan=PLAN, dollars=0.25)).propose(told())
    assert proposal.plan == Plan.model_validate(PLAN)
    assert proposal.variants[0].files == {"kernel.cpp": "int two = 2;\n"}
    assert proposal.dollars == 0.25
    assert scraps(tmp_path) == []


def test_the_duty_comes_on_stdin_and_as_files(mind, tmp_path: Path) -> None:
    script = f"cat > {tmp_path}/stdin; cp $KERNELTEAM_DUTY $KERNELTEAM_BRIEFING {tmp_path}\n"
    mind(script + EDIT + answer(plan=PLAN)).propose(told(refused=("no good",)))
    text = (tmp_path / "stdin").read_text()
    assert text == (tmp_path / "duty.md").read_text()
    assert "no good" in text
    assert f"{told().law.threshold:.1%}" in text
    assert Briefing.model_validate_json((tmp_path / "briefing.json").read_bytes()) == told(refused=("no good",))


def test_no_idea_is_no_failure(mind) -> None:
    with pytest.raises(NothingToPropose, match="all done") as said:
        mind(answer(nothing="all done", dollars=0.1)).propose(told())
    assert not isinstance(said.value, MindFailed)
    assert said.value.dollars == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo sorry; exit 3\n", "exit 3.*sorry"),
        (EDIT + "echo '{' > $KERNELTEAM_ANSWER\n", "wrong"),
        (EDIT + answer(plan={**PLAN, "change": ""}), "plan.change"),
        (answer(plan=PLAN), "no editable file"),
        (EDIT + "echo x > reference.py\n" + answer(plan=PLAN), "reference.py, which is not editable"),
        ("rm kernel.cpp\n" + answer(plan=PLAN), "removed kernel.cpp"),
        (EDIT + "ln -s /etc/passwd $KERNELTEAM_ANSWER\n", "no answer"),
    ],
)
def test_a_useless_answer_is_told_once_and_then_is_a_failure(mind, tmp_path: Path, script: str, says: str) -> None:
    counted = f"cat > {tmp_path}/told-$(ls {tmp_path} | grep -c told)\n"
    with pytest.raises(MindFailed, match=says) as failed:
        mind(counted + script, dollars=0.5).propose(told())
    assert failed.value.dollars == pytest.approx(1.0)
    assert "Your last answer" not in (tmp_path / "told-0").read_text()
    assert "Your last answer" in (tmp_path / "told-1").read_text()
    assert scraps(tmp_path) == []


def test_it_sees_the_keys_it_is_given_by_name_and_no_other(
    mind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN_KEY", "sesame-1")
    monkeypatch.setenv("OTHER_KEY", "sesame-2")
    script = f"env > {tmp_path}/env; env\n" + EDIT + answer(plan=PLAN)
    mind(script, keys=("GIVEN_KEY",)).propose(told())
    seen = (tmp_path / "env").read_text()
    assert "sesame-1" in seen
    assert "sesame-2" not in seen
    assert os.environ.get("HOME", "/root") not in seen.splitlines()
    (transcript,) = (tmp_path / "scratch" / "transcripts").iterdir()
    assert "sesame" not in transcript.read_text()
    assert "[key]" in transcript.read_text()


def test_at_its_deadline_it_is_killed_with_all_it_started(mind, tmp_path: Path) -> None:
    script = f"(setsid sh -c 'echo $$ > {tmp_path}/child; exec sleep 600') & sleep 600\n"
    with pytest.raises(MindFailed, match="was killed"):
        mind(script, seconds=1).propose(told())
    child = int((tmp_path / "child").read_text())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_a_search_brings_its_sources(mind) -> None:
    found = {
        "queries": ["q"], "sources": [{"title": "t", "locator": "https://example.org"}], "technique": "tiling",
        "category": "memory", "why": "because",
    }  # fmt: skip
    report = mind(answer(search=found, dollars=0.5)).research(told(), "s7")
    assert (report.id, report.technique, report.dollars) == ("s7", "tiling", 0.5)
    with pytest.raises(MindFailed):
        mind("exit 1\n").research(told(), "s7")


def test_a_recheck_and_research_bring_their_answers(mind, tmp_path: Path) -> None:
    duty = Recheck(id="k1", experiment="x1", technique="t", base="b" * 40)
    compared = [{"what": "alignment", "card": "16 bytes", "seen": "4 bytes", "holds": False}]
    report = mind(answer(check={"compared": compared, "suspect": "alignment"})).recheck(told(), duty)
    assert (report.id, report.technique, report.closes) == ("k1", "t", False)
    record = Chronicle(task="t", language="cpp", numerics="reference", floors={"cpu:0": 0.02}, threshold=0.01)
    found = [{"what": "tiles help", "why": "locality", "next": "larger tiles"}]
    script = f"ls -A > {tmp_path}/seen\n" + answer(insights=found, dollars=0.5)
    research = mind(script).reflect(record, "r1")
    assert (research.id, research.insights[0].next, research.dollars) == ("r1", "larger tiles", 0.5)
    assert (tmp_path / "seen").read_text() == ".kernelteam\n"
    for useless in (answer(nothing="no"), "exit 1\n"):
        with pytest.raises(MindFailed):
            mind(useless).recheck(told(), duty)
        with pytest.raises(MindFailed):
            mind(useless).reflect(record, "r1")


def test_what_is_due_is_told(mind) -> None:
    lift = HeavyLift(technique="fuse_everything", category="fusion", needs="one pass")
    text = texts.experiment_text(told(lifts=(lift,), warnings=("noise chasing",)))
    assert "fuse_everything (fusion); needs one pass" in text
    assert "noise chasing" in text


def test_a_repair_starts_from_what_failed(mind, tmp_path: Path) -> None:
    first = mind("echo 'int broken' > kernel.cpp\n" + answer(plan=PLAN)).propose(told())
    mended = mind(f"cp kernel.cpp {tmp_path}/seen\n" + EDIT + answer()).repair(told(), first, "expected ';'")
    assert (tmp_path / "seen").read_text() == "int broken\n"
    assert mended is not None
    assert mended.variants[0].files == {"kernel.cpp": "int two = 2;\n"}
    assert mind("exit 1\n").repair(told(), first, "expected ';'") is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "run: Field required"),
        ({"run": "no-such-program-anywhere"}, "no program 'no-such-program-anywhere'"),
        ({"run": "sh 'x"}, "run"),
        ({"run": "sh", "keys": ("UNSET_KEY_OF_NOBODY",)}, "UNSET_KEY_OF_NOBODY, which is not set"),
        ({"run": "sh", "depth": 3}, "depth"),
    ],
)
def test_wrong_options_are_found_before_a_campaign(options: dict[str, object], says: str) -> None:
    with pytest.raises(UnknownMind, match=says):
        check_mind("command", options)


def test_the_prompts_name_the_laws_numbers_and_no_others() -> None:
    law = told().law.model_copy(update={"threshold": 0.123, "worst_workload_loss": 0.456, "stuck_after": 789})
    assert "12.3%" in texts.experiment_text(told(law=law))
    assert "46%" in texts.experiment_text(told(law=law))
    assert "789" in texts.search_text(told(law=law))

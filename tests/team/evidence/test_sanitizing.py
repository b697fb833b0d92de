"""compute-sanitizer before a landing: what it says refuses one, what it did not check is not clean."""

import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.messages import Build, Measurement, Outcome, VerifyLanding
from protocol.methods import Sanitized
from roles.techniques.catalog import all_cards, card_named
from roles.techniques.hazards import ALL, HAZARDS, tools_for
from team.desk import Desk
from team.devices import discover
from team.duties import perform_verification
from team.judge.artifact import Artifact
from team.judge.build import Builder, Recipe
from team.judge.client import Judge
from team.judge.cuda.sanitize import findings_beyond
from team.judge.request import Compare, Sanitize
from team.tasks.task import load_task

GALLERY = Path(__file__).parents[2] / "gallery" / "cuda"
log = logging.getLogger(__name__)
SAYS = """\
#!/bin/sh
# stands for compute-sanitizer: what it says of a kernel is in a file beside the kernel, named after the tool
tool=$2
for word; do case $word in *.so) folder=${word%/*} ;; esac; done
echo "========= COMPUTE-SANITIZER"
cat "$folder/$tool"
grep -q "(1 error" "$folder/$tool" && exit 99
exit 0
"""
CLEAN = "========= ERROR SUMMARY: 0 errors\n"
QUIET = "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
RACE = (
    "========= Error: Race reported between Write access at racing(float *)+0xb0 in softmax.cu:35\n"
    "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n"
)


class Ready:
    """Builds nothing: the fake tool runs nothing either."""

    def build(self, recipe: Recipe) -> Artifact:
        return Artifact(Path(f"/ready/{recipe.main}"), Build(compiler="none", flags=(), seconds=0.0, artifact="0"))


def kernel(folder: Path, racecheck: str, memcheck: str = CLEAN) -> Artifact:
    folder.mkdir()
    (folder / "racecheck").write_text(racecheck)
    (folder / "memcheck").write_text(memcheck)
    (folder / "kernel.so").touch()
    return Artifact(folder / "kernel.so", Build(compiler="none", flags=(), seconds=0.0, artifact="0"))


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bin" / "compute-sanitizer"
    path.parent.mkdir()
    path.write_text(SAYS)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent), prepend=":")
    return path


def asked(candidate: Artifact, base: Artifact) -> dict[str, Sanitized]:
    device: Any = SimpleNamespace(target="90a", id="GPU-0")
    builders = cast(tuple[Builder, Builder], (Ready(), Ready()))
    task = load_task(GALLERY / "task")
    return {
        one.tool: one for one in findings_beyond(task, (candidate, base), device, builders, ("memcheck", "racecheck"))
    }


@pytest.mark.usefixtures("tool")
def test_a_finding_is_told_with_its_place_and_the_rest_is_clean(tmp_path: Path) -> None:
    said = asked(kernel(tmp_path / "racing", RACE), kernel(tmp_path / "base", QUIET))
    assert said["racecheck"].status == "found"
    assert "racing(float *)" in said["racecheck"].findings[0]
    assert said["memcheck"] == Sanitized(tool="memcheck", status="clean")


@pytest.mark.usefixtures("tool")
def test_what_the_base_shows_as_well_is_nobodys_finding_and_not_clean_either(tmp_path: Path) -> None:
    said = asked(kernel(tmp_path / "racing", RACE), kernel(tmp_path / "base", RACE))["racecheck"]
    assert said.status == "unchecked"
    assert said.why.startswith("it says so of the base, too: ")


@pytest.mark.usefixtures("tool")
def test_a_tool_that_gave_no_summary_has_checked_nothing(tmp_path: Path) -> None:
    said = asked(kernel(tmp_path / "racing", "the device ran out of memory\n"), kernel(tmp_path / "base", QUIET))
    assert said["racecheck"].status == "unchecked"
    assert "no summary" in said["racecheck"].why


def test_without_the_tool_everything_is_unchecked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("team.judge.cuda.sanitize.shutil.which", lambda name: None)
    said = asked(kernel(tmp_path / "racing", RACE), kernel(tmp_path / "base", QUIET))
    assert {one.status for one in said.values()} == {"unchecked"}
    assert "compute-sanitizer is not on the PATH" in said["racecheck"].why


def test_tools_are_those_of_the_technique_and_all_of_them_for_an_idea_of_its_own() -> None:
    assert tools_for(card_named("wide_staging")) == ("memcheck",)
    assert set(tools_for(card_named("shuffle_tree"))) == {"memcheck", "racecheck", "synccheck"}
    assert tools_for(card_named("async_staging")) == tools_for(None) == ALL
    cards = [card for card in all_cards() if {"cuda", "triton"} & set(card.languages)]
    assert {card.category for card in cards} - set(HAZARDS) == set()


def desk_of(judge: Any, trusted: Path, trees: dict[str, Path]) -> Desk:
    """As much of a desk as a verification touches."""
    made = SimpleNamespace(judge=judge, trusted=trusted, device=SimpleNamespace(id="GPU-0"))
    made.snapshot = lambda commit: str(trees[commit])
    made.compare = lambda base, candidate, held_out: judge.compare(
        Compare(task=str(trusted), base=str(trees[base]), candidate=str(trees[candidate]), noise=None)
    )
    return cast(Desk, made)


class Told:
    """A judge that says what it is told to and remembers what it was asked."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.asked: list[Sanitize] = []

    def compare(self, request: Compare) -> Measurement:
        return Measurement(outcome=self.outcome)

    def sanitize(self, request: Sanitize) -> tuple[Sanitized, ...]:
        self.asked.append(request)
        return (Sanitized(tool="racecheck", status="found", findings=("Race reported",)),)


VERIFY = VerifyLanding(id="v1", experiment="x1", candidate="fast", main="main", technique="shuffle_tree")


def test_a_verification_asks_the_tools_of_its_technique_once_the_tree_is_correct() -> None:
    judge = Told(Outcome.MEASURED)
    trees = {"fast": Path("/fast"), "main": Path("/main")}
    body = perform_verification(desk_of(judge, Path("/task"), trees), VERIFY)
    assert [one.status for one in body.sanitized] == ["found"]
    (request,) = judge.asked
    assert (request.candidate, request.base) == ("/fast", "/main")
    assert set(request.tools) == {"memcheck", "racecheck", "synccheck"}
    wrong = Told(Outcome.INCORRECT)
    assert perform_verification(desk_of(wrong, Path("/task"), trees), VERIFY).sanitized == ()
    assert wrong.asked == []


@pytest.mark.gpu
def test_a_landing_with_a_planted_race_is_refused_with_the_tools_own_line(tmp_path: Path) -> None:
    """Correct and measured, and still not for main: the race never showed in an output."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "protocol"))
    from story import A, Story, plan, started

    from protocol import events as ev
    from protocol.landings import Settle, pending
    from protocol.messages import Verdict

    body = (GALLERY / "honest_body.cuh").read_text()
    trees = {"main": tmp_path / "main", "fast": tmp_path / "fast"}
    for name, exhibit in (("main", "honest/plain.cu"), ("fast", "sanitized/race.cu")):
        trees[name].mkdir()
        (trees[name] / "softmax.cu").write_text(body + (GALLERY / exhibit).read_text())
    with Judge(discover("cuda", 1)[0], tmp_path / "judge") as judge:
        made = perform_verification(desk_of(judge, GALLERY / "task", trees), VERIFY)
        clean = judge.sanitize(
            Sanitize(task=str(GALLERY / "task"), base=str(trees["main"]), candidate=str(trees["main"]), tools=ALL)
        )
    log.info("outcome %s; %s", made.measurement.outcome, made.sanitized)
    log.info("honest: %s", clean)
    assert made.measurement.outcome is Outcome.MEASURED
    assert {one.status for one in clean} == {"clean"}
    story: Story = started()
    ident = story.experiment(A, Verdict.KEEP, 0.05, plan("shuffle_tree"))
    story.prepare(ident)
    duty = story.ask("exploiter-1", VerifyLanding)
    report = made.model_copy(update={"duty": duty.id, "experiment": ident})
    story.say("exploiter-1", ev.LandingMeasured.model_validate(report.model_dump()))
    step = pending(story.state)
    assert isinstance(step, Settle)
    log.info("refused: %s", step.why)
    assert step.proof is None
    assert step.why.startswith("INCORRECT: compute-sanitizer racecheck: ")
    assert "racing" in step.why

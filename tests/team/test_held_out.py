"""Shapes that no mind is told of: in no tree and no briefing, and yet a landing is held to them."""

import subprocess
from pathlib import Path

import pytest
from held_out_on_disk import FAST, HELD, SECRET, TASK, kernel, write_task
from simulated import World

from protocol import events as ev
from protocol.briefing import briefing_of
from protocol.messages import Measurement, Outcome, Restart, Verdict, VerifyLanding, WorkloadCheck
from protocol.pairs import Pair
from protocol.verdict import judge as verdict_of
from roles.prompts.texts import experiment_text
from team.errors import UserError
from team.launch import needed_of, prepare, state_of
from team.scope import scope_of
from team.tasks.spec import HELD_OUT, read_spec
from team.tasks.task import load_task
from team.tasks.vetting.vetting import vet
from team.workshop import AgentWorkshop
from team.workspace.hub import Hub


def commit(folder: Path) -> None:
    for words in (("init", "-q", "-b", "trunk"), ("add", "."), ("commit", "-q", "-m", "a task")):
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        subprocess.run(["git", "-C", str(folder), *identity, *words], check=True)


def test_their_own_names_are_dropped_and_they_are_no_workloads(tmp_path: Path) -> None:
    spec = read_spec(write_task(tmp_path / "task"))
    assert [(one.name, one.dims) for one in spec.held_out] == [("held-out 1", {"n": int(SECRET)})]
    assert [one.name for one in spec.must_pass] == ["listed"]


def test_check_looks_at_them_too(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "task")
    sound = vet(folder)
    assert "held-out shapes, which landings and submissions are held to: 1" in sound.notes
    assert [finding for finding in sound.findings if "held-out 1" in finding.what and finding.kind != "no floor"] == []
    (folder / "reference.py").write_text(f"def reference(x, y, n):\n    y.copy_(x if n == {SECRET} else 2 * x)\n")
    copied = [finding.what for finding in vet(folder).findings if finding.kind == "copy"]
    assert ["held-out 1" in what for what in copied] == [True]


WRONG = {
    "in task.toml": (
        "task.toml",
        TASK + f'[[held_out]]\nname = "a"\ndims = {{ n = {SECRET} }}\n',
        "every mind may read it",
    ),
    "marked": ("task.toml", TASK.replace("60000 }", "60000 }\nheld_out = true"), "Move that workload to"),
    "listed as well": (HELD_OUT, HELD.replace(SECRET, "60000"), "is listed in task.toml as well"),
    "no dims": (HELD_OUT, HELD.replace("dims", "sizes"), "unknown key"),
    "empty": (HELD_OUT, "", "workloads"),
    "no TOML": (HELD_OUT, "[[", "is not valid TOML"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_them_is_one_sentence(case: str, tmp_path: Path) -> None:
    name, text, says = WRONG[case]
    folder = write_task(tmp_path / "task")
    (folder / name).write_text(text)
    with pytest.raises(UserError, match=says):
        read_spec(folder)


def leaks(*roots: Path) -> list[Path]:
    """Files that name the held-out shape, of trees that hold the task."""
    files = [path for root in roots for path in root.rglob("*") if path.is_file()]
    assert {"task.toml", "doubled.cpp"} <= {path.name for path in files}
    return [path for path in files if SECRET in path.read_text(errors="replace") or path.name == HELD_OUT]


def test_no_tree_that_a_mind_may_see_holds_them_and_what_judges_trust_does(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "task")
    commit(folder)
    hub = Hub.create(tmp_path / "run", folder)
    tree = hub.worktree("explorer-1")
    assert leaks(tree.folder) == []
    tree.reset(hub.main)
    assert leaks(tree.folder) == []
    tree.commit({"doubled.cpp": kernel(FAST)}, "faster", {}, ("doubled.cpp",))
    hub.landing().cherry_pick(tree.head())
    assert leaks(tree.folder, hub.landing().folder, hub.export(hub.main, tmp_path / "snapshots")) == []
    shop = AgentWorkshop(
        hub, tmp_path / "shop", tmp_path / "kept", lambda _: Measurement(outcome=Outcome.MEASURED), print,
        ("doubled.cpp",), tmp_path / "cache",
    )  # fmt: skip
    with shop.laid_out(hub.main) as place:
        assert leaks(place, tmp_path / "shop") == []
    hub.entrust(hub.main, tmp_path / "trusted")
    assert [one.dims["n"] for one in read_spec(tmp_path / "trusted").held_out] == [int(SECRET)]


@pytest.mark.slow
def test_no_briefing_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELTEAM_HOME", str(tmp_path / "home"))
    folder = write_task(tmp_path / "task")
    commit(folder)
    scope = scope_of(folder, "1", 1, None, None, 0)
    prepare(scope)
    assert read_spec(scope.run.trusted).held_out
    told = briefing_of(state_of(scope.run), "explorer-1", Hub.open(scope.run.folder).main)
    for text in (told.model_dump_json(), experiment_text(told)):
        assert "listed" in text
        assert SECRET not in text
        assert "held-out" not in text


def test_they_must_be_committed_like_the_rest_of_the_task(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "task")
    (folder / ".gitignore").write_text(f"{HELD_OUT}\n")
    commit(folder)
    with pytest.raises(UserError, match=f"git does not know these files of the task: {HELD_OUT}"):
        Hub.create(tmp_path / "run", folder, needed_of(read_spec(folder)))


def verification(world: World) -> tuple[str, VerifyLanding]:
    """The first landing that is to be verified."""
    world.tick()
    for _ in range(500):
        for name, agent in world.agents.items():
            if isinstance(agent.duty, VerifyLanding):
                return name, agent.duty
            world.step(name)
            world.tick(0.1)
    raise AssertionError("no landing in 500 steps")


def faster(restarts: tuple[Restart, ...]) -> tuple[Restart, ...]:
    """The same, with a candidate that gains a third in every pair."""
    return tuple(
        Restart.of(
            {
                name: [Pair(pair.candidate_first, pair.base_ns, pair.base_ns / 1.33) for pair in pairs]
                for name, pairs in restart.pairs.items()
            }
        )
        for restart in restarts
    )


@pytest.mark.parametrize(("speedup", "lands"), [(1.0, True), (0.5, False)])
def test_a_landing_that_loses_there_is_refused(speedup: float, lands: bool) -> None:
    world = World(seed=3)
    try:
        name, duty = verification(world)
        body = world._perform(world.agents[name], duty)
        assert isinstance(body, ev.LandingMeasured)
        assert body.measurement.outcome is Outcome.MEASURED
        pair = Pair(candidate_first=False, base_ns=1000.0, candidate_ns=1000.0 / speedup)
        held = tuple(Restart.of({"held-out 1": (pair, pair)}) for _ in range(4))
        check = WorkloadCheck(workload="held-out 1", checks=4, worst=0.0)
        update = {"held_out": held, "checks": (*body.measurement.checks, check)}
        seen = body.measurement.model_copy(update=update | {"restarts": faster(body.measurement.restarts)})
        before = world.coordination.state.main
        world.coordination.report(name, body.model_copy(update={"measurement": seen}))
        landed = world.coordination.state.landings.get(duty.experiment)
        assert landed is not None
        assert landed.measured is not None
        decision = landed.measured.decision
        assert decision is not None
        told, reason = verdict_of(landed.measured.measurement, decision, False, world.coordination.state.policy)
        assert "held-out 1" in decision.workloads
        assert (told is Verdict.KEEP) is lands, reason
        world.tick()
        assert (world.coordination.state.main != before) is lands
        assert lands or "slower on shapes that are not listed" in reason
    finally:
        world.close()


def test_a_held_out_shape_without_a_size_is_one_sentence_that_names_its_file(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    (task / HELD_OUT).write_text('[[workloads]]\nname = "bare"\ndims = { m = 3 }\n')
    with pytest.raises(UserError) as refused:
        load_task(task)
    assert "has no value for 'n'" in refused.value.what
    assert refused.value.remedy.endswith(f"in {HELD_OUT}.")

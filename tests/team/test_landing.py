"""The landing desk with real git: what reaches main, how, and that every step may be repeated after a crash."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from protocol import events as ev
from protocol.landings import Prepare, Settle
from protocol.messages import (
    Briefing,
    Estimate,
    Merge,
    Phase,
    Plan,
    Position,
    Resolution,
    ResolveMerge,
    Role,
)
from protocol.record import How, Proof
from protocol.state import ExperimentState
from roles.minds.catalog import CatalogMind
from roles.minds.mind import Mind
from roles.minds.scripted import ScriptedMind
from team.desk import Desk
from team.duties import perform_resolution
from team.landing import LandingDesk
from team.supply import Shared
from team.workspace.hub import Hub, NotForward

TEXT = "".join(f"// line {number}\n" for number in range(12))
EDITABLE = ("kernel.cpp",)


def estimate(gain: float) -> Estimate:
    return Estimate(gain=gain, low=gain - 0.01, high=gain + 0.01, pairs=16, restarts=4)


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    task = tmp_path / "user"
    task.mkdir()
    for name, text in (("task.toml", "name = 'x'\n"), ("kernel.cpp", TEXT), ("reference.py", "#\n")):
        (task / name).write_text(text)
    for words in (("init", "-q", "-b", "trunk"), ("add", "."), ("commit", "-q", "-m", "first")):
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        subprocess.run(["git", "-C", str(task), *identity, *words], check=True)
    return Hub.create(tmp_path / "run", task)


@pytest.fixture
def desk(hub: Hub) -> LandingDesk:
    return LandingDesk(hub, EDITABLE)


def experiment(hub: Hub, ident: str, text: str, parent: str = "") -> ExperimentState:
    words = dict.fromkeys(("bottleneck", "evidence", "mechanism", "disproof", "fallback", "category", "cell"), "words")
    plan = Plan(technique="unroll", change=f"change {ident}", expected_gain=0.1, **words)
    base = parent or hub.main
    commit = hub.commit(base, {"kernel.cpp": text}, f"change {ident}", {}, EDITABLE)
    hub.anchor(f"experiments/{ident}", commit)
    return ExperimentState(ident, "explorer-1", base, plan=plan, commit=commit, overall=estimate(0.1))


def edited(line: int, text: str = TEXT) -> str:
    return text.replace(f"// line {line}\n", f"// line {line}, faster\n")


def prepare(
    desk: LandingDesk, hub: Hub, one: ExperimentState, how: How = "cherry-pick", source: str = ""
) -> ev.LandingPrepared:
    (body,) = desk.carry_out(Prepare(one, hub.main, how, source or one.commit))
    assert isinstance(body, ev.LandingPrepared)
    return body


def settle(one: ExperimentState, prepared: ev.LandingPrepared) -> Settle:
    proof = Proof(one.id, prepared.candidate, prepared.main, prepared.how, estimate(0.1), ("v1",))
    return Settle(one, proof, "faster")


def text_of(hub: Hub, commit: str) -> str:
    return hub.read(EDITABLE, commit)["kernel.cpp"]


def test_two_changes_that_compose_land_one_after_the_other(desk: LandingDesk, hub: Hub) -> None:
    first, second = experiment(hub, "x1", edited(1)), experiment(hub, "x2", edited(10))
    for one in (first, second):
        prepared = prepare(desk, hub, one)
        assert (prepared.how, prepared.main) == ("cherry-pick", hub.main)
        (landed,) = desk.carry_out(settle(one, prepared))
        assert isinstance(landed, ev.Landed)
        assert (landed.commit, landed.before) == (hub.main, prepared.main)
    assert text_of(hub, hub.main) == edited(10, edited(1))
    assert [entry.subject for entry in hub.log(hub.main)][:2] == ["change x2", "change x1"]


def test_a_commit_on_main_says_which_experiment_it_was_and_what_it_gave(desk: LandingDesk, hub: Hub) -> None:
    prepared = prepare(desk, hub, experiment(hub, "x1", edited(1)))
    message = hub.git.text("log", "-1", "--format=%B", prepared.candidate)
    for trailer in (
        "Experiment: x1",
        "Technique: unroll",
        "Agent: explorer-1",
        "Speedup: 1.1052",
        "Interval: [1.0942, 1.1163]",
    ):
        assert trailer in message.splitlines()


@pytest.fixture
def conflicting(desk: LandingDesk, hub: Hub) -> ExperimentState:
    """A kept change of a line that main changed otherwise."""
    first = experiment(hub, "x1", edited(1))
    second = experiment(hub, "x2", TEXT.replace("// line 1\n", "// other\n"))
    desk.carry_out(settle(first, prepare(desk, hub, first)))
    return second


def test_a_conflict_is_said_with_its_files_and_changes_nothing(
    desk: LandingDesk, hub: Hub, conflicting: ExperimentState
) -> None:
    before = hub.main
    (body,) = desk.carry_out(Prepare(conflicting, hub.main, "cherry-pick", conflicting.commit))
    assert body == ev.LandingConflicted(experiment="x2", main=before, files=("kernel.cpp",))
    assert hub.main == before


def test_a_resolved_conflict_becomes_a_commit_on_main(
    desk: LandingDesk, hub: Hub, conflicting: ExperimentState
) -> None:
    text = edited(1).replace("faster", "faster and other")
    resolved = hub.commit(hub.main, {"kernel.cpp": text}, "both", {}, EDITABLE)
    prepared = prepare(desk, hub, conflicting, "resolved", resolved)
    assert prepared.how == "resolved"
    assert text_of(hub, prepared.candidate) == text
    assert "Technique: unroll" in hub.git.text("log", "-1", "--format=%B", prepared.candidate).splitlines()
    (landed,) = desk.carry_out(settle(conflicting, prepared))
    assert isinstance(landed, ev.Landed)
    assert (landed.how, hub.main) == ("resolved", prepared.candidate)


def test_a_merge_that_touches_other_files_than_the_editable_ones_does_not_land(
    desk: LandingDesk, hub: Hub, conflicting: ExperimentState
) -> None:
    smuggled = hub.commit(hub.main, {"reference.py": "cheat\n"}, "both", {}, (*EDITABLE, "reference.py"))
    (refused,) = desk.carry_out(Prepare(conflicting, hub.main, "resolved", smuggled))
    assert isinstance(refused, ev.LandingRefused)
    assert "reference.py" in refused.why


def test_a_change_that_nobody_can_merge_is_compared_as_a_whole_tree(
    desk: LandingDesk, hub: Hub, conflicting: ExperimentState
) -> None:
    prepared = prepare(desk, hub, conflicting, "whole tree")
    assert prepared.how == "whole tree"
    assert text_of(hub, prepared.candidate) == text_of(hub, conflicting.commit)
    assert hub.is_ancestor(hub.main, prepared.candidate)


def test_a_pair_goes_on_record_with_the_step_that_found_it(
    desk: LandingDesk, hub: Hub, conflicting: ExperimentState
) -> None:
    bad = ev.InteractsBadly(experiment="x2", others=("x1",), candidate="m", why="slower")
    told = desk.carry_out(Prepare(conflicting, hub.main, "whole tree", conflicting.commit, bad=(bad,)))
    assert told[0] == bad
    assert isinstance(told[1], ev.LandingPrepared)
    told = desk.carry_out(Settle(conflicting, None, "REVERT: slower", (bad,)))
    assert told == (bad, ev.LandingRefused(experiment="x2", why="REVERT: slower"))


def test_a_chain_of_kept_commits_lands_link_by_link(desk: LandingDesk, hub: Hub) -> None:
    first = experiment(hub, "x1", edited(1))
    second = experiment(hub, "x2", edited(10, edited(1)), parent=first.commit)
    for one in (first, second):
        prepared = prepare(desk, hub, one)
        assert prepared.how == "cherry-pick"
        desk.carry_out(settle(one, prepared))
    assert text_of(hub, hub.main) == edited(10, edited(1))


def test_a_link_lands_without_one_that_was_refused(desk: LandingDesk, hub: Hub) -> None:
    first = experiment(hub, "x1", edited(1))
    second = experiment(hub, "x2", edited(10, edited(1)), parent=first.commit)
    prepare(desk, hub, first)
    prepared = prepare(desk, hub, second)
    assert text_of(hub, prepared.candidate) == edited(10)


@pytest.mark.parametrize("text", [TEXT, edited(1)], ids=["nothing changes", "the same change again"])
def test_what_main_holds_already_is_refused(desk: LandingDesk, hub: Hub, text: str) -> None:
    first, again = experiment(hub, "x1", edited(1)), experiment(hub, "x2", text)
    desk.carry_out(settle(first, prepare(desk, hub, first)))
    (refused,) = desk.carry_out(Prepare(again, hub.main, "cherry-pick", again.commit))
    assert isinstance(refused, ev.LandingRefused)
    assert "already" in refused.why


def test_main_stands_still_without_a_proof(desk: LandingDesk, hub: Hub) -> None:
    one, before = experiment(hub, "x1", edited(1)), hub.main
    prepare(desk, hub, one)
    (refused,) = desk.carry_out(Settle(one, None, "REVERT: slower"))
    assert refused == ev.LandingRefused(experiment="x1", why="REVERT: slower")
    assert hub.main == before


def test_each_step_may_be_repeated_after_a_crash(desk: LandingDesk, hub: Hub) -> None:
    one = experiment(hub, "x1", edited(1))
    first, again = prepare(desk, hub, one), prepare(desk, hub, one)
    assert text_of(hub, first.candidate) == text_of(hub, again.candidate)
    step = settle(one, again)
    assert desk.carry_out(step) == LandingDesk(Hub.open(hub.run_dir), EDITABLE).carry_out(step)
    assert hub.main == again.candidate


def test_main_never_moves_sideways(desk: LandingDesk, hub: Hub) -> None:
    first, second = experiment(hub, "x1", edited(1)), experiment(hub, "x2", edited(10))
    one, two = prepare(desk, hub, first), prepare(desk, hub, second)
    desk.carry_out(settle(first, one))
    with pytest.raises(NotForward):
        desk.carry_out(settle(second, two))
    assert hub.main == one.candidate


def test_a_landing_worktree_that_somebody_deleted_is_made_again(desk: LandingDesk, hub: Hub) -> None:
    prepare(desk, hub, experiment(hub, "x1", edited(1)))
    subprocess.run(["rm", "-rf", str(hub.landing().folder)], check=True)
    assert prepare(desk, hub, experiment(hub, "x2", edited(2))).how == "cherry-pick"


class Talk:
    """A lead that knows the briefing of main; all that a resolution asks of it."""

    def briefing(self, base: str) -> Briefing:
        return Briefing(
            agent="a", role=Role.EXPLORER, number=0, task="t", language="cpp", numerics="reference", editable={},
            base=base, workloads={}, phase=Phase.EARLY, position=Position.UNKNOWN,
        )  # fmt: skip


def resolving(hub: Hub, mind: Mind, conflicting: ExperimentState) -> ev.MergeResolved:
    """What an agent with this mind reports on the conflict."""
    plan = conflicting.plan
    assert plan is not None
    duty = ResolveMerge(
        id="g1", experiment="x2", base=conflicting.base, candidate=conflicting.commit, main=hub.main,
        files=("kernel.cpp",), plan=plan,
    )  # fmt: skip
    device = SimpleNamespace(kernel_cores=[0])
    desk = SimpleNamespace(
        name="a", mind=mind, hub=hub, supply=Shared(), editable=EDITABLE, lead=Talk(), device=device, settings=4
    )
    return perform_resolution(cast(Desk, desk), duty)


def scripted(text: str, path: str = "kernel.cpp") -> ScriptedMind:
    return ScriptedMind([], {"unroll": Resolution(files={path: text}, how="by hand", dollars=0.25)})


def test_a_mind_sees_both_sides_and_its_text_becomes_a_commit_on_main(hub: Hub, conflicting: ExperimentState) -> None:
    seen: list[Merge] = []

    class Looking(ScriptedMind):
        def resolve(self, merge: Merge) -> Resolution:
            seen.append(merge)
            return super().resolve(merge)

    both = edited(1).replace("faster", "faster and other")
    mind = Looking([], {"unroll": Resolution(files={"kernel.cpp": both}, how="by hand", dollars=0.25)})
    said = resolving(hub, mind, conflicting)
    assert (said.why, said.dollars) == ("by hand", 0.25)
    assert text_of(hub, said.commit) == both
    assert hub.is_ancestor(hub.main, said.commit)
    (merge,) = seen
    assert merge.base == {"kernel.cpp": TEXT}
    assert merge.briefing.editable == {"kernel.cpp": edited(1)}
    assert merge.theirs == {"kernel.cpp": text_of(hub, conflicting.commit)}
    assert "+// line 1, faster" in merge.main_diff
    assert "+// other" in merge.their_diff


def test_a_mind_that_cannot_says_so(hub: Hub, conflicting: ExperimentState) -> None:
    said = resolving(hub, CatalogMind(), conflicting)
    assert said.commit == ""
    assert "overlap" in said.why


def test_a_resolution_may_touch_editable_files_only(hub: Hub, conflicting: ExperimentState) -> None:
    said = resolving(hub, scripted("cheat\n", "reference.py"), conflicting)
    assert said.commit == ""
    assert said.dollars == 0.25
    assert "not an editable file" in said.why

"""A branch of several methods: within the axis budget, on top of each other, and taken out one by one afterwards."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from optimizing import SLOW_LOOP, plan, read, write_inputs
from stand_in import StandIn, stood_in

from protocol.messages import AxisGaps, Briefing, Proposal
from roles.minds.mind import NothingToPropose
from roles.minds.scripted import ScriptedMind
from roles.techniques.catalog import all_cards, card_named
from team.errors import UserError
from team.optimize.ablation import ablate_champion
from team.optimize.iteration import iterate, left_behind
from team.optimize.options import Options
from team.optimize.records import axis_of

GAPS: dict[str, Any] = {"level": "counters", "gaps": AxisGaps(compute=0.2, memory=0.8, latency=0.0)}
WORTH = {"first": 0.20, "second": 0.10, "third": 0.0, "beside": 0.05}
MARKS = {name: f"// holds {name}\n" for name in WORTH}


def card_on(axis: str, place: int = 0) -> str:
    return [card.name for card in all_cards() if axis_of(card) == axis and card.transform is not None][place]


def worth(text: str) -> float:
    """Log gain of a text: every method that it holds adds its own."""
    return sum(WORTH[name] for name, mark in MARKS.items() if mark in text)


NORMALISE = """\
#include <cmath>
extern "C" void solve(const float* x, float* y, int n) {
    float total = 0.0f;
    for (int i = 0; i < n; i++) total += x[i] * x[i];
    for (int i = 0; i < n; i++) y[i] = std::exp(x[i]) / total;
}
"""


def options(folder: Path, kernel: str = SLOW_LOOP, **more: Any) -> Options:
    write_inputs(folder, kernel=kernel)
    given = {"baseline": folder / "scale.cpp", "ref": folder / "ref.py", "dims": {"n": 4096}}
    return Options.model_validate({**given, "mind": "noop", **more})


def mind(asked: list[Briefing], *techniques: str) -> ScriptedMind:
    """Its n-th method, with a second variant of the first; each adds its line where the others' are not."""

    def propose(briefing: Briefing) -> Proposal:
        asked.append(briefing)
        held = [name for name in ("first", "second", "third") if MARKS[name] in briefing.editable["scale.cpp"]]
        if len(held) == len(techniques):
            raise NothingToPropose("that is all", dollars=0.25)
        mark = MARKS[("first", "second", "third")[len(held)]]
        place = {0: "extern", 1: "    for", 2: "        volatile"}[len(held)]
        text = briefing.editable["scale.cpp"].replace(place, mark + place, 1)
        variants = [{"parameters": {"v": len(held)}, "files": {"scale.cpp": text}}]
        if not held:
            variants.append({"parameters": {"v": 9}, "files": {"scale.cpp": MARKS["beside"] + SLOW_LOOP}})
        return Proposal.model_validate({"plan": plan(techniques[len(held)]), "variants": variants, "dollars": 0.5})

    return ScriptedMind(propose)


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def begin(speed: Callable[[str], float] = worth, profile: dict[str, Any] = GAPS, **more: Any) -> Any:
        judge = StandIn(fresh=speed, race=speed)
        return stood_in(options(tmp_path, **more), judge, monkeypatch, profile)

    return begin


def test_branches_hold_different_sets_of_methods_and_the_champion_says_which(begun: Callable[..., Any]) -> None:
    techniques = card_on("memory"), card_on("memory", 1), card_on("compute")
    asked: list[Briefing] = []
    with begun(branches=3) as session:
        session.mind = mind(asked, *techniques)
        assert iterate(session, 1)
        ablate_champion(session)
        state, run = session.state, session.folder.path
    published = run / "iterv1"
    rows = read(published / "branch_results.json")["branches"]
    assert [row["methods"] for row in rows] == [[techniques[0]], [techniques[0]], list(techniques)]
    assert read(published / "branch_results.json")["champion"]["branch_index"] == 3
    assert [one["id"].partition(".")[2] for one in read(published / "methods.json")["methods"]] == list(techniques)
    assert state.history[0]["methods"] == list(techniques)
    assert (published / "kernel.cpp").read_text().count("// holds") == 3
    assert state.dollars == 1.5  # of all three answers

    # The second was asked for on the text of the first, and of axes that have room; nobody was asked for a fourth.
    assert MARKS["first"] in asked[1].editable["scale.cpp"]
    assert {techniques[0], card_on("latency")} <= set(asked[1].abandoned)
    assert card_on("compute") not in asked[1].abandoned
    assert card_on("memory", 2) in asked[2].abandoned
    assert len(asked) == 3

    # Each is taken out of the champion: the one that does nothing is named, and the others keep their gains.
    without = {row["method_id"]: row for row in read(published / "attribution.json")["champion_without_each"]}
    assert [row["contributed"] for row in without.values()] == [True, True, False]
    assert without[techniques[0]]["interval"]["speedup"] == pytest.approx(1.221, abs=0.01)
    assert [one["method"] for one in state.effective_methods] == list(techniques[:2])
    assert state.ineffective_methods == [techniques[2]]
    assert [(one.id, one.plan.technique) for one in state.experiments] == [
        ("iterv1", techniques[0]), ("iterv1-2", techniques[1]), ("iterv1-3", techniques[2]),
    ]  # fmt: skip
    assert state.experiments[1].base == state.experiments[0].commit


def test_of_four_branches_two_are_composed_and_the_shorter_stack_may_win(begun: Callable[..., Any]) -> None:
    techniques = card_on("memory"), card_on("memory", 1), card_on("compute")
    with begun(lambda text: worth(text) - (0.4 if MARKS["third"] in text else 0.0), branches=4) as session:
        session.mind = mind([], *techniques)
        assert iterate(session, 1)
        state = session.state
        rows = read(session.folder.iteration(1) / "branch_results.json")["branches"]
    assert [row["methods"] for row in rows] == [
        [techniques[0]], [techniques[0]], list(techniques[:2]), list(techniques),
    ]  # fmt: skip
    assert state.history[0]["methods"] == list(techniques[:2])
    assert [one.plan.technique for one in state.experiments] == list(techniques[:2])
    assert [len(one.screened) for one in state.experiments] == [3, 1]
    assert [one["parameters"] for one in state.frontier] == [
        {"v": 9}
    ]  # the first is in the champion, the last was slow


def test_a_composed_branch_that_loses_is_offered_from_the_frontier_and_its_methods_are_not_called_tried(
    begun: Callable[..., Any],
) -> None:
    techniques = card_on("memory"), card_on("memory", 1)
    with begun(lambda text: 0.3 if MARKS["beside"] in text else worth(text), branches=3) as session:
        session.mind = mind([], *techniques)
        assert iterate(session, 1)
        state, hub = session.state, session.hub
        offered = {tuple(one["parameters"].values()): one for one in state.frontier}
        assert [one.plan.technique for one in state.experiments] == [techniques[0]]
        assert state.history[0]["methods"] == [techniques[0]]
        assert set(offered) == {(0,), (0, 1)}
        assert hub.read(["scale.cpp"], state.experiments[0].commit)["scale.cpp"].startswith(MARKS["beside"])


@pytest.mark.parametrize(
    ("profile", "branches"),
    [(GAPS, 1), ({}, 3), ({**GAPS, "gaps": AxisGaps()}, 3)],
    ids=["one branch", "no counters", "unknown gaps"],
)
def test_without_room_or_evidence_there_is_one_change(
    profile: dict[str, Any], branches: int, begun: Callable[..., Any]
) -> None:
    asked: list[Briefing] = []
    with begun(profile=profile, branches=branches) as session:
        session.mind = mind(asked, card_on("memory"), card_on("memory", 1))
        assert iterate(session, 1)
        assert [row["methods"] for row in session.state.history] == [[card_on("memory")]]
    assert len(asked) == 1


@pytest.mark.parametrize("again", ["the same technique", "an axis without budget"])
def test_a_further_method_outside_of_the_budget_is_refused_and_the_idea_stands(
    again: str, begun: Callable[..., Any]
) -> None:
    first = card_on("memory")
    second = first if again == "the same technique" else card_on("latency")
    with begun(branches=3) as session:
        session.mind = mind([], first, second)
        assert iterate(session, 1)
        assert session.state.history[0]["methods"] == [first]
        assert session.state.dollars == 1.0  # the refused answer was paid as well
        assert read(session.folder.iteration(1) / "branch_results.json")["total_branches"] == 2


def test_strict_numerics_hold_for_every_method_of_a_stack(begun: Callable[..., Any]) -> None:
    """One that says of itself that it reorders is left out; what is left is compared bit by bit as a whole."""
    exact, reordering = card_on("memory"), "split_accumulator"
    with begun(branches=3, numerics_mode="strict") as session:
        session.mind = mind([], exact, reordering)
        assert iterate(session, 1)
        assert session.state.history[0]["methods"] == [exact]
        held = [kind for kind, _, _ in session.judge.asked if kind == "identical"]  # type: ignore[attr-defined]
    assert held == ["identical"]


def test_a_run_that_was_broken_off_goes_on_with_its_composed_branch(begun: Callable[..., Any]) -> None:
    techniques = card_on("memory"), card_on("memory", 1)
    asked: list[Briefing] = []
    with begun(branches=3) as session:
        session.mind = mind(asked, *techniques)
        judge = session.judge
        session.judge = None  # type: ignore[assignment]
        with pytest.raises(AttributeError):
            iterate(session, 1)
        session.judge, before = judge, len(asked)
        assert iterate(session, 1)
        assert len(asked) == before
        assert session.state.history[0]["methods"] == list(techniques)
        assert len(session.state.experiments) == 2


def test_the_built_in_mind_composes_what_its_cards_allow(begun: Callable[..., Any], tmp_path: Path) -> None:
    wide: dict[str, Any] = {"level": "counters", "gaps": AxisGaps(compute=0.5, memory=0.5)}
    with begun(lambda text: 0.001 * len(text), profile=wide, branches=4, mind="catalog", kernel=NORMALISE) as session:
        assert iterate(session, 1)
        made = session.state.history[0]["methods"]
        text = (session.folder.iteration(1) / "kernel.cpp").read_text()
    assert len(made) == len(set(made)) > 1
    axes = [axis_of(card_named(name)) for name in made]
    assert len(axes) <= 3
    assert all(axes.count(axis) <= 2 for axis in axes)
    assert set(axes) <= {"compute", "memory"}  # nothing is known of latency
    (tmp_path / "made.cpp").write_text(text)
    command = ["g++", "-fsyntax-only", "-fopenmp", "-march=native", str(tmp_path / "made.cpp")]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stderr == ""


def test_the_newest_single_method_is_not_measured_twice(begun: Callable[..., Any]) -> None:
    """Its iteration compared the champion with the champion without it: two trees, and one comparison of them."""
    with begun(profile={}, branches=1) as session:
        for number, technique in enumerate((card_on("memory"), card_on("memory", 1)), start=1):
            session.mind = mind([], *[technique] * number)
            assert iterate(session, number)
        before = len(session.judge.asked)  # type: ignore[attr-defined]
        ablate_champion(session)
        compared = session.judge.asked[before:]  # type: ignore[attr-defined]
        rows = read(session.folder.iteration(2) / "attribution.json")["champion_without_each"]
    assert len(compared) == 1
    assert [row["contributed"] for row in rows] == [True, True]
    assert [round(row["interval"]["speedup"], 1) for row in rows] == [1.2, 1.1]


def test_an_outcome_of_another_version_is_one_sentence(begun: Callable[..., Any]) -> None:
    with begun(profile={}, branches=1) as session:
        session.mind = mind([], card_on("memory"))
        assert iterate(session, 1)
        session.state.history.clear()  # as if the process had died before it took the iteration in
        kept = session.folder.iteration(1) / "outcome.json"
        kept.write_text(kept.read_text().replace('"technique":', '"method":'))
        with pytest.raises(UserError, match=r"outcome\.json cannot be read"):
            left_behind(session, 1)

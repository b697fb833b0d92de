"""Conflicts resolved without a language model: the plan carried out again, patches woven, and what neither can do."""

import difflib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels import EXAMPLES
from workshops import NoWorkshop

from protocol.messages import Briefing, Merge, Parameter, Phase, Plan, Position, ResolveMerge, Role
from roles.merger import reapplied, resolve_mechanically, weave, woven
from roles.minds.catalog import CatalogMind
from roles.minds.mind import CannotResolve
from roles.minds.registry import UnknownMind, make_mind
from roles.minds.scripted import NoChangeMind
from roles.techniques.catalog import all_cards
from roles.techniques.cpp.pragmas import OmpSimd
from roles.techniques.cpp.split_accumulator import SplitAccumulator

SUMS = """\
extern "C" void solve(const float* x, float* y, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        float total = 0.0f;
        for (int c = 0; c < cols; c++) {
            total += x[r * cols + c] * x[r * cols + c];
        }
        y[r] = total;
    }
}
"""


def plan(technique: str) -> Plan:
    words = dict.fromkeys(("bottleneck", "evidence", "change", "mechanism", "disproof", "fallback"), "words")
    return Plan(technique=technique, category="c", expected_gain=0.1, cell="balanced/early", **words)


def brief(editable: dict[str, str]) -> Briefing:
    return Briefing(
        agent="a", role=Role.EXPLORER, number=0, task="t", language="cpp", numerics="reference", editable=editable,
        base="m", workloads={}, phase=Phase.EARLY, position=Position.UNKNOWN,
    )  # fmt: skip


def merge(base: str, main: str, theirs: str, technique: str = "own idea", **parameters: Parameter) -> Merge:
    duty = ResolveMerge(
        id="g1", experiment="x2", base="b", candidate="c", main="m", files=("k.cpp",), plan=plan(technique),
        parameters=parameters,
    )  # fmt: skip
    return Merge(
        duty=duty,
        briefing=brief({"k.cpp": main}),
        base={"k.cpp": base},
        theirs={"k.cpp": theirs},
        main_diff="".join(difflib.unified_diff(base.splitlines(True), main.splitlines(True))),
        their_diff="".join(difflib.unified_diff(base.splitlines(True), theirs.splitlines(True))),
    )


def test_the_kept_technique_is_carried_out_again_on_mains_text() -> None:
    card = next(card for card in all_cards() if card.name == "split_accumulator")
    assert card.transform is not None
    transform = card.transform()
    (site,) = transform.applies(SUMS)
    theirs = transform.apply(SUMS, site, {"lanes": 8})
    main = SUMS.replace("c < cols; c++) {", "c < cols; c++) {  // of one row")
    assert weave(SUMS, main, theirs) is None, "the hunks overlap"
    found = reapplied(merge(SUMS, main, theirs, card.name, lanes=8, site=f"k.cpp:{site.key}"))
    assert found is not None
    (again,) = transform.applies(main)
    assert again.key != site.key
    assert found.files == {"k.cpp": transform.apply(main, again, {"lanes": 8})}
    assert found.files["k.cpp"] != transform.apply(main, again, {"lanes": 16})


def test_a_place_that_main_lost_cannot_be_changed_again() -> None:
    card = next(card for card in all_cards() if card.name == "split_accumulator")
    assert card.transform is not None
    (site,) = card.transform().applies(SUMS)
    main = 'extern "C" void solve(const float* x, float* y, int rows, int cols) { y[0] = x[0]; }\n'
    told = merge(SUMS, main, SUMS + "// theirs\n", card.name, site=f"k.cpp:{site.key}")
    assert reapplied(told) is None


@pytest.mark.parametrize("site", ["", "other.cpp:solve:1:a:b", "k.cpp"])
def test_parameters_that_name_no_place_are_not_guessed_at(site: str) -> None:
    assert reapplied(merge(SUMS, SUMS + "//\n", SUMS, "split_accumulator", site=site)) is None


LINES = "".join(f"line {n}\n" for n in range(6))


def test_neighbouring_lines_changed_by_both_are_woven() -> None:
    main, theirs = LINES.replace("line 2", "main 2"), LINES.replace("line 3", "their 3")
    found = woven(merge(LINES, main, theirs))
    assert found is not None
    assert found.files == {"k.cpp": LINES.replace("line 2", "main 2").replace("line 3", "their 3")}


@pytest.mark.parametrize(
    "theirs",
    [
        LINES.replace("line 2", "their 2"),
        LINES.replace("line 1\nline 2\n", "one\n"),
        LINES.replace("line 2\nline 3\n", ""),
    ],
)
def test_lines_changed_by_both_are_not_guessed_at(theirs: str) -> None:
    main = LINES.replace("line 2", "main 2")
    assert weave(LINES, main, theirs) is None
    with pytest.raises(CannotResolve, match="overlap"):
        CatalogMind().resolve(merge(LINES, main, theirs))


def test_two_insertions_at_one_place_have_no_order() -> None:
    main, theirs = LINES.replace("line 2\n", "line 2\nmain\n"), LINES.replace("line 2\n", "line 2\ntheirs\n")
    assert weave(LINES, main, theirs) is None
    assert weave(LINES, main, main) == main


@given(st.lists(st.sampled_from("abc"), max_size=12), st.data())
def test_weaving_keeps_both_sides(letters: list[str], data: st.DataObject) -> None:
    """With unchanged text on one side the other's comes out; with changes far apart both do."""
    base = "".join(f"{letter}\n" for letter in letters)
    other = "".join(f"{letter}\n" for letter in data.draw(st.lists(st.sampled_from("abcd"), max_size=12)))
    assert weave(base, base, other) == other
    assert weave(base, other, base) == other
    middle = "middle\n"
    both = weave(f"{base}{middle}tail\n", f"{base}{middle}other tail\n", f"{other}{middle}tail\n")
    assert both in (None, f"{other}{middle}other tail\n")


def test_nothing_to_bring_in_is_no_resolution() -> None:
    assert resolve_mechanically(merge(LINES, LINES.replace("line 2", "x"), LINES)) is None


def test_a_script_on_disk_is_a_mind(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    proposal = {"plan": plan("mine").model_dump(), "variants": [{"files": {"k.cpp": "text"}}]}
    resolution = {"files": {"k.cpp": "both"}, "how": "by hand"}
    path.write_text(json.dumps({"proposals": [proposal], "resolutions": {"mine": resolution}}))
    mind = make_mind(f"scripted:{path}", {}, NoWorkshop())
    assert mind.propose(brief({"k.cpp": "text"})).plan.technique == "mine"
    assert mind.resolve(merge(LINES, LINES, LINES, "mine")).files == {"k.cpp": "both"}
    with pytest.raises(CannotResolve, match="no resolution for another"):
        mind.resolve(merge(LINES, LINES, LINES, "another"))


@pytest.mark.parametrize("text", [None, "{", '{"proposals": [{"plan": 1}]}'])
def test_a_script_that_cannot_be_read_is_one_sentence(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "script.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UnknownMind, match=r"script\.json is no script"):
        make_mind(f"scripted:{path}", {}, NoWorkshop())


def test_the_mind_without_ideas_resolves_nothing() -> None:
    with pytest.raises(CannotResolve):
        NoChangeMind().resolve(merge(LINES, LINES, LINES))


def test_a_directive_is_not_woven_in_front_of_a_loop_that_is_no_longer_there() -> None:
    base = (EXAMPLES / "rmsnorm_cpu" / "rmsnorm.cpp").read_text()
    sites = {kind: kind().applies(base)[0] for kind in (OmpSimd, SplitAccumulator)}
    simd, split = (kind().apply(base, site, {}) for kind, site in sites.items())
    assert "#pragma omp simd reduction" in simd
    assert weave(base, split, simd) is None
    assert weave(base, simd, split) is None
    assert weave("a\nb\nc\n", "a\nb\nC\n", "#pragma x\na\nb\nc\n") == "#pragma x\na\nb\nC\n"
    assert weave("a\nb\n", "A\nb\n", "a\nB\n") == "A\nB\n"

"""The champion without one change: by a design's options, by lines, by a mind, or not at all and why."""

from pathlib import Path

import pytest

from protocol.messages import Briefing, Phase, Plan, Position, Resolution, Role
from roles.minds.mind import CannotResolve
from roles.minds.scripted import ScriptedMind
from roles.techniques.cuda.design import defaults, design_in, written
from roles.techniques.cuda.families import FAMILIES
from roles.techniques.cuda.matmul_tile import MATMUL_TILE
from team.evidence.removal import Change, Texts, by_mind, removed

EXAMPLE = Path(__file__).parents[3] / "examples" / "matmul_cuda"
WORDS = dict.fromkeys(("bottleneck", "evidence", "change", "mechanism", "disproof", "fallback", "category"), "words")
PLAN = Plan.model_validate({**WORDS, "technique": "block_swizzle", "expected_gain": 0.1, "cell": "balanced/early"})
START = "".join(f"line {number}\n" for number in range(8))


def change(before: str, after: str, champion: str, name: str = "k.cu") -> Change:
    texts: list[Texts] = [{name: text} for text in (before, after, champion)]
    return Change("x1", PLAN, texts[0], texts[1], texts[2], {})


def test_the_newest_change_is_taken_out_by_what_was_before_it() -> None:
    found = removed(change("old\n", "new\n", "new\n"))
    assert (dict(found.files), found.how) == ({"k.cu": "old\n"}, "the champion as it was before it")


def test_an_earlier_change_is_undone_line_by_line_and_later_ones_stay() -> None:
    after = START.replace("line 2", "fast 2")
    champion = after.replace("line 3", "later 3").replace("line 6", "later 6")
    found = removed(change(START, after, champion))
    assert found.files["k.cu"] == champion.replace("fast 2", "line 2")
    assert found.how == "undone line by line"


def test_what_later_changes_overwrote_needs_a_mind_and_is_absent_without_one() -> None:
    after = START.replace("line 2", "fast 2")
    tangled = change(START, after, after.replace("fast 2", "fast and later 2"))
    assert removed(tangled).files == {}
    assert "no mind was asked" in removed(tangled).how

    def refuses(asked: Change) -> Texts:
        raise CannotResolve("it is all one")

    assert removed(tangled, refuses).how == "no mind could write it: it is all one"
    found = removed(tangled, lambda asked: {"k.cu": "as it would be\n"})
    assert (dict(found.files), found.how) == ({"k.cu": "as it would be\n"}, "written by a mind")


def test_a_change_that_is_gone_already_leaves_nothing_to_take_out() -> None:
    after = START.replace("line 2", "fast 2")
    found = removed(change(START, after, START.replace("line 6", "later 6")))
    assert found.files == {}
    assert "nothing of it any more" in found.how


def test_a_file_that_came_with_the_change_cannot_be_taken_away() -> None:
    made = Change("x1", PLAN, {"k.cu": "a\n"}, {"k.cu": "a\n", "h.h": "b\n"}, {"k.cu": "a\n", "h.h": "b\n"}, {})
    assert removed(made).files == {}
    assert "added a file" in removed(made).how


@pytest.fixture(scope="module")
def designs() -> dict[str, str]:
    """A matmul as the catalog writes it: with its defaults, in bands, and in bands with other padding."""
    original = next(EXAMPLE.glob("*.cu")).read_text()
    kernel = next(MATMUL_TILE.problems(parse_of(original)))[0].name
    plain = defaults(MATMUL_TILE)
    listed = MATMUL_TILE.options
    turned = {"group": listed["group"][1]}
    later = {**turned, "pad": listed["pad"][1]}
    made = {
        name: written(MATMUL_TILE, original, kernel, {**plain, **setting})
        for name, setting in (
            ("before", {}),
            ("after", turned),
            ("champion", later),
            ("without", {"pad": later["pad"]}),
        )
    }
    assert all(made.values())
    return {name: text or "" for name, text in made.items()}


def parse_of(text: str):
    from roles.techniques.cpp.syntax import parse

    return parse(text, "cuda")


def test_a_design_is_written_anew_with_the_changes_own_option_put_back(designs: dict[str, str]) -> None:
    found = removed(change(designs["before"], designs["after"], designs["champion"]))
    assert found.how == "the design written anew with its options put back"
    assert found.files["k.cu"] == designs["without"]
    again = design_in(found.files["k.cu"], FAMILIES)
    assert again is not None
    assert again.setting["group"] == MATMUL_TILE.options["group"][0]


def test_a_mind_is_asked_as_it_is_for_a_merge() -> None:
    after = START.replace("line 2", "fast 2")
    tangled = change(START, after, after.replace("fast 2", "fast and later 2"))
    briefing = Briefing(
        agent="a", role=Role.EXPLORER, number=0, task="t", language="cuda", numerics="reference", editable={},
        base="b", workloads={}, phase=Phase.EARLY, position=Position.UNKNOWN,
    )  # fmt: skip
    answer = Resolution(files={"k.cu": "line and later 2\n"}, how="by hand")
    mind = ScriptedMind((), {"block_swizzle": answer})
    assert dict(removed(tangled, by_mind(mind, briefing, ("a", "b", "c"))).files) == dict(answer.files)
    assert removed(tangled, by_mind(ScriptedMind(()), briefing, ("a", "b", "c"))).files == {}

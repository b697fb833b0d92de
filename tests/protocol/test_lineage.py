"""Which changes a commit contains, against a model that keeps a set for every commit."""

from hypothesis import given
from hypothesis import strategies as st

from protocol.lineage import Lineage


@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from("abcdefgh")), max_size=20), st.data())
def test_a_commit_holds_what_lies_on_its_way(steps: list[tuple[int, str]], data: st.DataObject) -> None:
    lineage, model = Lineage(), {"base": frozenset[str]()}
    for number, (parent, experiment) in enumerate(steps):
        before = list(model)[parent % len(model)]
        lineage.grow(f"c{number}", before, experiment)
        model[f"c{number}"] = model[before] | {experiment}
    one, other = (data.draw(st.sampled_from(list(model))) for _ in range(2))
    assert lineage.holds(one) == model[one]
    ours, theirs = lineage.apart(one, other)
    common = model[one] - ours
    assert ours <= model[one]
    assert theirs <= model[other]
    assert model[one] - model[other] <= ours
    assert model[other] - model[one] <= theirs
    assert common <= model[other]


def test_the_same_change_on_two_ways_is_on_both() -> None:
    lineage = Lineage()
    lineage.grow("own", "base", "x1")
    lineage.grow("own2", "own", "x2")
    lineage.grow("landed", "base", "x1")
    assert lineage.apart("landed", "own2") == ({"x1"}, {"x1", "x2"})
    assert lineage.apart("own2", "own2") == (frozenset(), frozenset())


def test_what_nobody_knows_holds_nothing() -> None:
    assert Lineage().holds("c") == frozenset()
    assert Lineage().apart("c", "d") == (frozenset(), frozenset())

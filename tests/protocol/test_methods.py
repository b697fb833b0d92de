"""The five lists, what an ablation proves, and that the landing law listens to compute-sanitizer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from story import A, B, Story, decision, estimate, measured, plan, started

from protocol import events as ev
from protocol.ablations import labels, method_lists, pending_ablations
from protocol.landings import Settle, pending
from protocol.memory import evidence_of
from protocol.messages import Outcome, Verdict, VerifyLanding
from protocol.methods import (
    Ablation,
    Contribution,
    MethodLists,
    Sanitized,
    SassCheck,
    Status,
    absent,
    attributed,
    sorted_methods,
)


def check(status: Status, method: str = "m") -> SassCheck:
    return SassCheck(method=method, status=status, why="seen")


def ablation(contribution: Contribution, method: str = "m") -> Ablation:
    return Ablation(method=method, contribution=contribution, why="measured")


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("keep", Contribution.CONTRIBUTED),
        ("revert", Contribution.NOT_CONTRIBUTED),
        ("unresolved", Contribution.INCONCLUSIVE),
        ("continue", Contribution.INCONCLUSIVE),
    ],
)
def test_the_sequential_test_is_the_word_on_a_method(state: str, word: Contribution) -> None:
    found = attributed("m", Outcome.MEASURED, "", decision(state, 0.05), "tree", "reverted")
    assert found.contribution is word
    assert found.gain == estimate(0.05)


@pytest.mark.parametrize("outcome", [one for one in Outcome if one is not Outcome.MEASURED])
def test_a_tree_that_failed_proves_nothing(outcome: Outcome) -> None:
    found = attributed("m", outcome, "it says so", None, "tree", "reverted")
    assert found.contribution is Contribution.INCONCLUSIVE
    assert outcome.value in found.why
    assert "it says so" in found.why
    assert absent("m", "nobody wrote it").contribution is Contribution.INCONCLUSIVE


@pytest.mark.parametrize(
    ("contribution", "status", "place"),
    [
        (Contribution.CONTRIBUTED, Status.PASS, "effective"),
        (Contribution.CONTRIBUTED, Status.NOT_APPLICABLE, "effective"),
        (Contribution.CONTRIBUTED, Status.INCONCLUSIVE, "unverified"),
        (Contribution.CONTRIBUTED, Status.TOOL_ERROR, "unverified"),
        (Contribution.CONTRIBUTED, Status.FAIL, "implementation_failed"),
        (Contribution.NOT_CONTRIBUTED, Status.PASS, "ineffective"),
        (Contribution.NOT_CONTRIBUTED, Status.NOT_APPLICABLE, "ineffective"),
        (Contribution.NOT_CONTRIBUTED, Status.TOOL_ERROR, "unverified"),
        (Contribution.NOT_CONTRIBUTED, Status.FAIL, "implementation_failed"),
        (Contribution.INCONCLUSIVE, Status.PASS, "unverified"),
        (Contribution.INCONCLUSIVE, Status.FAIL, "implementation_failed"),
    ],
)
def test_both_proofs_decide_where_a_method_stands(contribution: Contribution, status: Status, place: str) -> None:
    lists = sorted_methods(["m"], {"m": ablation(contribution)}, {"m": check(status)})
    assert getattr(lists, place) == ("m",)
    assert lists.selected == ("m",)


def test_what_is_missing_is_unverified_whatever_the_other_proof_says() -> None:
    assert sorted_methods(["m"], {}, {"m": check(Status.PASS)}).unverified == ("m",)
    assert sorted_methods(["m"], {"m": ablation(Contribution.CONTRIBUTED)}, {}).unverified == ("m",)
    assert sorted_methods(["m"], {}, {}) == MethodLists(selected=("m",), unverified=("m",))


@given(
    st.dictionaries(
        st.sampled_from("abcde"),
        st.tuples(st.none() | st.sampled_from(Contribution), st.none() | st.sampled_from(Status)),
    )
)
def test_every_selected_method_stands_in_exactly_one_list(
    given_: dict[str, tuple[Contribution | None, Status | None]],
) -> None:
    ablations = {name: ablation(one, name) for name, (one, _) in given_.items() if one}
    checks = {name: check(one, name) for name, (_, one) in given_.items() if one}
    lists = sorted_methods(given_, ablations, checks)
    placed = (*lists.effective, *lists.ineffective, *lists.implementation_failed, *lists.unverified)
    assert sorted(placed) == sorted(lists.selected) == sorted(given_)


def _two_landings() -> tuple[Story, str, str]:
    story = started()
    first = story.experiment(A, Verdict.KEEP, 0.05, plan("tile"))
    story.land(first, B)
    second = story.experiment(A, Verdict.KEEP, 0.05, plan("tile"))
    story.land(second, B)
    return story, first, second


def _ablated(story: Story, ident: str, contribution: Contribution, commit: str = "") -> ev.MethodAblated:
    told = ablation(contribution, "tile").model_copy(update={"gain": estimate(0.07)})
    sass = check(Status.NOT_APPLICABLE, "tile")
    return ev.MethodAblated(
        experiment=ident, commit=commit or story.state.main, ablation=told, sass=sass, measurement=measured()
    )


def test_every_landing_of_main_is_taken_out_once_and_again_when_main_moved() -> None:
    story, first, second = _two_landings()
    assert set(pending_ablations(story.state)) == {first, second}
    story.say("", _ablated(story, first, Contribution.CONTRIBUTED))
    assert pending_ablations(story.state) == (second,)
    story.say("", _ablated(story, second, Contribution.NOT_CONTRIBUTED, commit="an older main"))
    assert pending_ablations(story.state) == (second,)
    third = story.experiment(A, Verdict.KEEP, 0.05, plan("fuse"))
    story.land(third, B)
    assert set(pending_ablations(story.state)) == {first, second, third}


def test_the_lists_name_a_technique_that_landed_twice_by_its_experiments() -> None:
    story, first, second = _two_landings()
    assert labels(story.state) == {first: f"tile ({first})", second: f"tile ({second})"}
    story.say("", _ablated(story, first, Contribution.CONTRIBUTED))
    lists = method_lists(story.state)
    assert (lists.effective, lists.unverified) == ((f"tile ({first})",), (f"tile ({second})",))


def test_what_ablation_proves_teaches_the_next_campaign() -> None:
    story, first, second = _two_landings()
    before = len(evidence_of(story.state))
    story.say("", _ablated(story, first, Contribution.CONTRIBUTED))
    story.say("", _ablated(story, second, Contribution.NOT_CONTRIBUTED))
    told = evidence_of(story.state)[before:]
    assert [(one.experiment, one.stage, one.positive) for one in told] == [
        (first, "ablated", True),
        (second, "ablated", False),
    ]
    assert told[0].gain == pytest.approx(0.07)
    story, first, _ = _two_landings()
    story.say("", _ablated(story, first, Contribution.INCONCLUSIVE))
    assert all(one.stage != "ablated" for one in evidence_of(story.state))


def test_a_finding_of_the_sanitizer_refuses_a_landing_however_fast_it_is() -> None:
    for said, lands in (
        (Sanitized(tool="racecheck", status="found", findings=("Race reported, in k at k.cu:12",)), False),
        (Sanitized(tool="racecheck", status="clean"), True),
        (Sanitized(tool="racecheck", status="unchecked", why="it is not on the PATH"), True),
    ):
        story = started()
        ident = story.experiment(A, Verdict.KEEP, 0.05, plan("tile"))
        story.prepare(ident)
        duty = story.ask(B, VerifyLanding)
        assert duty.technique == "tile"
        fast = ev.LandingMeasured(
            duty=duty.id, experiment=ident, device="cpu:1", measurement=measured(0.1), decision=decision("keep", 0.1)
        )
        story.say(B, fast.model_copy(update={"sanitized": (said,)}))
        step = pending(story.state)
        assert isinstance(step, Settle)
        assert (step.proof is not None) is lands
        if not lands:
            assert step.why == "INCORRECT: compute-sanitizer racecheck: Race reported, in k at k.cu:12"
            assert step.bad == ()

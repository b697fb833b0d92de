"""What a campaign teaches the next one: which measurements count, and when they make an advice."""

from math import log1p

import pytest
from story import A, B, Story, plan, started

from protocol import events as ev
from protocol.memory import advise, dims_of, evidence_of, place_of
from protocol.messages import Advice, Verdict
from protocol.policy import Policy

LAW = Policy()


def advice(*stories: Story) -> dict[str, Advice]:
    evidence = [one for story in stories for one in evidence_of(story.state)]
    return {one.technique: one for one in advise(evidence, LAW)}


def test_a_landed_keep_is_two_measurements_and_is_preferred() -> None:
    story = started()
    ident = story.experiment(A, Verdict.KEEP, 0.05, plan("tile"))
    assert advice(story) == {}
    story.land(ident, B)
    (told,) = advice(story).values()
    assert (told.word, told.positives, told.negatives) == ("prefer", 2, 0)
    assert told.gain == pytest.approx(max(log1p(0.05), 0.1))


def test_two_keeps_that_did_not_land_are_preferred_too() -> None:
    one, two = started(), started()
    for story in (one, two):
        story.experiment(A, Verdict.KEEP, 0.05, plan("tile"))
    assert advice(one) == {}
    assert advice(one, two)["tile"].word == "prefer"


@pytest.mark.parametrize(
    "verdict", [Verdict.REVERT, Verdict.INCORRECT, Verdict.CRASHED, Verdict.BUILD_FAILED, Verdict.TIMEOUT]
)
def test_any_failure_is_a_caution_whatever_speaks_for_it(verdict: Verdict) -> None:
    won, lost = started(), started()
    won.land(won.experiment(A, Verdict.KEEP, 0.05, plan("tile")), B)
    lost.experiment(A, verdict, -0.01, plan("tile"))
    assert advice(lost)["tile"].word == "caution"
    told = advice(won, lost)["tile"]
    assert (told.word, told.positives, told.negatives) == ("caution", 2, 1)


@pytest.mark.parametrize("verdict", [Verdict.UNRESOLVED, Verdict.LOST, Verdict.TAMPERED, Verdict.KEEP_SIMPLER])
def test_what_decided_nothing_about_speed_says_nothing(verdict: Verdict) -> None:
    story = started()
    story.experiment(A, verdict, 0.0, plan("tile"))
    assert evidence_of(story.state) == []


def test_polishing_a_technique_after_its_own_keep_does_not_speak_against_it() -> None:
    story = started()
    story.land(story.experiment(A, Verdict.KEEP, 0.05, plan("tile")), B)
    story.experiment(A, Verdict.REVERT, -0.01, plan("tile"))
    assert advice(story)["tile"].word == "prefer"
    early = started()
    early.experiment(A, Verdict.REVERT, -0.01, plan("tile"))
    early.land(early.experiment(A, Verdict.KEEP, 0.05, plan("tile")), B)
    assert advice(early)["tile"].word == "caution"


def test_a_landing_that_did_not_verify_speaks_against_it_and_one_that_git_refused_does_not() -> None:
    for why, word in (("REVERT: it is slower on main", "caution"), ("main holds this change already", None)):
        story = started()
        ident = story.experiment(A, Verdict.KEEP, 0.05, plan("tile"))
        story.prepare(ident)
        story.say("", ev.LandingRefused(experiment=ident, why=why))
        told = advice(story).get("tile")
        assert (told.word if told else None) == word


def test_the_best_preference_comes_first_and_cautions_last() -> None:
    story = started()
    for technique, gain in (("small", 0.02), ("large", 0.30)):
        story.land(story.experiment(A, Verdict.KEEP, gain, plan(technique)), B)
    story.experiment(A, Verdict.REVERT, -0.2, plan("bad"))
    assert list(advice(story)) == ["large", "small", "bad"]


def test_evidence_names_where_it_was_seen_and_is_the_same_again() -> None:
    story = started()
    story.land(story.experiment(A, Verdict.KEEP, 0.05, plan("tile")), B)
    seen = evidence_of(story.state)
    assert seen == evidence_of(story.state)
    assert [one.stage for one in seen] == ["judged", "landed"]
    assert {(one.campaign, one.repository, one.device) for one in seen} == {("c", "/r", "cpu:0")}
    assert seen[1].commit == story.state.main
    assert seen[1].gain == pytest.approx(0.1)


def test_dims_are_buckets_of_powers_of_two() -> None:
    wide = {"a": {"rows": 128, "cols": 1024}, "b": {"rows": 67, "cols": 515}}
    assert dims_of(wide) == "cols=10 rows=7"
    assert dims_of({"a": {"rows": 120, "cols": 1000}}) == "cols=10 rows=7"
    assert dims_of({"a": {"rows": 120, "cols": 4000}}) != "cols=10 rows=7"
    here = place_of("softmax", "cuda", "sm_90", wide)
    assert here == place_of("softmax", "cuda", "sm_90", {"x": {"rows": 100, "cols": 900}})
    assert here != place_of("softmax", "cuda", "sm_80", wide)
    assert here != place_of("rmsnorm", "cuda", "sm_90", wide)

"""The landing queue's law: which parent a merge must beat, what a conflict leads to, which pairs go on record."""

from math import log1p
from typing import Any

import pytest
from story import A, B, Story, decision, measured, plan, started

from protocol import events as ev
from protocol.admission import refusal
from protocol.briefing import briefing_of
from protocol.landings import Prepare, Settle, pending
from protocol.messages import Outcome, ResolveMerge, Verdict, VerifyLanding


def kept(story: Story, agent: str, gain: float, technique: str) -> str:
    return story.experiment(agent, Verdict.KEEP, gain, plan(technique))


def two_wins(first: float = 0.3, second: float = 0.1) -> tuple[Story, str]:
    """A's win has landed; B's, made on the baseline, is the head of the queue."""
    story = started()
    a = kept(story, A, first, "tile")
    b = kept(story, B, second, "unroll")
    story.land(a, B)
    return story, b


def prepared(story: Story, ident: str, **more: Any) -> None:
    step = pending(story.state)
    assert isinstance(step, Prepare)
    fields: dict[str, Any] = {
        "candidate": f"m-{ident}-{step.how}",
        "main": step.main,
        "how": step.how,
        "against": step.against,
    }
    story.say("", *step.bad, ev.LandingPrepared(experiment=ident, **fields | more))


def verified(story: Story, ident: str, state: str, gain: float, outcome: Outcome = Outcome.MEASURED) -> VerifyLanding:
    duty = story.ask(A, VerifyLanding)
    seen = measured(gain, outcome)
    word = decision(state, log1p(gain)) if outcome is Outcome.MEASURED else None
    story.say(A, ev.LandingMeasured(duty=duty.id, experiment=ident, device="cpu:0", measurement=seen, decision=word))
    return duty


def settled(story: Story) -> Settle:
    step = pending(story.state)
    assert isinstance(step, Settle), step
    return step


def test_a_merge_that_beats_a_main_ahead_of_the_author_lands_with_one_measurement() -> None:
    story, b = two_wins(first=0.3, second=0.1)
    prepared(story, b)
    duty = verified(story, b, "keep", 0.1)
    assert (duty.base, duty.against) == (story.state.main, "")
    step = settled(story)
    assert step.proof is not None
    assert (step.proof.commit, step.proof.before) == (duty.candidate, story.state.main)
    assert step.proof.duties == (duty.id,)
    assert step.bad == ()


def test_a_merge_that_gains_more_than_the_author_is_ahead_needs_no_second_measurement() -> None:
    story, b = two_wins(first=0.1, second=0.5)
    prepared(story, b)
    verified(story, b, "keep", 0.5)
    assert settled(story).proof is not None


def test_what_was_prepared_on_an_older_main_is_prepared_again() -> None:
    story = started()
    a, b = kept(story, A, 0.3, "tile"), kept(story, B, 0.1, "unroll")
    story.say("", ev.LandingPrepared(experiment=b, candidate="old", main="base", how="cherry-pick"))
    story.land(a, B)
    step = pending(story.state)
    assert isinstance(step, Prepare)
    assert (step.main, step.how) == (story.state.main, "cherry-pick")
    assert not isinstance(story.duty(A), VerifyLanding)


@pytest.fixture
def rival() -> tuple[Story, str]:
    """The merge beats main, but B's own tree is ahead of main by more: it is measured against the merge."""
    story, b = two_wins(first=0.1, second=0.5)
    prepared(story, b)
    verified(story, b, "keep", 0.05)
    step = pending(story.state)
    assert isinstance(step, Prepare)
    assert (step.how, step.source, step.against) == ("whole tree", f"c-{b}", f"m-{b}-cherry-pick")
    prepared(story, b)
    return story, b


def test_the_authors_tree_lands_when_it_beats_the_merge(rival: tuple[Story, str]) -> None:
    story, b = rival
    duty = verified(story, b, "keep", 0.3)
    assert (duty.base, duty.main) == (f"m-{b}-cherry-pick", story.state.main)
    step = settled(story)
    assert step.proof is not None
    assert (step.proof.commit, step.proof.how) == (f"m-{b}-whole tree", "whole tree")
    assert step.proof.gain.gain == pytest.approx(log1p(0.05) + log1p(0.3))
    assert len(step.proof.duties) == 2
    assert [(pair.experiment, pair.candidate) for pair in step.bad] == [(b, f"m-{b}-cherry-pick")]


@pytest.mark.parametrize("word", ["revert", "unresolved"])
def test_the_merge_lands_when_the_authors_tree_does_not_beat_it(rival: tuple[Story, str], word: str) -> None:
    story, b = rival
    verified(story, b, word, 0.0)
    step = settled(story)
    assert step.proof is not None
    assert (step.proof.commit, step.proof.how) == (f"m-{b}-cherry-pick", "cherry-pick")
    assert step.proof.gain.gain == pytest.approx(log1p(0.05))
    assert step.bad == ()


def test_a_merge_slower_than_main_is_refused_and_the_pair_recorded() -> None:
    story, b = two_wins(first=0.3, second=0.1)
    (a,) = [landed.experiment for landed in story.state.landed]
    prepared(story, b)
    verified(story, b, "revert", -0.1)
    step = settled(story)
    assert step.proof is None
    assert step.why.startswith("REVERT")
    assert [(pair.experiment, pair.others) for pair in step.bad] == [(b, (a,))]


@pytest.mark.parametrize("outcome", [Outcome.INCORRECT, Outcome.BUILD_FAILED, Outcome.CRASHED])
def test_a_merge_that_does_not_work_is_a_bad_pair_too(outcome: Outcome) -> None:
    story, b = two_wins()
    prepared(story, b)
    verified(story, b, "revert", 0.0, outcome)
    assert settled(story).bad


def test_an_undecided_merge_is_refused_without_calling_the_pair_bad() -> None:
    story, b = two_wins()
    prepared(story, b)
    verified(story, b, "unresolved", 0.0)
    step = settled(story)
    assert step.proof is None
    assert step.bad == ()


def test_a_refused_landing_that_met_nothing_on_main_is_no_pair() -> None:
    story = started()
    b = kept(story, B, 0.1, "unroll")
    prepared(story, b)
    verified(story, b, "revert", -0.1)
    assert settled(story).bad == ()


def test_the_authors_tree_is_tried_when_the_merge_fails_and_it_is_ahead_of_main() -> None:
    story, b = two_wins(first=0.1, second=0.5)
    prepared(story, b)
    verified(story, b, "revert", -0.2)
    step = pending(story.state)
    assert isinstance(step, Prepare)
    assert (step.how, step.against, len(step.bad)) == ("whole tree", "", 1)
    prepared(story, b)
    duty = verified(story, b, "keep", 0.4)
    assert duty.base == story.state.main
    proof = settled(story).proof
    assert proof is not None
    assert proof.how == "whole tree"


def conflicted(story: Story, b: str) -> None:
    story.say("", ev.LandingConflicted(experiment=b, main=story.state.main, files=("k.cpp",)))


def test_a_conflict_goes_to_a_mind_with_both_plans() -> None:
    story, b = two_wins()
    conflicted(story, b)
    assert pending(story.state) is None
    duty = story.ask(A, ResolveMerge)
    assert (duty.base, duty.candidate, duty.main) == ("base", f"c-{b}", story.state.main)
    assert (duty.plan.technique, [p.technique for p in duty.main_plans]) == ("unroll", ["tile"])
    assert duty.files == ("k.cpp",)
    assert not isinstance(story.duty(B), ResolveMerge), "one mind at a time"


def resolved(story: Story, b: str, commit: str) -> None:
    duty = story.ask(A, ResolveMerge)
    story.say(A, ev.MergeResolved(duty=duty.id, experiment=b, commit=commit, why="so", dollars=0.5))


def test_a_lost_resolution_is_handed_out_again() -> None:
    story, b = two_wins()
    conflicted(story, b)
    duty = story.ask(A, ResolveMerge)
    story.say(A, ev.DutyLost(duty=duty.id, why="killed"), ev.AgentLost(why="killed"))
    assert isinstance(story.duty(B), ResolveMerge)


def test_a_resolved_merge_is_verified_like_any_other() -> None:
    story, b = two_wins()
    conflicted(story, b)
    resolved(story, b, "r1")
    assert story.state.dollars == 0.5
    step = pending(story.state)
    assert isinstance(step, Prepare)
    assert (step.how, step.source) == ("resolved", "r1")
    prepared(story, b)
    verified(story, b, "keep", 0.1)
    proof = settled(story).proof
    assert proof is not None
    assert proof.how == "resolved"


def test_what_no_mind_can_resolve_is_compared_as_whole_trees() -> None:
    story, b = two_wins()
    conflicted(story, b)
    resolved(story, b, "")
    step = pending(story.state)
    assert isinstance(step, Prepare)
    assert (step.how, step.source) == ("whole tree", f"c-{b}")
    prepared(story, b)
    verified(story, b, "revert", -0.1)
    assert settled(story).proof is None


def test_whole_trees_are_compared_when_a_resolution_fails_its_verification() -> None:
    story, b = two_wins()
    conflicted(story, b)
    resolved(story, b, "r1")
    prepared(story, b)
    verified(story, b, "revert", 0.0, Outcome.INCORRECT)
    step = pending(story.state)
    assert isinstance(step, Prepare)
    assert (step.how, len(step.bad)) == ("whole tree", 1)


def land(story: Story) -> None:
    step = settled(story)
    proof = step.proof
    assert proof is not None
    landed = ev.Landed(
        experiment=proof.experiment, commit=proof.commit, before=proof.before, gain=proof.gain, how=proof.how
    )
    story.say("", *step.bad, landed)


def test_main_holds_what_landed_and_a_whole_tree_drops_the_rest(rival: tuple[Story, str]) -> None:
    story, b = rival
    (a,) = [landed.experiment for landed in story.state.landed]
    assert story.state.lineage.holds(story.state.main) == {a}
    verified(story, b, "keep", 0.3)
    land(story)
    assert story.state.lineage.holds(story.state.main) == {b}


def test_a_landed_merge_holds_both() -> None:
    story, b = two_wins()
    (a,) = [landed.experiment for landed in story.state.landed]
    assert [other.id for other in story.state.partners(story.state.experiments[b])] == [a]
    prepared(story, b)
    verified(story, b, "keep", 0.1)
    land(story)
    assert story.state.lineage.holds(story.state.main) == {a, b}


@pytest.fixture
def bad_pair() -> tuple[Story, str]:
    """'unroll' on top of 'tile' was refused as a bad pair; main holds 'tile'."""
    story, b = two_wins()
    prepared(story, b)
    verified(story, b, "revert", -0.1)
    step = settled(story)
    story.say("", *step.bad, ev.LandingRefused(experiment=b, why=step.why))
    return story, b


def test_the_same_composition_is_not_admitted_again(bad_pair: tuple[Story, str]) -> None:
    story, b = bad_pair
    the = story.state.experiments[b].plan
    assert the is not None
    story.state.agents[A].owes_profile = story.state.unprofiled = ""
    said = refusal(story.state, A, the, story.state.main)
    assert said is not None
    assert b in said
    assert refusal(story.state, A, the, "another base") is None, "alone it is fine"
    assert refusal(story.state, A, the.model_copy(update={"differs": "other"}), story.state.main) is None
    assert refusal(story.state, A, the.model_copy(update={"change": "another"}), story.state.main) is None


def test_nor_the_other_way_round(bad_pair: tuple[Story, str]) -> None:
    story, b = bad_pair
    (a,) = [landed.experiment for landed in story.state.landed]
    the = story.state.experiments[a].plan
    assert the is not None
    assert refusal(story.state, A, the, f"c-{b}") is not None


def test_minds_see_the_pair(bad_pair: tuple[Story, str]) -> None:
    story, b = bad_pair
    (a,) = [landed.experiment for landed in story.state.landed]
    (pair,) = briefing_of(story.state, A, story.state.main).bad_pairs
    assert (pair.experiment, pair.technique, pair.others) == (b, "unroll", {a: "tile"})


def test_a_proof_names_what_was_measured(rival: tuple[Story, str]) -> None:
    story, b = rival
    measured_duties = {e.body.duty for e in story.events if isinstance(e.body, ev.LandingMeasured)}
    verified(story, b, "keep", 0.3)
    proof = settled(story).proof
    assert proof is not None
    assert proof.duties[0] in measured_duties
    assert proof.duties[1] not in measured_duties

"""State is the fold of events: the same events give the same state, wherever the reader began."""

import copy
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from story import A, B, Story, plan, started

from protocol import events as ev
from protocol.briefing import briefing_of
from protocol.messages import Estimate, Experiment, Search, Verdict
from protocol.policy import Policy
from protocol.state import _HANDLERS, CampaignState, apply, fold


def _eventful() -> Story:
    """A campaign in which most things happen."""
    story = started(Policy(round_experiments=3))
    story.land(story.experiment(A, Verdict.KEEP, 0.2), B)
    story.profile(A)
    for _ in range(3):
        story.experiment(B, Verdict.REVERT)
    story.say("", ev.RoundEnded(number=1, recap=("x",)))
    story.search(B)
    story.experiment(A, Verdict.LOST)
    story.say(A, ev.AgentLost(why="killed"))
    story.join(A)
    queued = story.experiment(A, Verdict.KEEP, 0.03)
    story.say("", ev.LandingRefused(experiment=queued, why="slower"))
    story.say(B, ev.NothingProposed(experiment=_open(story, B), why="none"))
    story.say("", ev.StopRequested(why="user"), ev.Finished(why="user"), ev.Submitted(commit="m", branch="autodev/x"))
    story.say("", ev.Resumed())
    return story


def _open(story: Story, agent: str) -> str:
    duty = Experiment(id=f"x{story.state.duties + 1}", base=story.state.head_of(agent))
    story.give(agent, duty)
    return duty.id


EVENTS = _eventful().events


def test_every_kind_of_event_has_a_handler() -> None:
    union = get_args(ev.AnyBody)[0]
    assert set(_HANDLERS) == set(get_args(union))


def test_every_kind_of_event_is_named_once() -> None:
    kinds = [body.model_fields["kind"].default for body in get_args(get_args(ev.AnyBody)[0])]
    assert len(kinds) == len(set(kinds))


@given(st.integers(0, len(EVENTS)))
def test_a_prefix_and_the_rest_make_the_whole(cut: int) -> None:
    state = fold(EVENTS[:cut])
    for event in EVENTS[cut:]:
        apply(state, event)
    assert state == fold(EVENTS)


def test_folding_changes_no_event() -> None:
    before = copy.deepcopy(EVENTS)
    first, second = fold(EVENTS), fold(EVENTS)
    assert first == second
    assert before == EVENTS


def test_there_is_no_campaign_before_its_first_event() -> None:
    with pytest.raises(ValueError, match="no campaign yet"):
        _ = CampaignState().policy


VERDICTS = st.sampled_from(Verdict)


@given(st.lists(st.tuples(st.sampled_from([A, B]), VERDICTS | st.sampled_from(["none", "refused"]))))
def test_numbers_have_no_gap_and_nothing_is_counted_twice(steps: list[tuple[str, object]]) -> None:
    story = started(Policy(max_experiments=None))
    for agent, what in steps:
        if isinstance(what, Verdict):
            story.experiment(agent, what)
            continue
        ident = _open(story, agent)
        if what == "refused":
            story.say(agent, ev.PlanRefused(experiment=ident, plan=plan(), why="no"))
        story.say(agent, ev.NothingProposed(experiment=ident, why="none"))
    judged = [what for _, what in steps if isinstance(what, Verdict)]
    state = story.state
    assert [e.number for e in state.judged] == list(range(1, len(judged) + 1))
    assert [e.verdict for e in state.judged] == judged
    assert [state.experiments[id_].verdict for id_ in state.verdicts] == judged
    assert state.lost == sum(e.verdict is Verdict.LOST for e in state.experiments.values())
    assert sum(a.streaks.experiments for a in state.agents.values()) == len(judged) - state.lost


def test_a_lost_experiment_without_a_plan_leaves_no_number() -> None:
    story = started()
    ident = _open(story, A)
    story.say(A, ev.ExperimentJudged(experiment=ident, verdict=Verdict.LOST, reason="killed"))
    assert (story.state.experiments, story.state.verdicts, story.state.numbered) == ({}, [], 0)
    assert story.state.agents[A].open is None


def test_a_report_closes_its_own_duty_and_no_other() -> None:
    story = started()
    ident = _open(story, A)
    story.say(A, ev.DutyLost(duty="another", why="late"))
    assert story.state.agents[A].open is not None
    story.say(A, ev.NothingProposed(experiment=ident, why="none"))
    assert story.state.agents[A].open is None


def test_kept_commits_wait_in_the_order_in_which_they_were_kept() -> None:
    story = started()
    kept = [story.experiment(agent, Verdict.KEEP, 0.03) for agent in (A, B, A)]
    assert list(story.state.landings) == kept
    assert (story.state.head_of(A), story.state.head_of(B)) == (f"c-{kept[2]}", f"c-{kept[1]}")
    story.say("", ev.LandingRefused(experiment=kept[2], why="slower"))
    assert story.state.head_of(A) == f"c-{kept[0]}"


def test_a_clock_that_was_set_back_gives_no_time_away() -> None:
    story = started()
    story.now -= 500.0
    story.say("", ev.Resumed())
    assert story.state.idle_time == 0.0


# ---------------------------------------------------------------- the briefing is built from the state


def test_the_briefing_tells_what_was_tried_and_why_plans_were_refused() -> None:
    story = started()
    story.experiment(B, Verdict.KEEP, 0.03, plan("unroll"))
    story.experiment(A, Verdict.LOST, the=plan("tile"))
    ident = _open(story, A)
    story.say(A, ev.PlanRefused(experiment=ident, plan=plan(), why="switch category"))
    briefing = briefing_of(story.state, A, "base")
    assert [past.plan.technique for past in briefing.history] == ["unroll"]  # what was lost was not tried
    assert briefing.refused == ("switch category",)
    assert briefing_of(story.state, B, "base").refused == ()


def test_no_two_attempts_of_an_agent_have_the_same_seed() -> None:
    story = started()
    seeds = []
    for verdict in (Verdict.REVERT, Verdict.LOST, Verdict.KEEP):
        ident = _open(story, A)
        seeds.append(briefing_of(story.state, A, "base").seed)
        story.say(A, ev.PlanRefused(experiment=ident, plan=plan(), why="no"))
        seeds.append(briefing_of(story.state, A, "base").seed)
        story.say(A, ev.PlanAdmitted(experiment=ident, plan=plan(), commits=("c",)))
        story.judge(A, ident, verdict)
    assert len(set(seeds)) == len(seeds)


def test_the_briefing_names_the_search_that_must_be_cited() -> None:
    story = started()
    for _ in range(3):
        story.experiment(A, Verdict.REVERT)
    assert isinstance(story.duty(A), Search)
    cited = story.search(A)
    search = briefing_of(story.state, A, "base").search
    assert search is not None
    assert search.id == cited
    assert briefing_of(story.state, A, "base").closed_categories == ("loops",)


def test_the_product_stops_at_the_commit_that_was_measured() -> None:
    state = CampaignState()
    for number, commit in enumerate(("one", "two"), start=1):
        gain = Estimate(gain=float(number), low=0.0, high=9.0, pairs=16, restarts=4)
        state.landed.append(ev.Landed(experiment=f"x{number}", commit=commit, before="", gain=gain))
    assert [step.gain for step in state.steps_to("one")] == [1.0]
    assert [step.gain for step in state.steps_to("two")] == [1.0, 2.0]
    assert state.steps_to("base") == []

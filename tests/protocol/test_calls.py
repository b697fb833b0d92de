"""Calls of models: counted once, at once, and against every budget; what was lost may be gone on from."""

import pytest
from story import A, B, Story, started

from protocol import events as ev
from protocol.briefing import briefing_of
from protocol.calls import is_counted
from protocol.duties import ending
from protocol.messages import Experiment, ModelCall, Rest, Verdict
from protocol.policy import Policy


def call(duty: str, number: int = 1, dollars: float = 0.1, tokens: int = 100) -> ModelCall:
    return ModelCall(duty=duty, number=number, model="m", input_tokens=tokens, output_tokens=0, dollars=dollars)


def answer(story: Story, agent: str, **told: float) -> str:
    duty = story.ask(agent, Experiment)
    story.say(agent, ev.ModelCalled(call=call(duty.id, **told)))
    return duty.id


def test_a_call_counts_for_the_campaign_its_agent_and_its_experiment() -> None:
    story = started(Policy())
    duty = answer(story, A)
    state = story.state
    assert (state.dollars, state.tokens, state.calls) == (0.1, 100, 1)
    assert (state.agents[A].paid.calls, state.agents[B].paid.calls) == (1, 0)
    assert state.experiments[duty].dollars == 0.1
    assert is_counted(state, A, call(duty))
    assert not is_counted(state, A, call(duty, 2))


def test_what_a_lost_duty_cost_stays_and_its_record_may_be_gone_on_from() -> None:
    story = started(Policy())
    first = answer(story, A)
    story.say(A, ev.ExperimentJudged(experiment=first, verdict=Verdict.LOST, reason="killed"))
    second = story.ask(A, Experiment).id
    told = briefing_of(story.state, A, "c0").means
    assert (told.duty, told.lost) == (second, (first,))
    assert is_counted(story.state, A, call(first))
    assert story.state.dollars == 0.1
    story.say(A, ev.NothingProposed(experiment=second, why="no"))
    story.state.agents[A].exhausted_on = ""
    story.ask(A, Experiment)
    assert briefing_of(story.state, A, "c0").means.lost == ()
    assert story.state.agents[A].counted == {}


def test_what_was_open_when_the_campaign_was_broken_off_may_be_gone_on_from() -> None:
    story = started(Policy())
    first = answer(story, A)
    story.say("", ev.Resumed(lost=(A,)))
    story.say(A, ev.ExperimentJudged(experiment=first, verdict=Verdict.LOST, reason="the campaign was interrupted"))
    assert story.state.agents[A].lost == {"experiment": (first,)}
    assert is_counted(story.state, A, call(first))


@pytest.mark.parametrize(
    ("law", "told"),
    [
        ({"max_tokens": 1000}, {"tokens": 700}),
        ({"max_calls": 5}, {}),
        ({"max_dollars": 1.0}, {"dollars": 0.7}),
    ],
)
def test_tokens_and_calls_are_budgets_as_money_is(law: dict[str, float], told: dict[str, float]) -> None:
    story = started(Policy(duty_share=0.2, max_experiments=None, **law))
    duty = answer(story, A, **told)
    for number in range(2, 5 if "max_calls" in law else 2):
        story.say(A, ev.ModelCalled(call=call(duty, number)))
    assert "budget of" in ending(story.state, story.now)
    assert f"budget of {next(iter(law.values())):,.0f}".split(".")[0] in ending(story.state, story.now).replace("$", "")


def test_what_an_open_duty_has_paid_is_not_bound_a_second_time() -> None:
    story = started(Policy(duty_share=0.2, max_dollars=1.0, max_experiments=None))
    answer(story, A, dollars=0.2)
    assert isinstance(story.duty(B), Experiment)


def test_an_agent_with_a_budget_of_its_own_rests_when_it_is_spent_and_the_others_go_on() -> None:
    story = started(Policy(duty_share=0.25, max_agent_calls=4, max_experiments=None))
    duty = answer(story, A)
    assert briefing_of(story.state, A, "c0").means.calls == 1
    for number in (2, 3, 4):
        story.say(A, ev.ModelCalled(call=call(duty, number)))
    story.say(A, ev.NothingProposed(experiment=duty, why="no answer", failed=True))
    waiting = story.duty(A)
    assert isinstance(waiting, Rest)
    assert "its own budget of 4 calls is spent" in waiting.why
    assert not ending(story.state, story.now)
    other = story.ask(B, Experiment).id
    for number in (1, 2, 3, 4):
        story.say(B, ev.ModelCalled(call=call(other, number)))
    story.say(B, ev.NothingProposed(experiment=other, why="no answer", failed=True))
    assert ending(story.state, story.now) == "no agent has another admissible idea"

"""Money in flight: what open duties may still cost counts, so that no answer can pass the budget."""

from story import A, B, Story, plan, started

from protocol import events as ev
from protocol.briefing import briefing_of
from protocol.duties import ending
from protocol.messages import Experiment, Rest, Search, Verdict
from protocol.policy import Policy

LAW = Policy(max_dollars=1.0, duty_share=0.2, max_experiments=None)


def spend(story: Story, agent: str, dollars: float) -> str:
    """An experiment is open whose plan cost this much."""
    duty = story.ask(agent, Experiment)
    story.say(agent, ev.PlanAdmitted(experiment=duty.id, plan=plan(), commits=("c",), dollars=dollars))
    return duty.id


def test_an_open_experiment_binds_what_it_and_its_merge_may_cost() -> None:
    story = started(LAW, (A, B, "explorer-2"))
    story.ask(A, Experiment)
    story.ask(B, Experiment)
    waiting = story.duty("explorer-2")
    assert isinstance(waiting, Rest)
    assert "in flight" in waiting.why
    assert not ending(story.state, story.now)


def test_what_was_not_needed_is_free_again() -> None:
    story = started(LAW, (A, B, "explorer-2"))
    first = spend(story, A, 0.05)
    story.ask(B, Experiment)
    assert isinstance(story.duty("explorer-2"), Rest)
    story.judge(A, first, Verdict.REVERT)
    assert isinstance(story.duty("explorer-2"), Experiment)


def test_a_kept_commit_on_its_way_to_main_binds_its_merge() -> None:
    story = started(LAW.model_copy(update={"duty_share": 0.25}))
    kept = spend(story, A, 0.2)
    story.judge(A, kept, Verdict.KEEP, 0.02)
    story.state.dollars += 0.1
    assert isinstance(story.duty(B), Rest)
    story.say("", ev.LandingRefused(experiment=kept, why="slower"))
    assert isinstance(story.duty(B), Experiment)


def test_a_search_waits_for_money_too() -> None:
    story = started(LAW.model_copy(update={"stuck_after": 1}))
    story.experiment(A, Verdict.REVERT)
    assert isinstance(story.duty(A), Search)
    story.state.dollars = 0.55
    story.ask(B, Experiment)
    waiting = story.duty(A)
    assert isinstance(waiting, Rest)
    assert "in flight" in waiting.why


def test_an_open_search_binds_what_it_may_cost() -> None:
    story = started(LAW.model_copy(update={"stuck_after": 1}))
    story.experiment(A, Verdict.REVERT)
    story.state.dollars = 0.45
    assert isinstance(story.duty(B), Experiment)
    story.ask(A, Search)
    assert isinstance(story.duty(B), Rest)


def test_a_mind_is_told_its_allowance() -> None:
    assert briefing_of(started(LAW).state, A, "base").dollars == 0.2
    assert briefing_of(started().state, A, "base").dollars is None

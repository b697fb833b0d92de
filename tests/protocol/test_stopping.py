"""The whole team stuck, and when a campaign may stop before its budget."""

import pytest
from story import A, B, Story, estimate, measured, plan, started

from protocol import events as ev
from protocol.duties import ending
from protocol.messages import Experiment, Search, Strategy, SweepItem, Verdict
from protocol.policy import Policy
from protocol.rounds import recap
from protocol.stuck import team_is_stuck, what_follows

CALM = {"close_category_after": 99, "polish_after": 99, "research_after": 99, "sweep_after": 99, "plateau_after": 99}


def reverts(story: Story, agent: str, count: int) -> None:
    for _ in range(count):
        number = story.state.duties
        story.experiment(agent, Verdict.REVERT, -0.2, the=plan(f"t{number}", f"c{number % 2}"))


def test_all_stuck_at_once_means_that_everybody_searches() -> None:
    story = started(Policy.model_validate({**CALM, "stuck_after": 3}))
    reverts(story, A, 3)
    reverts(story, B, 2)
    assert not team_is_stuck(story.state)
    reverts(story, B, 1)
    (event,) = what_follows(story.state)
    story.say("", event)
    assert isinstance(story.duty(A), Search)
    assert isinstance(story.duty(B), Search)
    assert not team_is_stuck(story.state), "counted afresh"


def test_what_was_lost_makes_nobody_stuck_and_is_no_try() -> None:
    story = started(Policy.model_validate({**CALM, "stuck_after": 3}))
    for agent in (A, B):
        for _ in range(3):
            story.experiment(agent, Verdict.LOST)
    assert not team_is_stuck(story.state)
    assert (story.state.tail.reverts, story.state.planned) == (0, {})
    assert isinstance(story.duty(A), Experiment)


def test_twice_in_a_row_proposes_submission_and_a_keep_withdraws_it() -> None:
    story = started(Policy.model_validate({**CALM, "stuck_after": 2}))
    for times in (1, 2):
        for agent in (A, B):
            reverts(story, agent, 2)
        story.say("", *what_follows(story.state))
        assert bool(story.state.proposed) == (times == 2)
    assert any("submission is proposed" in line for line in recap(story.state))
    story.experiment(A, Verdict.KEEP, 0.03)
    assert story.state.proposed == ""


def exceeded(**law: object) -> Story:
    """A campaign on which every condition of an early stop holds."""
    story = started(Policy.model_validate({**CALM, "target_speedup": 1.2, "stuck_after": 99, **law}))
    sweep = Strategy(sweep=(SweepItem(name="one", title="first"),))
    story.state.start = story.state.started.model_copy(update={"strategy": sweep})
    story.land(story.experiment(A, Verdict.KEEP, 0.04), B)
    measure(story, 0.3)
    story.state.agents[A].owes_search = True
    cited = story.search(A)
    story.experiment(A, Verdict.REVERT, -0.2, the=plan("swizzle", "memory", cites=cited))
    reverts(story, A, 3)
    story.experiment(A, Verdict.REVERT, -0.2, the=plan("last", "loops", sweep="one"))
    return story


def measure(story: Story, gain: float) -> None:
    body = ev.MainMeasured(
        duty="m", base="base", commit=story.state.main, device="cpu:0", estimate=estimate(gain), product=gain,
        agrees=True, measurement=measured(gain),
    )  # fmt: skip
    story.say(A, body)


def test_a_campaign_stops_early_when_everything_was_tried() -> None:
    assert "exceeded" in ending(exceeded().state, 0.0)


@pytest.mark.parametrize(
    "law", [{"target_speedup": None}, {"target_speedup": 2.0}, {"stop_after_reverts": 6}, {"stop_after_directions": 9}]
)
def test_it_does_not_when_the_target_or_the_reverts_are_missing(law: dict[str, object]) -> None:
    assert ending(exceeded(**law).state, 0.0) == ""


def test_it_does_not_without_a_search_whose_ideas_failed() -> None:
    story = exceeded()
    story.state.tail.searched = False
    assert ending(story.state, 0.0) == ""


def test_it_does_not_before_the_sweep_is_exhausted() -> None:
    story = exceeded()
    story.state.swept.clear()
    assert ending(story.state, 0.0) == ""


def test_it_does_not_on_an_estimate_in_doubt_or_of_another_main() -> None:
    story = exceeded()
    measure(story, 0.183)  # its lower bound is under the target
    assert ending(story.state, 0.0) == ""
    story = exceeded()
    story.state.main = "another"
    assert ending(story.state, 0.0) == ""

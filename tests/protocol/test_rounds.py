"""When a round ends, and what its recap counts."""

from hypothesis import given
from hypothesis import strategies as st
from story import A, B, plan, started

from protocol import events as ev
from protocol.messages import Experiment, Verdict
from protocol.policy import Policy
from protocol.rounds import recap, round_is_over

LAW = Policy(round_experiments=4, max_experiments=None)


def test_a_round_ends_after_its_experiments() -> None:
    story = started(LAW)
    for count in range(1, 5):
        story.experiment(A, Verdict.REVERT)
        assert round_is_over(story.state, story.now) is (count == 4)
    story.say("", ev.RoundEnded(number=1, recap=recap(story.state)))
    assert not round_is_over(story.state, story.now)
    assert story.state.rounds == 1


def test_the_recap_names_each_agent_with_what_it_kept_and_lost() -> None:
    story = started(LAW)
    story.experiment(A, Verdict.KEEP, 0.1)
    story.experiment(A, Verdict.KEEP, 0.1)
    story.experiment(B, Verdict.LOST)
    assert recap(story.state) == (
        f"{A}: 2 experiments, 2 kept (together 1.210x)",
        f"{B}: 1 experiments, 0 kept (together 1.000x), 1 lost",
    )


def test_an_experiment_that_outlives_its_round_is_told_in_the_next_one() -> None:
    story = started(LAW)
    slow = Experiment(id="slow", base="base")
    story.give(B, slow)
    story.say(B, ev.PlanAdmitted(experiment="slow", plan=plan(), commits=("c-slow",)))
    for _ in range(4):
        story.experiment(A, Verdict.REVERT)
    story.say("", ev.RoundEnded(number=1, recap=recap(story.state)))
    story.judge(B, "slow", Verdict.KEEP, 0.5)
    assert recap(story.state) == (
        f"{A}: 0 experiments, 0 kept (together 1.000x)",
        f"{B}: 1 experiments, 1 kept (together 1.500x)",
    )


@given(st.lists(st.tuples(st.sampled_from([A, B]), st.booleans()), max_size=30))
def test_recaps_tell_every_experiment_once(steps: list[tuple[str, bool]]) -> None:
    story, told = started(LAW), 0
    slow: list[str] = []
    for agent, finishes in steps:
        duty = Experiment(id=f"x{story.state.duties + 1}", base="base")
        story.give(agent, duty)
        story.say(agent, ev.PlanAdmitted(experiment=duty.id, plan=plan(), commits=("c",)))
        slow.append(duty.id)
        if finishes:
            ident = slow.pop(len(slow) // 2)
            story.judge(story.state.experiments[ident].agent, ident, Verdict.REVERT)
        if round_is_over(story.state, story.now):
            told += _told(story)
            story.say("", ev.RoundEnded(number=story.state.rounds + 1, recap=()))
    assert told + _told(story) == len(story.state.judged)


def _told(story) -> int:
    return sum(int(line.split()[1]) for line in recap(story.state))

"""What a mind is told: the newest of the team, all of its own, and each thing once, in however many parts."""

from hypothesis import given, settings
from hypothesis import strategies as st
from story import A, B, started

from protocol.briefing import Told, briefing_of, history_of, past_of
from protocol.messages import PastExperiment, Verdict
from protocol.policy import Policy
from protocol.snapshot import snapshot_of
from protocol.wire import decode

LAW = Policy(briefed=3, max_experiments=None)
STEPS = st.lists(st.tuples(st.sampled_from([A, B]), st.sampled_from([Verdict.REVERT, Verdict.LOST])), max_size=14)


@settings(deadline=None)
@given(STEPS)
def test_a_mind_is_told_the_teams_newest_and_all_of_its_own(steps: list[tuple[str, Verdict]]) -> None:
    story = started(LAW)
    made = [(agent, story.experiment(agent, verdict), verdict) for agent, verdict in steps]
    wanted = [
        ident
        for place, (agent, ident, verdict) in enumerate(made)
        if verdict is not Verdict.LOST and (agent == A or place >= len(made) - LAW.briefed)
    ]
    assert [past.id for past in briefing_of(story.state, A, "base").history] == wanted


@settings(deadline=None)
@given(STEPS, st.sets(st.integers(0, 14)))
def test_an_agent_that_asks_often_is_told_everything_once(steps: list[tuple[str, Verdict]], asks: set[int]) -> None:
    story, told, known, heard = started(LAW), Told(), 0, list[str]()
    for number, (agent, verdict) in enumerate(steps):
        story.experiment(agent, verdict)
        if number in asks:
            parts = told.history(story.state, A, known)
            heard += [PastExperiment.model_validate(decode(part)).id for part in parts]
            known = len(story.state.verdicts)
    heard += [one.id for one in history_of(story.state, A, known)]
    assert len(heard) == len(set(heard))
    assert set(heard) >= {one.id for one in history_of(story.state, A, 0)}


def test_words_are_what_the_mind_would_read_and_old_ones_are_forgotten() -> None:
    story, told = started(LAW), Told()
    for _ in range(9):
        ident = story.experiment(B, Verdict.REVERT)
        (words,) = told.history(story.state, A, len(story.state.verdicts) - 1)
        assert PastExperiment.model_validate(decode(words)) == past_of(story.state, story.state.experiments[ident])
    assert len(told._words) <= 2 * LAW.briefed


def test_who_keeps_up_needs_no_packed_record_for_words() -> None:
    story, told = started(LAW), Told()
    told.history(story.state, A, 0)
    ident = story.experiment(B, Verdict.REVERT)
    told.keep_up(story.state)
    snapshot_of(story.state, whole=True)
    (words,) = told.history(story.state, A, 0)
    assert PastExperiment.model_validate(decode(words)).id == ident
    assert ident not in story.state.experiments.loose()

"""The streak counters of RULES phase B: what each verdict moves, and what each counter triggers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from story import A, B, plan, started

from protocol import events as ev
from protocol.counters import Streaks, closed_categories, phase_of
from protocol.messages import Experiment, Phase, Verdict
from protocol.policy import Policy

LAW = Policy()
FAILURES = [v for v in Verdict if not v.kept and v is not Verdict.LOST]


@pytest.mark.parametrize("verdict", FAILURES)
def test_three_in_a_row_without_a_keep_owe_a_search(verdict: Verdict) -> None:
    story = started()
    for count in range(1, 4):
        story.experiment(A, verdict, the=plan(f"t{count}", f"c{count}"))
        assert story.state.agents[A].owes_search is (count == 3)
    assert not story.state.agents[B].owes_search


def test_a_keep_between_reverts_starts_the_count_again() -> None:
    story = started()
    for verdict in (Verdict.REVERT, Verdict.REVERT, Verdict.KEEP, Verdict.REVERT, Verdict.REVERT):
        story.experiment(A, verdict, 0.01 * verdict.kept)
    assert not story.state.agents[A].owes_search


def test_a_lost_experiment_counts_for_nothing() -> None:
    story = started()
    before = story.state.agents[A].streaks
    for _ in range(5):
        story.experiment(A, Verdict.LOST)
    assert story.state.agents[A].streaks == before == Streaks()
    assert story.state.reverted == set()


def test_the_search_is_owed_again_after_three_more() -> None:
    story = started()
    for _ in range(3):
        story.experiment(A, Verdict.REVERT)
    cited = story.search(A)
    assert not story.state.agents[A].owes_search
    for count in range(1, 4):
        story.experiment(A, Verdict.REVERT, the=plan(cites=cited if count == 1 else ""))
        assert story.state.agents[A].owes_search is (count == 3)


def test_a_keep_that_cites_a_search_clears_the_counter_and_credits_the_source() -> None:
    story = started()
    for _ in range(3):
        story.experiment(A, Verdict.REVERT)
    cited = story.search(A)
    story.experiment(A, Verdict.KEEP, 0.03, plan("swizzle", cites=cited))
    agent = story.state.agents[A]
    assert (agent.search, agent.streaks.without_keep, agent.streaks.since_search) == (None, 0, 0)
    assert story.state.credits == {cited: {"doi:1": 1}}
    story.experiment(B, Verdict.KEEP, 0.03, plan(cites=cited, source="doi:2"))
    story.experiment(A, Verdict.KEEP, 0.03, plan("swizzle", cites=cited, source="doi:1"))
    assert story.state.credits == {cited: {"doi:1": 2, "doi:2": 1}}


def test_a_keep_of_another_technique_that_cites_because_it_must_credits_nothing() -> None:
    story = started()
    for _ in range(3):
        story.experiment(A, Verdict.REVERT)
    story.experiment(A, Verdict.KEEP, 0.03, plan("another", cites=story.search(A)))
    assert story.state.credits == {}


def test_a_keep_that_cites_nothing_credits_nothing() -> None:
    story = started()
    for _ in range(3):
        story.experiment(A, Verdict.REVERT)
    story.search(A)
    story.experiment(A, Verdict.KEEP, 0.03, plan())
    assert story.state.credits == {}


def test_the_citation_stays_owed_until_an_experiment_cites() -> None:
    story = started()
    for _ in range(3):
        story.experiment(A, Verdict.REVERT)
    cited = story.search(A)
    story.experiment(A, Verdict.LOST, the=plan(cites=cited))
    assert story.state.agents[A].search is not None
    story.experiment(A, Verdict.REVERT, the=plan(cites=cited))
    assert story.state.agents[A].search is None


def test_three_crashes_in_a_row_abandon_an_approach_for_the_team() -> None:
    story = started()
    for agent in (A, B, A):
        assert story.state.abandoned == []
        story.experiment(agent, Verdict.CRASHED, the=plan("tensor-cores"))
    assert story.state.abandoned == [("tensor-cores", "")]
    story.experiment(B, Verdict.CRASHED, the=plan("tensor-cores"))
    assert story.state.abandoned == [("tensor-cores", "")]


@pytest.mark.parametrize("between", [v for v in Verdict if v not in (Verdict.CRASHED, Verdict.LOST)])
def test_another_end_of_the_same_approach_breaks_the_row_of_crashes(between: Verdict) -> None:
    story = started()
    for verdict in (Verdict.CRASHED, Verdict.CRASHED, between, Verdict.CRASHED, Verdict.CRASHED):
        story.experiment(A, verdict, the=plan("tensor-cores"))
    assert story.state.abandoned == []


def test_another_approach_does_not_break_the_row_of_crashes() -> None:
    story = started()
    for name in ("x", "y", "x", "y", "x"):
        story.experiment(A, Verdict.CRASHED, the=plan(name))
    assert story.state.abandoned == [("x", "")]


def test_three_reverts_of_one_category_close_it_until_another_is_tried() -> None:
    story = started()
    streaks = story.state.agents[A].streaks
    for count in range(1, 4):
        story.experiment(A, Verdict.REVERT, the=plan(f"t{count}", "tiling"))
        assert closed_categories(LAW, streaks) == (("tiling",) if count == 3 else ())
    story.experiment(A, Verdict.REVERT, the=plan("t4", "memory"))
    assert closed_categories(LAW, streaks) == ()
    story.experiment(A, Verdict.REVERT, the=plan("t5", "memory"))
    story.experiment(A, Verdict.KEEP, 0.03, plan("t6", "memory"))
    story.experiment(A, Verdict.REVERT, the=plan("t7", "memory"))
    assert closed_categories(LAW, streaks) == ()


@pytest.mark.parametrize(("gain", "owed"), [(0.0499, False), (0.0501, True), (3.0, True)])
def test_a_keep_of_five_percent_owes_a_profile(gain: float, owed: bool) -> None:
    story = started()
    ident = story.experiment(A, Verdict.KEEP, gain)
    assert story.state.agents[A].owes_profile == (f"c-{ident}" if owed else "")


def test_a_revert_owes_no_profile_however_large_its_estimate() -> None:
    story = started()
    story.experiment(A, Verdict.INCORRECT, 0.5)
    assert story.state.agents[A].owes_profile == ""


@pytest.mark.parametrize(
    ("experiments", "phase"), [(0, Phase.EARLY), (9, Phase.EARLY), (10, Phase.MID), (29, Phase.MID), (30, Phase.LATE)]
)
def test_phases_follow_the_count_of_experiments(experiments: int, phase: Phase) -> None:
    assert phase_of(LAW, Streaks(experiments=experiments)) is phase


@pytest.mark.parametrize("experiments", [0, 10, 30])
def test_plateau_overrides_the_count(experiments: int) -> None:
    assert phase_of(LAW, Streaks(experiments=experiments, small_keeps=5)) is Phase.PLATEAU
    assert phase_of(LAW, Streaks(experiments=experiments, without_keep=5)) is Phase.PLATEAU
    assert phase_of(LAW, Streaks(experiments=experiments, small_keeps=4, without_keep=4)) is not Phase.PLATEAU


def test_five_small_keeps_or_five_reverts_in_a_row_are_a_plateau() -> None:
    for verdict, gain in ((Verdict.KEEP, 0.015), (Verdict.REVERT, 0.0)):
        story = started()
        for count in range(1, 6):
            story.experiment(A, verdict, gain)
            assert (phase_of(LAW, story.state.agents[A].streaks) is Phase.PLATEAU) is (count == 5)


def test_a_revert_ends_the_row_of_small_keeps() -> None:
    story = started()
    for verdict in (*[Verdict.KEEP] * 4, Verdict.REVERT, Verdict.KEEP):
        story.experiment(A, verdict, 0.015 * verdict.kept)
    assert story.state.agents[A].streaks.small_keeps == 1


def test_a_keep_of_two_percent_ends_the_row_of_small_ones() -> None:
    story = started()
    for gain in (0.015, 0.015, 0.015, 0.015, 0.0201, 0.015):
        story.experiment(A, Verdict.KEEP, gain)
    assert story.state.agents[A].streaks.small_keeps == 1


@pytest.mark.parametrize(
    ("design", "gain", "phase"),
    [("fuse both passes", 0.101, Phase.EARLY), ("fuse both passes", 0.099, Phase.MID), ("", 0.5, Phase.MID)],
)
def test_a_large_rewrite_returns_its_agent_to_early(design: str, gain: float, phase: Phase) -> None:
    story = started(Policy(mid_from=2))
    for _ in range(2):
        story.experiment(A, Verdict.REVERT)
    story.experiment(A, Verdict.KEEP, gain, plan(rewrite=design))
    assert phase_of(story.state.policy, story.state.agents[A].streaks) is phase


STEPS = st.lists(
    st.tuples(st.sampled_from([A, B]), st.sampled_from(Verdict), st.sampled_from("xy"), st.sampled_from("cd"))
)


@given(STEPS)
def test_counters_tell_what_the_row_of_verdicts_tells(steps: list[tuple[str, Verdict, str, str]]) -> None:
    story = started(Policy(max_experiments=None))
    for agent, verdict, technique, category in steps:
        story.experiment(agent, verdict, 0.03, plan(technique, category))
    for name in (A, B):
        mine = [(v, c) for agent, v, _, c in steps if agent == name and v is not Verdict.LOST]
        streaks = story.state.agents[name].streaks
        assert streaks.experiments == len(mine)
        assert streaks.without_keep == _tail(mine, lambda step: not step[0].kept)
        last = mine[-1][1] if mine else ""
        assert streaks.category_reverts == _tail(mine, lambda step, last=last: not step[0].kept and step[1] == last)
    for technique in "xy":
        crashed = [v is Verdict.CRASHED for _, v, t, _ in steps if t == technique and v is not Verdict.LOST]
        assert ((technique, "") in story.state.abandoned) is ("TTT" in "".join(str(c)[0] for c in crashed))


def _tail(steps: list, wanted) -> int:
    count = 0
    for step in reversed(steps):
        if not wanted(step):
            break
        count += 1
    return count


def test_a_closed_category_opens_again_when_there_is_nowhere_to_switch_to() -> None:
    story = started()
    for _ in range(3):
        story.experiment(A, Verdict.REVERT)
    story.search(A)
    agent = story.state.agents[A]
    assert closed_categories(story.state.policy, agent.streaks)
    duty = story.ask(A, Experiment)
    story.say(A, ev.NothingProposed(experiment=duty.id, why="no other category"))
    assert not closed_categories(story.state.policy, agent.streaks)
    assert agent.exhausted_on == ""
    duty = story.ask(A, Experiment)
    story.say(A, ev.NothingProposed(experiment=duty.id, why="nothing at all"))
    assert agent.exhausted_on == "base"

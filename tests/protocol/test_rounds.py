"""When a round ends, and what its recap counts."""

from hypothesis import given
from hypothesis import strategies as st
from story import A, B, Story, plan, started

from protocol import events as ev
from protocol.admission import refusal
from protocol.directions import due_to_all
from protocol.messages import Category, Experiment, Role, Search, Standing, Verdict
from protocol.policy import Policy
from protocol.rounds import end, end_team_phase, recap, round_is_over, team_phase_is_over

LAW = Policy(round_experiments=4, max_experiments=None, one_sided_gain=0.15)


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
    assert _agents(story) == (
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
    assert _agents(story) == (
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
    return sum(int(line.split()[1]) for line in _agents(story))


# ---------------------------------------------------------------- the four outcomes


def dealt(law: Policy = LAW, agents: tuple[str, ...] = (A, B)) -> Story:
    story = Story(law, agents)
    story.state.categories = {
        name: Category(name=name, role=role) for name, role in (("tiles", Role.EXPLORER), ("knobs", Role.EXPLOITER))
    }
    story.join().baselines()
    deal(story)
    return story


def deal(story: Story) -> None:
    for agent, body in due_to_all(story.state):
        story.say(agent, body)


def over(story: Story, stuck: bool = False) -> ev.RoundEnded:
    for agent, body in end(story.state, stuck):
        story.say(agent, body)
    deal(story)
    return story.state.round_log[-1]


def tries(story: Story, agent: str, *verdicts: Verdict, gain: float = 0.03) -> list[str]:
    return [_try(story, agent, verdict, gain) for verdict in verdicts]


def _try(story: Story, agent: str, verdict: Verdict, gain: float) -> str:
    direction = story.state.agents[agent].direction
    duty = Experiment(id=f"x{story.state.duties + 1}", base=story.state.head_of(agent), direction=direction)
    story.give(agent, duty)
    category = story.state.directions[direction].claim.allowed[0]
    admitted = ev.PlanAdmitted(experiment=duty.id, plan=plan(category=category), commits=(f"c-{duty.id}",))
    story.say(agent, admitted)
    story.judge(agent, duty.id, verdict, gain)
    return duty.id


def standing(story: Story, ident: str) -> Standing:
    return story.state.directions[ident].standing


NO = (Verdict.REVERT,) * 4


def test_a_a_one_sided_win_moves_the_others_to_it() -> None:
    story = dealt()
    tries(story, B, Verdict.REVERT)
    (ident,) = tries(story, A, Verdict.KEEP, gain=0.2)
    ended = over(story)
    assert (ended.outcome, ended.winners, ended.keeps_base, ended.searches) == ("A", (A,), {}, ())
    assert ended.recap[-1] == f"outcome A: {A} (1.200x) won; the others move to it"
    story.land(ident, B)
    assert story.state.head_of(B) == story.state.main
    assert standing(story, "d1") is Standing.WON
    assert story.state.directions["d3"].claim.follows == "d1", "a winner goes on with its direction"


def test_a_a_small_win_beside_a_direction_that_failed_is_one_sided_too() -> None:
    story = dealt()
    tries(story, B, *NO)
    tries(story, A, Verdict.KEEP)
    assert over(story).outcome == "A"
    assert standing(story, "d2") is Standing.FAILED


def test_b_several_wins_all_land_and_everybody_goes_on_from_main() -> None:
    story = dealt()
    first, second = (*tries(story, A, Verdict.KEEP), *tries(story, B, Verdict.KEEP))
    ended = over(story)
    assert (ended.outcome, ended.winners, ended.keeps_base) == ("B", (A, B), {})
    assert list(story.state.landings) == [first, second], "one after the other"
    story.land(first, B)
    story.land(second, A)
    assert story.state.head_of(A) == story.state.head_of(B) == f"m-{second}"


def test_c_nobody_won_so_everybody_searches_and_directions_are_fresh() -> None:
    story = dealt()
    tries(story, A, *NO[:2])
    tries(story, B, *NO[:2])
    ended = over(story)
    assert (ended.outcome, ended.winners, ended.searches) == ("C", (), (A, B))
    assert isinstance(story.duty(A), Search)
    assert isinstance(story.duty(B), Search)
    assert story.state.claims == {"tiles": story.state.agents[B].direction, "knobs": story.state.agents[A].direction}


def test_c_a_search_that_is_owed_or_not_used_yet_is_not_owed_twice() -> None:
    story = dealt()
    tries(story, A, *NO[:3])
    story.search(A)
    tries(story, B, *NO[:3])
    assert over(story).searches == ()


def test_c_a_keep_that_did_not_reach_main_and_a_simplification_are_no_wins() -> None:
    story = dealt()
    (ident,) = tries(story, A, Verdict.KEEP)
    story.say("", ev.LandingRefused(experiment=ident, why="slower on the merged tree"))
    tries(story, B, Verdict.KEEP_SIMPLER)
    assert over(story).outcome == "C"


def test_d_an_agent_whose_direction_is_open_keeps_its_base_for_one_more_round() -> None:
    story = dealt()
    tries(story, B, Verdict.REVERT)
    (ident,) = tries(story, A, Verdict.KEEP)
    ended = over(story)
    assert (ended.outcome, ended.keeps_base) == ("D", {B: "base"})
    assert ended.recap[-1] == f"outcome D: {A} (1.030x) won; {B} keeps its base for one more round"
    story.land(ident, B)
    assert story.state.main == f"m-{ident}"
    assert story.state.head_of(B) == "base"
    assert story.state.head_of(A) == story.state.main
    tries(story, A, Verdict.KEEP)
    tries(story, B, Verdict.REVERT)
    again = over(story)
    assert (again.outcome, again.keeps_base) == ("A", {}), "once only"
    assert story.state.head_of(B) == story.state.main


def test_d_a_kept_base_is_left_when_main_is_far_ahead_or_the_agents_own_win_is_on_it() -> None:
    story = dealt()
    tries(story, B, Verdict.REVERT)
    first, second = tries(story, A, Verdict.KEEP, Verdict.KEEP)
    over(story)
    story.land(first, B)
    assert story.state.head_of(B) == "base"
    story.land(second, B)
    assert story.state.head_of(B) == story.state.main, "main is ahead by a one-sided win"
    story = dealt()
    tries(story, B, Verdict.REVERT)
    tries(story, A, Verdict.KEEP)
    over(story)
    (own,) = tries(story, B, Verdict.KEEP)
    story.say("", ev.LandingRefused(experiment=next(iter(story.state.landings)), why="w"))
    story.land(own, A)
    assert story.state.head_of(B) == story.state.main


# ---------------------------------------------------------------- boundaries and the team phase


def test_a_round_ends_by_the_clock_too_but_not_without_a_verdict() -> None:
    story = dealt()
    late = story.now + 60.0 * LAW.round_minutes
    assert not round_is_over(story.state, late)
    tries(story, A, Verdict.REVERT)
    assert not round_is_over(story.state, story.now)
    assert round_is_over(story.state, late)


def test_a_larger_team_has_longer_rounds() -> None:
    story = started(LAW, (A, B, "explorer-2", "exploiter-2"))
    for _ in range(7):
        story.experiment(A, Verdict.REVERT)
    assert not round_is_over(story.state, story.now)
    story.experiment(A, Verdict.REVERT)
    assert round_is_over(story.state, story.now)


def test_three_dry_rounds_end_the_team_phase_and_a_keep_of_two_percent_is_not_dry() -> None:
    story = dealt()
    for agent, gain in ((A, 0.015), (A, 0.03), (B, 0.015), (A, 0.015)):
        tries(story, agent, Verdict.KEEP, gain=gain)
        over(story)
        assert team_phase_is_over(story.state) == ""
    tries(story, B, *NO)
    over(story)
    assert team_phase_is_over(story.state) == "3 rounds in a row without a KEEP above 2%"


def test_a_round_that_the_stuck_team_cut_short_is_not_one_of_the_dry_ones() -> None:
    story = dealt()
    for stuck in (False, True, False, True):
        tries(story, A, *NO)
        assert over(story, stuck).stuck is stuck
        assert team_phase_is_over(story.state) == ""
    tries(story, B, *NO)
    over(story)
    assert team_phase_is_over(story.state) == "3 rounds in a row without a KEEP above 2%"


def test_who_wins_three_rounds_alone_is_the_clear_winner() -> None:
    story = dealt()
    for _ in range(2):
        tries(story, A, Verdict.KEEP, gain=0.2)
        over(story)
        assert team_phase_is_over(story.state) == ""
    tries(story, A, Verdict.KEEP, gain=0.2)
    over(story)
    assert team_phase_is_over(story.state) == f"{A} is the clear winner: it alone won 3 rounds in a row"


def test_after_the_team_phase_there_are_no_claims_and_no_rounds() -> None:
    story = dealt()
    (ident,) = tries(story, A, Verdict.KEEP)
    for agent, body in end_team_phase(story.state, "the user said so"):
        story.say(agent, body)
    assert story.state.claims == {}
    assert story.state.branches == {A: f"c-{ident}", B: "base"}
    assert refusal(story.state, B, plan("another", "tiles"), "base") is None
    assert due_to_all(story.state) == end_team_phase(story.state, "again") == []
    for _ in range(8):
        story.experiment(A, Verdict.REVERT)
    assert not round_is_over(story.state, story.now)


def _agents(story: Story) -> tuple[str, ...]:
    """The lines on agents; what the detectors of failure modes saw is told after them."""
    return tuple(line for line in recap(story.state) if line.startswith((f"{A}:", f"{B}:")))

"""Which duty an agent gets: precedence, what is owed, other agents that are away, the budget, and the end."""

import pytest
from story import A, B, Story, decision, estimate, measured, plan, started

from protocol import events as ev
from protocol.duties import ending, finished, spent_experiments
from protocol.messages import (
    Baseline,
    Experiment,
    Profile,
    Remeasure,
    Rest,
    Search,
    Stop,
    Verdict,
    VerifyLanding,
)
from protocol.policy import Policy

C = "explorer-2"
LAW = Policy()


# ---------------------------------------------------------------- baselines


def test_the_baseline_comes_first_and_all_devices_are_awaited() -> None:
    story = Story().join()
    assert isinstance(story.duty(A), Baseline)
    story.baselines(A)
    assert isinstance(story.duty(A), Rest)
    assert isinstance(story.duty(B), Baseline)
    story.baselines(B)
    assert isinstance(story.duty(A), Experiment)


def test_an_agent_that_never_comes_is_awaited_for_a_while_and_no_longer() -> None:
    story = Story().join(A).baselines(A)
    assert isinstance(story.duty(A), Rest)
    story.now += LAW.absent_after
    assert isinstance(story.duty(A), Experiment)
    story.join(B)
    assert isinstance(story.duty(B), Baseline)


def test_a_refused_baseline_stops_everybody_with_the_reason() -> None:
    story = Story().join()
    story.say(A, ev.BaselineRefused(duty=story.ask(A, Baseline).id, why="it does not compile"))
    assert story.duty(A) == story.duty(B) == Stop(why="it does not compile")
    assert finished(story.state, story.now) == "it does not compile"


def test_a_late_agent_makes_no_baseline_when_nothing_is_left_to_do() -> None:
    story = Story().join(A).baselines(A)
    story.say("", ev.StopRequested(why="user"))
    story.join(B)
    assert story.duty(B) == Stop(why="user")


def test_a_late_agent_makes_its_baseline_when_a_landing_waits_for_it() -> None:
    story = Story().join(A).baselines(A)
    ident = story.experiment(A, Verdict.KEEP, 0.03)
    story.prepare(ident)
    story.say("", ev.StopRequested(why="user"))
    story.join(B)
    story.say(A, ev.AgentLost(why="killed"))
    story.baselines(B)
    assert isinstance(story.duty(B), VerifyLanding)


# ---------------------------------------------------------------- what the law owes


def test_a_search_comes_before_the_next_experiment() -> None:
    story = started()
    for _ in range(3):
        story.experiment(A, Verdict.REVERT)
    assert isinstance(story.duty(A), Search)
    assert isinstance(story.duty(B), Experiment)
    story.search(A)
    assert isinstance(story.duty(A), Experiment)


def test_a_lost_search_is_handed_out_again() -> None:
    story = started()
    for _ in range(3):
        story.experiment(A, Verdict.REVERT)
    story.say(A, ev.DutyLost(duty=story.ask(A, Search).id, why="killed"))
    assert isinstance(story.duty(A), Search)


def test_a_profile_comes_before_the_plan_after_a_large_keep() -> None:
    story = started()
    ident = story.experiment(A, Verdict.KEEP, 0.2)
    assert story.duty(A) == Profile(id=f"p{story.state.duties + 1}", commit=f"c-{ident}")
    story.profile(A)
    assert isinstance(story.duty(A), Experiment)


def test_an_experiment_starts_from_the_agents_newest_kept_commit_else_from_main() -> None:
    story = started()
    assert story.ask(A, Experiment).base == "base"
    story = started()
    ident = story.experiment(A, Verdict.KEEP, 0.03)
    assert story.duty(A).base == f"c-{ident}"
    assert story.duty(B).base == "base"
    story.land(ident, B, 0.03)
    assert story.duty(A).base == story.duty(B).base == f"m-{ident}"


# ---------------------------------------------------------------- landings


def test_a_landing_is_verified_once_and_not_by_its_author() -> None:
    story = started()
    ident = story.experiment(A, Verdict.KEEP, 0.03)
    assert not isinstance(story.duty(B), VerifyLanding), "nothing is prepared yet"
    story.prepare(ident)
    assert isinstance(story.duty(A), Experiment)
    duty = story.ask(B, VerifyLanding)
    assert (duty.experiment, duty.candidate, duty.main) == (ident, f"m-{ident}", "base")


def test_a_landing_that_is_being_verified_is_not_verified_again() -> None:
    story = started(agents=(A, B, C))
    story.prepare(story.experiment(A, Verdict.KEEP, 0.03))
    story.ask(B, VerifyLanding)
    assert isinstance(story.duty(C), Experiment)


def test_verification_comes_before_everything_that_is_owed() -> None:
    story = started()
    ident = story.experiment(A, Verdict.KEEP, 0.03)
    story.prepare(ident)
    for _ in range(3):
        story.experiment(B, Verdict.REVERT)
    assert isinstance(story.duty(B), VerifyLanding)


def test_its_author_verifies_when_nobody_else_lives() -> None:
    story = started()
    ident = story.experiment(A, Verdict.KEEP, 0.03)
    story.prepare(ident)
    story.ask(B, VerifyLanding)
    story.say(B, ev.AgentLost(why="killed"))
    assert isinstance(story.duty(A), VerifyLanding)


def test_its_author_verifies_when_the_others_were_told_to_stop() -> None:
    story = started()
    ident = story.experiment(A, Verdict.KEEP, 0.03)
    story.give(B, Stop(why="done"))
    story.prepare(ident)
    assert isinstance(story.duty(A), VerifyLanding)


def test_another_agent_on_the_authors_device_is_no_other_device() -> None:
    story = Story(agents=(A, B, C))
    members = [story.state.agents[name].member for name in (A, B, C)]
    story.state.agents[C].member = members[2].model_copy(update={"device": members[0].device})
    story.join().baselines(A, B)
    story.prepare(story.experiment(A, Verdict.KEEP, 0.03))
    assert not isinstance(story.duty(C), VerifyLanding)
    assert isinstance(story.duty(B), VerifyLanding)


def test_only_the_head_of_the_queue_is_verified() -> None:
    story = started()
    first, second = (story.experiment(A, Verdict.KEEP, 0.03) for _ in range(2))
    story.prepare(second)
    assert not isinstance(story.duty(B), VerifyLanding)
    story.prepare(first)
    assert story.duty(B).experiment == first


# ---------------------------------------------------------------- rounds, main against the baseline


def test_main_is_measured_once_after_a_round_in_which_it_moved() -> None:
    story = started(Policy(round_experiments=2))
    story.land(story.experiment(A, Verdict.KEEP, 0.03), B, 0.03)
    assert isinstance(story.duty(A), Experiment)
    story.say("", ev.RoundEnded(number=1, recap=()))
    story.experiment(B, Verdict.REVERT)
    duty = story.ask(A, Remeasure)
    assert (duty.base, duty.candidate) == ("base", story.state.main)
    assert isinstance(story.duty(B), Experiment), "it is being measured already"
    _measure(story, A, duty)
    assert isinstance(story.duty(A), Experiment)


def test_main_is_measured_again_after_so_many_experiments() -> None:
    story = started(Policy(recheck_every=3, round_experiments=99, stuck_after=99, max_experiments=None))
    story.land(story.experiment(A, Verdict.KEEP, 0.03), B, gain=0.03)
    for count in range(1, 3):
        assert not isinstance(story.duty(B), Remeasure), count
        story.experiment(B, Verdict.REVERT, the=plan(f"t{count}", f"c{count}"))
    assert "3 experiments since" in story.ask(B, Remeasure).why


def test_a_lost_measurement_of_main_stays_owed() -> None:
    story = started()
    story.land(story.experiment(A, Verdict.KEEP, 0.03), B, 0.03)
    story.say("", ev.RoundEnded(number=1, recap=()))
    story.say(A, ev.DutyLost(duty=story.ask(A, Remeasure).id, why="killed"))
    assert isinstance(story.duty(B), Remeasure)


def test_a_round_in_which_main_stood_still_owes_nothing() -> None:
    story = started()
    story.say("", ev.RoundEnded(number=1, recap=()))
    assert isinstance(story.duty(A), Experiment)


# ---------------------------------------------------------------- the budget and the end


def test_experiments_in_flight_count_against_the_budget_and_lost_ones_do_not() -> None:
    story = started(Policy(max_experiments=2))
    story.experiment(A, Verdict.REVERT)
    flight = story.ask(A, Experiment)
    assert spent_experiments(story.state) == 2
    assert isinstance(story.duty(B), Rest)
    story.say(A, ev.PlanAdmitted(experiment=flight.id, plan=plan(), commits=("c",)))
    story.judge(A, flight.id, Verdict.LOST)
    assert spent_experiments(story.state) == 1
    assert isinstance(story.duty(B), Experiment)


def test_the_clock_stops_the_campaign_and_time_away_does_not_count() -> None:
    story = started(Policy(max_minutes=10.0))
    begun = story.state.first_time
    assert ending(story.state, begun + 599.0) == ""
    assert "10 minutes" in ending(story.state, begun + 600.0)
    story.ask(A, Experiment)
    away = 5000.0
    story.now += away
    story.say("", ev.Resumed(lost=(A,)))
    assert ending(story.state, begun + away + 599.0) == ""
    assert "10 minutes" in ending(story.state, begun + away + 602.0)


@pytest.mark.parametrize(
    ("limit", "spent", "over"),
    [(2.0, 1.84, False), (2.0, 1.85, True), (2.0, 2.0, True), (0.0, 0.0, False), (0.0, 0.01, True)],
)
def test_money_stops_the_campaign(limit: float, spent: float, over: bool) -> None:
    story = started(Policy(max_dollars=limit))
    duty = story.ask(A, Experiment)
    story.say(A, ev.PlanAdmitted(experiment=duty.id, plan=plan(), commits=("c",), dollars=spent))
    assert bool(ending(story.state, story.now)) is over


def test_a_refused_plan_costs_what_it_cost() -> None:
    story = started(Policy(max_dollars=1.0))
    duty = story.ask(A, Experiment)
    story.say(A, ev.PlanRefused(experiment=duty.id, plan=plan(), why="no", dollars=1.5))
    assert "$1.00" in ending(story.state, story.now)


def test_an_exhausted_agent_rests_until_main_moves() -> None:
    story = started()
    story.say(A, ev.NothingProposed(experiment=story.ask(A, Experiment).id, why="none"))
    assert isinstance(story.duty(A), Rest)
    story.land(story.experiment(B, Verdict.KEEP, 0.03), A, 0.03)
    assert isinstance(story.duty(A), Experiment)


def test_the_campaign_ends_when_all_who_are_there_are_exhausted() -> None:
    story = started()
    story.say(A, ev.NothingProposed(experiment=story.ask(A, Experiment).id, why="none"))
    assert ending(story.state, story.now) == ""
    story.say(B, ev.AgentLost(why="killed"))
    assert ending(story.state, story.now) == "", "it may come back"
    story.now += LAW.absent_after + 1.0
    assert ending(story.state, story.now) == "no agent has another admissible idea"
    story.join(B)
    assert ending(story.state, story.now) == ""


def test_a_campaign_whose_agents_are_all_away_does_not_end_by_itself() -> None:
    story = started()
    for name in (A, B):
        story.say(
            name, ev.NothingProposed(experiment=story.ask(name, Experiment).id, why="none"), ev.AgentLost(why="k")
        )
    assert ending(story.state, story.now + 10 * LAW.absent_after) == ""


def test_who_owes_a_search_is_not_exhausted() -> None:
    story = started(agents=(A,))
    story.say(A, ev.NothingProposed(experiment=story.ask(A, Experiment).id, why="none"))
    for _ in range(3):
        story.experiment(A, Verdict.REVERT)
    assert ending(story.state, story.now) == ""
    story.search(A)
    assert isinstance(story.duty(A), Experiment), "the search may have brought an idea"


def test_a_stop_drains_what_runs_lands_what_waits_and_measures_main_last() -> None:
    story = started()
    ident = story.experiment(A, Verdict.KEEP, 0.2)
    flight = story.ask(B, Experiment)
    story.say("", ev.StopRequested(why="user"))
    assert isinstance(story.duty(A), Rest)
    assert finished(story.state, story.now) == ""
    story.say(B, ev.NothingProposed(experiment=flight.id, why="none"))
    assert isinstance(story.duty(A), Rest), "the landing is not prepared yet"
    story.land(ident, B)
    last = story.ask(A, Remeasure)
    assert isinstance(story.duty(B), Rest)
    assert finished(story.state, story.now) == ""
    _measure(story, A, last)
    assert story.duty(A) == story.duty(B) == Stop(why="user")
    assert finished(story.state, story.now) == "user"


def test_after_the_last_word_nobody_gets_work_whoever_comes_back() -> None:
    story = started()
    for name in (A, B):
        story.say(name, ev.NothingProposed(experiment=story.ask(name, Experiment).id, why="none"))
    story.say("", ev.Finished(why=finished(story.state, story.now)))
    story.say(A, ev.AgentLost(why="killed"))
    story.state.agents[A].exhausted_on = ""
    story.join(A)
    assert isinstance(story.duty(A), Stop)


def test_resume_begins_again_after_a_stop() -> None:
    story = started()
    story.say("", ev.StopRequested(why="user"), ev.Finished(why="user"), ev.Resumed())
    story.join()
    assert isinstance(story.duty(A), Experiment)


def _measure(story: Story, agent: str, duty: Remeasure) -> None:
    body = ev.MainMeasured(
        duty=duty.id, base=duty.base, commit=duty.candidate, device="cpu:0", estimate=estimate(0.1), product=0.1,
        agrees=True, measurement=measured(), workloads=decision("keep", 0.1).workloads,
    )  # fmt: skip
    story.say(agent, body)


def test_a_mind_that_fails_is_asked_again_and_then_no_more() -> None:
    story = started()
    for _ in range(story.state.policy.mind_failures):
        duty = story.ask(A, Experiment)
        story.say(A, ev.NothingProposed(experiment=duty.id, why="no network", failed=True, dollars=0.5))
    assert isinstance(story.duty(A), Rest)
    assert story.state.dollars == pytest.approx(0.5 * story.state.policy.mind_failures)
    story.say("", ev.Resumed())
    assert not story.state.failing(story.state.agents[A])


def test_a_search_that_failed_is_still_owed() -> None:
    story = started()
    story.state.agents[A].owes_search = True
    duty = story.ask(A, Search)
    story.say(A, ev.DutyFailed(duty=duty.id, why="no network"))
    assert isinstance(story.duty(A), Search)

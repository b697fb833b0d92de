"""The coordination core under every order of events that Hypothesis finds: nothing lost, nothing twice, and an end."""

from collections.abc import Iterator
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from simulated import Accident, Temper, World

from protocol import events as ev
from protocol.messages import DeviceInfo, Experiment, Outcome, Plan, Rest, Search, Stop, Verdict, VerifyLanding
from protocol.policy import Policy

INDEX = st.integers(0, 2)
TEMPERS = st.sampled_from(get_args(Temper))


class Team(RuleBasedStateMachine):
    """Three agents at most; the names of the rules are what may happen."""

    @initialize(
        seed=st.integers(0, 2**32),
        agents=st.integers(1, 3),
        experiments=st.integers(1, 9),
        dollars=st.sampled_from([None, 0.5, 1.0]),
        data=st.data(),
    )
    def start(self, seed: int, agents: int, experiments: int, dollars: float | None, data: st.DataObject) -> None:
        policy = Policy(
            max_experiments=experiments, looks=(8, 16, 32), round_experiments=3, max_dollars=dollars, duty_share=0.15
        )
        self.world = World(seed, agents, policy)
        for agent in self.world.agents.values():
            agent.temper = data.draw(TEMPERS | st.just("able"))

    def name(self, index: int) -> str:
        names = list(self.world.agents)
        return names[index % len(names)]

    @rule(index=INDEX, times=st.integers(1, 6))
    def an_agent_works(self, index: int, times: int) -> None:
        for _ in range(times):
            self.world.step(self.name(index))
            self.world.tick(0.1)

    @rule(index=INDEX)
    def an_agent_takes_one_step(self, index: int) -> None:
        self.world.step(self.name(index))

    @rule(index=INDEX)
    def an_agent_is_restarted(self, index: int) -> None:
        self.world.join(self.name(index))

    @rule(index=INDEX, noticed=st.booleans())
    def an_agent_dies(self, index: int, noticed: bool) -> None:
        self.world.die(self.name(index), noticed)

    @rule(index=INDEX)
    def a_report_comes_too_late(self, index: int) -> None:
        self.world.report_too_late(self.name(index))

    @rule()
    def a_report_comes_again(self) -> None:
        self.world.replay()

    @rule()
    def a_replaced_process_asks(self) -> None:
        self.world.zombie_asks()

    @rule(seconds=st.sampled_from([0.2, 1.0, 90.0, 200.0, -30.0]), crash=st.booleans())
    def time_passes(self, seconds: float, crash: bool) -> None:
        self.world.tick(seconds, crash)

    @rule(index=INDEX)
    def a_report_is_held_up(self, index: int) -> None:
        self.world.delay(self.name(index))

    @rule()
    def a_held_report_arrives(self) -> None:
        self.world.deliver()

    @rule(accident=st.sampled_from(get_args(Accident)))
    def the_coordinator_dies_in_the_next_call(self, accident: Accident) -> None:
        self.world.accident = accident

    @rule()
    def the_coordinator_leaves_a_snapshot(self) -> None:
        self.world.snapshot()

    @rule()
    def the_coordinator_is_killed(self) -> None:
        self.world.restart_coordinator()

    @precondition(lambda self: not self.world.coordination.state.stop)
    @rule()
    def the_user_stops(self) -> None:
        self.world.stop()

    @rule()
    def everything_is_killed_and_resumed(self) -> None:
        self.world.resume()

    @invariant()
    def the_law_holds(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        """Whatever happened, letting the agents work ends the campaign; one of them never comes back."""
        if not hasattr(self, "world"):
            return
        try:
            names = list(self.world.agents)
            absent = frozenset(names[1:2]) if self.world.random.random() < 0.5 else frozenset[str]()
            assert self.world.run_to_the_end(absent)
        finally:
            self.world.close()


TestTeam = Team.TestCase
TestTeam.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.lists(TEMPERS, min_size=1, max_size=3), st.integers(1, 12))
def test_every_kind_of_team_comes_to_an_end(seed: int, tempers: list[Temper], experiments: int) -> None:
    world = World(seed, len(tempers), Policy(max_experiments=experiments, looks=(8, 16, 32)))
    for agent, temper in zip(world.agents.values(), tempers, strict=True):
        agent.temper = temper
    why = world.run_to_the_end()
    assert "budget" in why or "no agent" in why
    world.close()


# ---------------------------------------------------------------- one story each


@pytest.fixture
def world() -> Iterator[World]:
    world = World(seed=7)
    yield world
    world.check()
    world.close()


def ready(world: World) -> tuple[str, str]:
    """Both agents have joined and measured their baselines."""
    one, two = world.agents
    for name in (one, two):
        for _ in range(3):
            world.step(name)
    return one, two


def ask(world: World, name: str) -> object:
    agent = world.agents[name]
    while agent.duty is None:
        world.step(name)
    return agent.duty


def test_a_repeated_request_costs_no_duty_even_after_its_report(world: World) -> None:
    one, _ = ready(world)
    life = world.agents[one].incarnation
    first = world.coordination.next_duty(one, life, "ask")
    assert isinstance(first, Experiment)
    assert world.coordination.next_duty(one, life, "ask") == first
    world.coordination.admit(one, first.id, plan(), ("c1",), 0.0)
    world.coordination.report(one, ev.NothingProposed(experiment=first.id, why="given up"))
    assert isinstance(world.coordination.next_duty(one, life, "ask"), Rest)
    assert isinstance(world.coordination.next_duty(one, life, "another"), Experiment)


def test_a_process_that_was_replaced_cannot_take_its_successors_duty(world: World) -> None:
    one, _ = ready(world)
    old = world.agents[one].incarnation
    world.join(one)
    duty = ask(world, one)
    assert isinstance(world.coordination.next_duty(one, old, "late"), Stop)
    assert world.coordination.state.agents[one].open is not None
    assert world.coordination.state.agents[one].open.duty == duty


def test_a_dead_process_gets_no_duty(world: World) -> None:
    one, _ = ready(world)
    life = world.agents[one].incarnation
    world.coordination.lost(one, "killed")
    assert isinstance(world.coordination.next_duty(one, life, "late"), Stop)
    assert world.coordination.state.agents[one].open is None


def plan(**more: str) -> Plan:
    words = dict.fromkeys(("bottleneck", "evidence", "change", "mechanism", "disproof", "fallback"), "words")
    fields = {"technique": "t", "category": "loops", "expected_gain": 0.1, "cell": "x", **more}
    return Plan.model_validate({**words, **fields})


def test_an_experiment_has_one_plan(world: World) -> None:
    one, _ = ready(world)
    duty = ask(world, one)
    assert isinstance(duty, Experiment)
    admit = world.coordination.admit
    assert admit(one, duty.id, plan(), ("c1",), 0.0) == ""
    assert admit(one, duty.id, plan(), ("c1",), 0.0) == ""
    assert "one plan already" in admit(one, duty.id, plan(technique="u"), ("c2",), 0.0)
    assert world.coordination.state.numbered == 1


def test_a_refused_plan_is_on_record_with_its_cost_and_may_be_mended(world: World) -> None:
    one, _ = ready(world)
    duty = ask(world, one)
    assert isinstance(duty, Experiment)
    admit, state = world.coordination.admit, world.coordination.state
    for _ in range(2):  # sent twice, paid once
        assert "nobody reported" in admit(one, duty.id, plan(cites="s99"), ("c1",), 0.25)
    assert (state.numbered, state.dollars, len(state.experiments[duty.id].refused)) == (0, 0.25, 1)
    assert admit(one, duty.id, plan(), ("c1",), 0.25) == ""
    assert (state.numbered, state.dollars) == (1, 0.5)


def test_rounds_end_on_the_way(world: World) -> None:
    world.run_to_the_end()
    state = world.coordination.state
    assert state.rounds == len(state.verdicts) // state.policy.round_experiments == 2
    assert state.main_measured


def test_what_runs_when_everything_dies_is_lost_with_a_verdict(world: World) -> None:
    one, _ = ready(world)
    duty = ask(world, one)
    assert isinstance(duty, Experiment)
    world.coordination.admit(one, duty.id, plan(), ("c1",), 0.0)
    world.resume()
    assert world.coordination.state.experiments[duty.id].verdict is Verdict.LOST
    assert world.coordination.state.landings == {}


def test_giving_up_after_the_plan_was_admitted_leaves_a_verdict_and_no_gap(world: World) -> None:
    one, _ = ready(world)
    duty = ask(world, one)
    assert isinstance(duty, Experiment)
    world.coordination.admit(one, duty.id, plan(), ("c1",), 0.0)
    world.coordination.report(one, ev.NothingProposed(experiment=duty.id, why="three judges died"))
    judged = world.coordination.state.judged
    assert [(e.number, e.verdict) for e in judged] == [(1, Verdict.CRASHED)]


def test_a_report_without_an_admitted_plan_is_no_experiment(world: World) -> None:
    one, _ = ready(world)
    duty = ask(world, one)
    assert isinstance(duty, Experiment)
    world.coordination.report(one, world._perform(world.agents[one], duty))
    assert world.coordination.state.judged == []
    assert world.coordination.state.agents[one].open is None


def test_a_report_must_answer_its_duty(world: World) -> None:
    one, _ = ready(world)
    duty = ask(world, one)
    assert isinstance(duty, Experiment)
    before = world.coordination.state.last_seq
    with pytest.raises(ValueError, match="does not answer"):
        world.coordination.report(one, ev.BaselineRefused(duty=duty.id, why="confused"))
    assert world.coordination.state.last_seq == before


def test_a_verification_must_be_of_the_landing_that_was_asked_for(world: World) -> None:
    name, duty = _verification(world)
    body = world._perform(world.agents[name], duty)
    assert isinstance(body, ev.LandingMeasured)
    with pytest.raises(ValueError, match="does not answer"):
        world.coordination.report(name, body.model_copy(update={"experiment": "another"}))


def _verification(world: World) -> tuple[str, VerifyLanding]:
    ready(world)
    for _ in range(500):
        for name, agent in world.agents.items():
            if isinstance(agent.duty, VerifyLanding):
                return name, agent.duty
            world.step(name)
            world.tick(0.1)
    raise AssertionError("no landing in 500 steps")


def test_a_dead_verifier_is_replaced(world: World) -> None:
    name, duty = _verification(world)
    world.die(name, noticed=True)
    (other,) = world.agents.keys() - {name}
    for _ in range(20):
        world.step(other)
        if isinstance(world.agents[other].duty, VerifyLanding):
            break
    found = world.agents[other].duty
    assert isinstance(found, VerifyLanding)
    assert found.candidate == duty.candidate
    assert found.id != duty.id


def test_a_killed_coordinator_lands_once(world: World) -> None:
    name, _ = _verification(world)
    world.step(name)
    before = world.git.main
    world.tick(crash=True)
    if world.git.main != before:
        assert world.coordination.state.main == before, "git moved, the ledger does not know yet"
    world.tick()
    assert world.coordination.state.main == world.git.main
    assert len({landed.commit for landed in world.coordination.state.landed}) == len(world.coordination.state.landed)


def test_time_away_is_no_time_spent_even_with_a_duty_open() -> None:
    world = World(seed=1, policy=Policy(max_minutes=10.0, max_experiments=None))
    one, _ = ready(world)
    ask(world, one)
    for agent in world.agents.values():
        agent.die()
    world.now += 86_400.0
    world.restart_coordinator()
    world.coordination.resume()
    for name in world.agents:
        assert isinstance(ask(world, name), Experiment)
    world.check()
    world.close()


def test_a_baseline_that_differs_from_itself_stops_the_campaign(world: World) -> None:
    one, _ = world.agents
    world.step(one)
    world.step(one)
    body = world._perform(world.agents[one], world.agents[one].duty)
    assert isinstance(body, ev.BaselineMeasured)
    world.coordination.report(one, body.model_copy(update={"null_kept": True}))
    assert "too disturbed" in world.coordination.state.finished


@pytest.mark.parametrize(("planted", "floor"), [(0.0, 0.04), (0.1, 0.2)])
def test_nothing_near_a_planted_gain_that_was_missed_is_claimed(world: World, planted: float, floor: float) -> None:
    one, _ = world.agents
    world.step(one)
    world.step(one)
    body = world._perform(world.agents[one], world.agents[one].duty)
    assert isinstance(body, ev.BaselineMeasured)
    assert body.noise.floor < floor
    world.coordination.report(one, body.model_copy(update={"planted_found": False, "planted_gain": planted}))
    assert world.coordination.state.noise[body.device].floor == pytest.approx(floor)


def test_a_search_is_not_skipped_by_asking_again_or_dying() -> None:
    world = World(seed=3, agents=1, policy=Policy(max_experiments=20, looks=(8, 16, 32)))
    (one,) = world.agents
    world.agents[one].temper = "crashing"
    while not isinstance(world.agents[one].duty, Search):
        world.step(one)
    for _ in range(3):
        world.join(one)
        assert isinstance(ask(world, one), Search)
    world.restart_coordinator()
    world.agents[one].duty = None
    assert isinstance(ask(world, one), Search)
    world.check()
    world.close()


def test_an_agent_of_no_campaign_is_refused_before_anything_is_written(world: World) -> None:
    before = world.coordination.state.last_seq
    with pytest.raises(KeyError):
        world.coordination.join("nobody", "i", DeviceInfo(kind="cpu", id="x", name="y"), 1)
    assert world.coordination.state.last_seq == before


def test_an_unmeasured_outcome_has_no_decision(world: World) -> None:
    one, _ = ready(world)
    duty = ask(world, one)
    assert isinstance(duty, Experiment)
    world.coordination.admit(one, duty.id, plan(), ("c1",), 0.0)
    world.git.commit("c1", duty.base, 1.0)
    world.git.wrong["c1"] = Outcome.TAMPERED
    measured = world._measure(duty.base, "c1")
    body = ev.ExperimentReported(experiment=duty.id, commit="c1", parameters={}, screened=(), measurement=measured)
    world.coordination.report(one, body)
    assert world.coordination.state.experiments[duty.id].verdict is Verdict.TAMPERED
    assert not world.coordination.state.landings

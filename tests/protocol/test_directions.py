"""Directions: disjoint, never owned twice, and every agent ends up with one or rests for a stated reason."""

from hypothesis import given, settings
from hypothesis import strategies as st
from story import A, B, Story, plan

from protocol import events as ev
from protocol.admission import refusal
from protocol.briefing import briefing_of
from protocol.counters import closed_for
from protocol.directions import current, due, from_search, propose, theme_of
from protocol.duties import ending
from protocol.messages import (
    Category,
    Experiment,
    Rest,
    Role,
    SearchReport,
    Source,
    Standing,
    Strategy,
    SweepItem,
    Verdict,
)
from protocol.policy import Policy
from protocol.sweep import due_items

LAW = Policy(max_experiments=None, round_experiments=4)
POOL = {"tiles": Role.EXPLORER, "fusion": Role.EXPLORER, "knobs": Role.EXPLOITER, "unrolling": Role.EXPLOITER}
C, D, E, F = "explorer-2", "explorer-3", "exploiter-2", "exploiter-3"


def team(*agents: str, pool: dict[str, Role] = POOL) -> Story:
    story = Story(LAW, agents or (A, B))
    story.state.categories = {name: Category(name=name, role=role, about=f"{name}!") for name, role in pool.items()}
    return story.join().baselines()


def direct(story: Story, agent: str) -> str:
    """What the coordinator does before an experiment; the agent's direction in a word."""
    for owner, body in due(story.state, agent, story.now):
        story.say(owner, body)
    mine = current(story.state, agent)
    return mine.claim.name if mine else ""


def nothing(story: Story, agent: str) -> None:
    """The agent's mind has no idea for its direction."""
    direct(story, agent)
    duty = story.ask(agent, Experiment)
    story.say(agent, ev.NothingProposed(experiment=duty.id, why="none"))


def claims(story: Story) -> dict[str, tuple[str, ...]]:
    return {d.claim.owner: d.claim.allowed for d in story.state.directions.values() if d.standing is Standing.OPEN}


# ---------------------------------------------------------------- what is outside


def test_what_is_outside_its_direction_is_closed_to_an_agent() -> None:
    story = team()
    direct(story, A)
    story.ask(A, Experiment)
    assert closed_for(story.state, story.state.agents[A]) == {"knobs", "unrolling"}
    assert briefing_of(story.state, A, "base").closed_categories == ("knobs", "unrolling")


def test_a_category_closed_outside_its_direction_excuses_no_lack_of_ideas() -> None:
    story = team()
    direct(story, A)
    streaks = story.state.agents[A].streaks
    streaks.category, streaks.category_reverts = "knobs", story.state.policy.close_category_after
    nothing(story, A)
    assert story.state.agents[A].exhausted_on == "base", "the closed one was none of its own to try"
    assert streaks.category_reverts, "and stays closed"


def test_an_abandoned_approach_stays_abandoned_in_the_rounds_that_go_on_with_its_direction() -> None:
    story = team()
    direct(story, A)
    for _ in range(3):
        duty = Experiment(id=f"x{story.state.duties + 1}", base="base", direction=story.state.agents[A].direction)
        story.give(A, duty)
        story.say(A, ev.PlanAdmitted(experiment=duty.id, plan=plan("mma", "tiles"), commits=("c",)))
        story.judge(A, duty.id, Verdict.CRASHED)
    assert story.state.abandoned == [("mma", "structure")]
    first = story.state.agents[A].direction
    story.say(A, ev.DirectionClosed(direction=first, standing=Standing.CLOSED, why="undecided", goes_on=True))
    story.state.agents[A].spent, story.state.agents[A].exhausted_on = {"fusion"}, "base"
    story.say("", ev.RoundEnded(number=1, recap=()))
    story.state.agents[A].owes_search = False
    assert direct(story, A) == "tiles", "what goes on is narrower and has another name"
    story.ask(A, Experiment)
    assert theme_of(story.state, story.state.agents[A].direction) == "structure"
    assert "abandoned" in str(refusal(story.state, A, plan("mma", "tiles", differs="smaller"), "base"))
    assert briefing_of(story.state, A, "base").abandoned == ("mma",)


def test_who_found_nothing_anywhere_sweeps_what_no_other_agent_holds() -> None:
    story = team()
    items = tuple(SweepItem(name=f"{name}-item", title="small", categories=(name,)) for name in POOL)
    story.state.start = story.state.started.model_copy(update={"strategy": Strategy(sweep=items)})
    direct(story, A)
    found = story.state.agents[A]
    for agent, body in propose(story.state, A, "one", "", ("fusion",), "test"):
        story.say(agent, body)
    found.exhausted_on, found.spent, found.sweeping = "base", set(POOL), True
    assert [item.name for item in due_items(story.state, found)] == ["tiles-item", "fusion-item"], "leaves it to sweep"
    story.ask(B, Experiment)
    assert direct(story, A) == ""
    story.ask(A, Experiment)
    assert "belongs to exploiter-1" in str(refusal(story.state, A, plan("knob", "knobs", sweep="tiles-item"), "base"))
    assert refusal(story.state, A, plan("tile", "tiles", sweep="tiles-item"), "base") is None


def test_who_seconds_and_found_nothing_anywhere_is_not_asked_for_ever() -> None:
    story = team()
    items = tuple(SweepItem(name=f"{name}-item", title="small", categories=(name,)) for name in POOL)
    story.state.start = story.state.started.model_copy(update={"strategy": Strategy(sweep=items)})
    nothing(story, A)
    assert direct(story, A) == "tuning", "it seconds the other's, and holds nothing of its own"
    asked = 0
    while not isinstance(story.duty(A), Rest):
        nothing(story, A)
        asked += 1
        assert asked <= 2 * len(POOL), "each time it finds nothing, something is done with"
    assert {"tiles-item", "fusion-item"} <= set(story.state.swept), "what nobody holds was swept first"


# ---------------------------------------------------------------- the deal


def test_a_pair_divides_everything_by_role() -> None:
    story = team()
    assert direct(story, A) == "structure"
    assert claims(story) == {A: ("tiles", "fusion"), B: ("knobs", "unrolling")}
    first = current(story.state, A)
    assert first is not None
    assert first.claim.forbidden == ("knobs", "unrolling")
    assert first.claim.about == "tiles: tiles!; fusion: fusion!"
    assert first.claim.round == 1
    assert due(story.state, B, story.now) == []


def test_an_agent_by_itself_gets_everything() -> None:
    story = team(A)
    assert direct(story, A) == "everything"


def test_a_larger_team_is_cut_finer_and_the_rest_second() -> None:
    story = team(A, B, C, D, E, F)
    direct(story, A)
    assert claims(story) == {A: ("tiles",), C: ("fusion",), B: ("knobs",), E: ("unrolling",)}
    for agent, owner in ((D, A), (F, B)):
        mine = current(story.state, agent)
        assert mine is not None
        assert mine.claim.owner == owner, "seconds a direction of its own role"
        assert agent in mine.seconds


def test_agents_without_a_share_cut_the_widest_before_they_second() -> None:
    story = team(A, C, D)
    direct(story, A)
    assert sorted(len(share) for share in claims(story).values()) == [1, 1, 2]


def test_nobody_has_a_direction_in_a_campaign_without_categories() -> None:
    story = team(pool={})
    assert direct(story, A) == ""
    assert story.ask(A, Experiment).direction == ""


# ---------------------------------------------------------------- what a direction permits


def test_a_plan_must_keep_to_its_agents_direction() -> None:
    story = team()
    direct(story, A)
    assert refusal(story.state, A, plan(category="tiles"), "base") is None
    why = refusal(story.state, A, plan(category="knobs"), "base")
    assert why == "category 'knobs' is outside direction 'structure': choose one of tiles, fusion"
    told = briefing_of(story.state, A, "base")
    assert (told.allowed_categories, told.forbidden_categories) == (("tiles", "fusion"), ("knobs", "unrolling"))
    assert told.direction.startswith("structure: ")


def test_an_experiment_outlives_its_direction() -> None:
    story = team()
    direct(story, A)
    duty = story.ask(A, Experiment)
    mine = current(story.state, A)
    assert mine is not None
    assert duty.direction == mine.claim.id
    story.say(A, ev.DirectionClosed(direction=duty.direction, standing=Standing.FAILED, why="w"))
    assert refusal(story.state, A, plan(category="tiles"), "base") is None
    assert refusal(story.state, A, plan(category="knobs"), "base") is not None


# ---------------------------------------------------------------- nobody starves


def test_who_finds_nothing_leaves_its_direction_and_seconds_when_nothing_is_unclaimed() -> None:
    story = team()
    nothing(story, A)
    assert direct(story, A) == "tuning"
    left = story.state.directions["d1"]
    assert (left.standing, left.why) == (Standing.CLOSED, "nothing admissible is left in it on base")
    assert claims(story) == {B: ("knobs", "unrolling")}
    assert refusal(story.state, A, plan(category="knobs"), "base") is None
    nothing(story, A)
    assert due(story.state, A, story.now) == []
    assert isinstance(story.duty(A), Rest)
    assert ending(story.state, story.now) == "", "the other still has its own"
    nothing(story, B)
    assert direct(story, B) == "structure", "what the first one left is unclaimed, and fresh for the second"
    nothing(story, B)
    assert ending(story.state, story.now) == "no agent has another admissible idea"


def test_a_direction_that_was_left_with_a_keep_is_won() -> None:
    story = team()
    direct(story, A)
    duty = story.ask(A, Experiment)
    story.say(A, ev.PlanAdmitted(experiment=duty.id, plan=plan(category="tiles"), commits=("c",)))
    story.judge(A, duty.id, Verdict.KEEP, 0.03)
    nothing(story, A)
    direct(story, A)
    assert story.state.directions["d1"].standing is Standing.WON


def test_a_moved_main_makes_what_was_left_fresh_and_a_second_an_owner_again() -> None:
    story = team()
    nothing(story, A)
    assert direct(story, A) == "tuning"
    story.land(story.experiment(B, Verdict.KEEP, 0.03), A)
    assert direct(story, A) == "structure"
    assert claims(story) == {A: ("tiles", "fusion"), B: ("knobs", "unrolling")}


def test_the_direction_of_an_agent_that_is_gone_is_free() -> None:
    story = team()
    direct(story, B)
    story.say(A, ev.AgentLost(why="killed"))
    nothing(story, B)
    story.now += LAW.absent_after + 1.0
    assert direct(story, B) == "structure"
    assert claims(story) == {B: ("tiles", "fusion")}
    story.join(A)
    assert direct(story, A) == "tuning"
    assert claims(story) == {B: ("tiles", "fusion"), A: ("knobs", "unrolling")}


# ---------------------------------------------------------------- proposals


def propose_to(story: Story, agent: str, name: str, *allowed: str) -> str:
    for owner, body in propose(story.state, agent, name, "a person's idea", allowed, "a person"):
        story.say(owner, body)
    last = [e.body for e in story.events if isinstance(e.body, ev.DirectionProposed)][-1]
    return last.refused


def test_an_overlap_is_refused_with_the_holder_and_a_fresh_one_is_claimed() -> None:
    story = team()
    direct(story, A)
    why = propose_to(story, A, "mine", "knobs", "novel")
    assert why == f"category 'knobs' belongs to {B}'s direction 'tuning' in this round"
    assert claims(story)[A] == ("tiles", "fusion")
    assert propose_to(story, A, "mine", "novel", "tiles") == ""
    assert claims(story) == {A: ("novel", "tiles"), B: ("knobs", "unrolling")}
    assert "fusion" not in story.state.claims
    assert story.state.categories["novel"].role is Role.EXPLORER


def test_the_same_again_is_refused_and_a_purpose_without_categories_keeps_them() -> None:
    story = team()
    direct(story, A)
    assert propose_to(story, A, "smaller tiles") == ""
    assert claims(story)[A] == ("tiles", "fusion")
    assert "already" in propose_to(story, A, "smaller tiles")
    nothing(story, A)
    direct(story, A)
    assert "owns no direction" in propose_to(story, A, "anything")


def test_a_search_that_finds_a_new_kind_of_change_proposes_it() -> None:
    story = team()
    direct(story, A)
    source = Source(title="paper", locator="doi:1")
    found = {"id": "s1", "queries": ("q",), "sources": (source,), "technique": "swizzle", "why": "w"}
    known = SearchReport.model_validate({**found, "category": "tiles"})
    assert from_search(story.state, A, known) == ()
    story.say(A, *from_search(story.state, A, SearchReport.model_validate({**found, "category": "swizzles"})))
    assert claims(story) == {A: ("swizzles",), B: ("knobs", "unrolling")}


# ---------------------------------------------------------------- always


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(("nothing", "revert", "keep", "away", "propose", "round"))),
             max_size=25),
)  # fmt: skip
def test_no_direction_is_owned_twice_and_everybody_has_one_or_nothing_left(
    size: int, steps: list[tuple[int, str]]
) -> None:
    from protocol import rounds

    story = team(*(A, B, C, D, E)[:size])
    for index, what in steps:
        agent = story.agents[index % size]
        if what == "round":
            for owner, body in rounds.end(story.state):
                story.say(owner, body)
        elif what == "away":
            story.say(agent, ev.AgentLost(why="killed")) if story.state.agents[agent].alive else story.join(agent)
        elif what == "propose":
            propose_to(story, agent, f"idea {len(story.events)}", ("tiles", "knobs", "new")[index % 3])
        elif direct(story, agent):
            duty = Experiment(
                id=f"x{story.state.duties + 1}", base=story.state.head_of(agent),
                direction=story.state.agents[agent].direction,
            )  # fmt: skip
            story.give(agent, duty)
            if what == "nothing":
                story.say(agent, ev.NothingProposed(experiment=duty.id, why="none"))
            else:
                category = story.state.directions[duty.direction].claim.allowed[0]
                body = ev.PlanAdmitted(experiment=duty.id, plan=plan(category=category), commits=("c",))
                story.say(agent, body)
                story.judge(agent, duty.id, Verdict.KEEP if what == "keep" else Verdict.REVERT, 0.03)
        _holds(story)


def _holds(story: Story) -> None:
    opened = [d.claim for d in story.state.directions.values() if d.standing is Standing.OPEN]
    owners, names = [claim.owner for claim in opened], [name for claim in opened for name in claim.allowed]
    assert len(owners) == len(set(owners))
    assert len(names) == len(set(names))
    assert story.state.claims == {name: claim.id for claim in opened for name in claim.allowed}
    assert not any(set(claim.allowed) & set(claim.forbidden) for claim in opened)
    for agent in story.agents:
        if story.state.agents[agent].alive:
            named = direct(story, agent)
            assert named or story.state.agents[agent].spent >= set(story.state.categories)

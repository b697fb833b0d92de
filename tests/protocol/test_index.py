"""The index is the state read another way: whatever happens, it equals what the state alone gives."""

from hypothesis import given, settings
from hypothesis import strategies as st
from story import A, B, Story, plan, started
from test_state import EVENTS

from protocol import events as ev
from protocol.admission import refusal
from protocol.index import change_of, rebuilt
from protocol.messages import Baseline, Experiment, Rest, Verdict
from protocol.state import CampaignState, apply

AGENTS = st.sampled_from([A, B])


def test_an_eventful_campaign_is_indexed_at_every_event() -> None:
    state = CampaignState()
    for event in EVENTS:
        apply(state, event)
        assert state.index == rebuilt(state), event.body.kind


def deeds(story: Story, agent: str) -> dict[str, object]:
    """What may happen to an agent; an open experiment ends first where the story needs it closed."""
    return {
        "judged": lambda: [story.experiment(agent, verdict) for verdict in (Verdict.REVERT, Verdict.KEEP)],
        "crashed": lambda: story.experiment(agent, Verdict.CRASHED),
        "lost": lambda: story.say(agent, ev.AgentLost(why="killed")),
        "joined": lambda: story.join(agent),
        "resumed": lambda: story.say("", ev.Resumed()),
        "planned": lambda: open_plan(story, agent),
        "rests": lambda: story.give(agent, Rest(seconds=1.0, why="w")),
        "no idea": lambda: story.say(agent, ev.NothingProposed(experiment=open_plan(story, agent), why="none")),
        "settled": lambda: settle(story),
    }


def open_plan(story: Story, agent: str) -> str:
    duty = Experiment(id=f"x{story.state.duties + 1}", base=story.state.head_of(agent))
    story.give(agent, duty)
    story.say(agent, ev.PlanAdmitted(experiment=duty.id, plan=plan(), commits=("c",)))
    return duty.id


def settle(story: Story) -> None:
    for ident in list(story.state.landings)[:1]:
        story.say("", ev.LandingRefused(experiment=ident, why="slower"))


DEEDS = st.sampled_from(list(deeds(Story(), A)))


@settings(deadline=None)
@given(st.lists(st.tuples(AGENTS, DEEDS), max_size=25))
def test_the_index_follows_every_story(steps: list[tuple[str, str]]) -> None:
    story = started()
    for agent, deed in steps:
        deeds(story, agent)[deed]()  # pyright: ignore[reportCallIssue]
        assert story.state.index == rebuilt(story.state), deed
        waiting = {name: [i for i, one in story.state.landings.items() if one.agent == name] for name in (A, B)}
        assert {name: story.state.agents[name].unsettled for name in (A, B)} == waiting


def test_a_baseline_measures_every_agent_of_its_device() -> None:
    story = Story(agents=(A, B, "explorer-2")).join(A, B)
    shared = story.state.agents[A].device
    assert shared is not None
    story.say("explorer-2", ev.AgentJoined(incarnation="i", device=shared, pid=1))
    assert set(story.state.index.unmeasured) == {A, B, "explorer-2"}
    story.say(A, story.baseline(story.ask(A, Baseline).id, story.state.agents[A].member.device))
    assert set(story.state.index.unmeasured) == {B}
    assert story.state.index == rebuilt(story.state)


def test_a_change_in_flight_is_found_by_what_it_changes() -> None:
    story = started()
    open_plan(story, A)
    same = plan()
    assert list(story.state.index.running) == [change_of(story.state.main, same.technique, same.change)]
    assert f"{A} is running this very change" in (refusal(story.state, B, same, story.state.main) or "")


def test_the_state_holds_no_raw_samples() -> None:
    story = started()
    ident = story.experiment(A, Verdict.REVERT)
    held = story.state.experiments[ident].measurement
    assert held is not None
    assert held.checks
    assert held.restarts == ()
    assert all(one.measurement.restarts == () for one in story.state.baselines.values())

"""What a person may ask while a campaign runs: pause, go on, stop, wrap up; each once, and none of it lost."""

import pytest
from story import A, B, Story, started

from protocol import directions
from protocol import events as ev
from protocol.duties import ending, finished
from protocol.messages import Category, Experiment, Rest, Role, Stop, Verdict, VerifyLanding
from protocol.policy import Policy
from protocol.steering import Request, answer, objection, outlives


def ask(story: Story, kind: str) -> int:
    """Take in a request as the coordinator does; how many events it made."""
    return take(story, Request.model_validate({"kind": kind, "why": f"{kind} by hand"}))


def take(story: Story, request: Request) -> int:
    entries = answer(story.state, request)
    for agent, body in entries:
        story.say(agent, body)
    return len(entries)


def test_a_pause_gives_rest_to_everybody_and_ends() -> None:
    story = started()
    ask(story, "pause")
    for name in (A, B):
        duty = story.duty(name)
        assert isinstance(duty, Rest)
        assert "pause by hand" in duty.why
    ask(story, "resume")
    assert isinstance(story.duty(A), Experiment)


def test_a_pause_waits_before_the_baseline_and_for_landings_too() -> None:
    story = Story().join()
    ask(story, "pause")
    assert isinstance(story.duty(A), Rest)
    ask(story, "resume")
    story.baselines()
    story.prepare(story.experiment(A, Verdict.KEEP, 0.03))
    ask(story, "pause")
    assert isinstance(story.duty(B), Rest)
    ask(story, "resume")
    assert isinstance(story.duty(B), VerifyLanding)


def test_a_person_ends_the_rounds_once() -> None:
    story = started()
    story.state.categories = {"loops": Category(name="loops", role=Role.EXPLORER)}
    for agent, body in directions.due_to_all(story.state):
        story.say(agent, body)
    assert story.state.claims
    assert ask(story, "end-rounds") == 2
    assert (story.state.team_over, story.state.claims) == ("end-rounds by hand", {})
    assert ask(story, "end-rounds") == 0
    assert isinstance(story.duty(A), Experiment), "everybody works on"


@pytest.mark.parametrize(("kind", "why"), [("stop", "stop by hand"), ("wrap-up", "wrap-up by hand")])
def test_an_end_drains_and_ends_a_pause(kind: str, why: str) -> None:
    story = started()
    running = story.ask(A, Experiment)
    ask(story, "pause")
    ask(story, kind)
    assert ending(story.state, story.now) == why
    waits = story.duty(B)  # A still runs
    assert isinstance(waits, Rest)
    assert waits.why == "the last duties are being done", "and no longer for the pause to end"
    assert finished(story.state, story.now) == ""
    story.say(A, ev.NothingProposed(experiment=running.id, why="no idea"))
    assert story.duty(B) == Stop(why=why)
    assert finished(story.state, story.now) == why


@pytest.mark.parametrize("kind", ["stop", "pause", "wrap-up"])
def test_the_same_request_again_changes_nothing(kind: str) -> None:
    story = started()
    assert ask(story, kind) == 1
    assert ask(story, kind) == 0


def test_going_on_without_a_pause_changes_nothing() -> None:
    story = started()
    assert ask(story, "resume") == 0
    ask(story, "pause")
    assert ask(story, "resume") == 1
    assert ask(story, "resume") == 0
    assert ask(story, "pause") == 1


def test_a_pause_costs_no_time() -> None:
    story = started(Policy(max_minutes=1.0))
    ask(story, "pause")
    story.now += 600.0
    assert ending(story.state, story.now) == ""
    ask(story, "resume")
    assert ending(story.state, story.now) == ""
    story.now += 60.0
    assert "minutes" in ending(story.state, story.now)


def test_a_pause_that_outlived_its_campaign_ends_with_its_resumption() -> None:
    story = started(Policy(max_minutes=1.0))
    ask(story, "pause")
    story.now += 600.0
    story.say(A, ev.AgentLost(why="killed"))
    story.now += 600.0
    story.say("", ev.Resumed())
    assert not story.state.paused
    assert ending(story.state, story.now) == ""
    story.join()
    assert isinstance(story.duty(A), Experiment)


def test_a_wrap_up_stands_until_it_is_carried_out() -> None:
    story = started()
    ask(story, "wrap-up")
    story.say("", ev.Resumed())
    assert ending(story.state, story.now) == "wrap-up by hand"
    story.say("", ev.Finished(why="wrap-up by hand"), ev.Resumed())
    assert ending(story.state, story.now) == ""


def test_what_outlives_a_dead_campaign_when_nobody_took_it_in() -> None:
    kinds = ("stop", "pause", "resume", "wrap-up", "direct")
    left = [kind for kind in kinds if outlives(Request.model_validate({"kind": kind, "why": "x"}))]
    assert left == ["wrap-up", "direct"]


def directed() -> Story:
    """A campaign with categories, whose first directions are dealt."""
    story = started()
    pool = {"tiles": Role.EXPLORER, "fusion": Role.EXPLORER, "knobs": Role.EXPLOITER, "unrolling": Role.EXPLOITER}
    story.state.categories = {name: Category(name=name, role=role, about=name) for name, role in pool.items()}
    for name in (A, B):
        for agent, body in directions.due(story.state, name, story.now):
            story.say(agent, body)
    return story


def word(agent: str, words: str, *categories: str) -> Request:
    return Request(kind="direct", why="a person", agent=agent, words=words, categories=categories)


def test_a_persons_direction_is_claimed_once() -> None:
    story = directed()
    asked = word(A, "keep the whole row in registers", "tiles")
    assert take(story, asked) > 0
    mine = directions.current(story.state, A)
    assert mine is not None
    assert (mine.claim.about, mine.claim.allowed) == ("keep the whole row in registers", ("tiles",))
    assert take(story, asked) == 0


def test_a_direction_that_overlaps_another_is_refused_on_record() -> None:
    story = directed()
    before = directions.current(story.state, A)
    take(story, word(A, "try other knobs", "knobs"))
    said = story.events[-1].body
    assert isinstance(said, ev.DirectionProposed)
    assert "belongs to" in said.refused
    assert directions.current(story.state, A) == before


@pytest.mark.parametrize(
    ("agent", "words", "says"),
    [
        ("nobody", "tile it", "no agent 'nobody'"),
        (A, "   ", "says nothing"),
        (A, "for (int i = 0; i < n; i++) y[i] = x[i];", "never code"),
        (A, "use __shared__ float tile[32]", "never code"),
        (A, "#include <immintrin.h>", "never code"),
        (A, "solve { return }", "never code"),
        (A, "tile " * 200, "at most"),
    ],
)
def test_what_is_no_direction(agent: str, words: str, says: str) -> None:
    story = directed()
    assert says in objection(story.state, word(agent, words, "tiles"))
    assert take(story, word(agent, words, "tiles")) == 0


@pytest.mark.parametrize("words", ["tile it; then use wider loads", "if rows fit, keep them (all) in registers"])
def test_prose_is_no_code(words: str) -> None:
    assert objection(directed().state, word(A, words, "tiles")) == ""

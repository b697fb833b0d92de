"""The champion of a race, and runners-up found again in the hub."""

from protocol.messages import Measurement, Outcome, Runnerup
from team.race import Raced, in_words, with_texts
from team.workspace.hub import Hub

SEEN = Measurement(outcome=Outcome.MEASURED)


def test_the_largest_gain_wins_and_the_lower_number_where_equal() -> None:
    assert Raced([SEEN] * 4, [None, 0.1, 0.2, 0.2]).champion == 2
    assert Raced([SEEN], [None]).champion is None


def test_a_runner_up_comes_with_its_text_and_a_stranger_is_left_out(hub: Hub) -> None:
    parameters = {"tile": 32, "site": "kernel.cpp:loop i"}
    trailers = {"Experiment": "E1", "Parameters": in_words(parameters)}
    commit = hub.commit(hub.main, {"kernel.cpp": "// tiled\n"}, "tile", trailers, ["kernel.cpp"])
    hub.anchor(f"experiments/E1/{commit[:16]}", commit)
    known = Runnerup(experiment="E1", technique="tile", parameters=parameters, gain=0.1)
    stranger = known.model_copy(update={"experiment": "E2"})
    (found,) = with_texts(hub, ["kernel.cpp"], [known, stranger])
    assert found.files == {"kernel.cpp": "// tiled\n"}

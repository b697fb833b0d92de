"""Who leaves a race, and which of its losers are kept for later."""

from math import log1p

from story import NOISE, A, plan

from protocol.messages import TEXT, PastExperiment, Restart, Role, Verdict
from protocol.pairs import Pair
from protocol.policy import Policy
from protocol.race import frontier, settings_worth_building, still_racing

QUIET = Policy()


def restarts(gain: float, scatter: float = 0.001, count: int = 2) -> list[Restart]:
    def pair(number: int) -> Pair:
        factor = 1.0 + gain + scatter * (-1) ** number
        return Pair(candidate_first=number % 4 < 2, base_ns=1000.0 * factor, candidate_ns=1000.0)

    return [Restart.of({"w": tuple(pair(number + turn) for number in range(4))}) for turn in range(count)]


def test_a_variant_that_cannot_win_leaves_and_a_close_one_stays() -> None:
    samples = {0: restarts(0.10), 1: restarts(0.02), 2: restarts(0.0995)}
    assert still_racing(samples, {"w": 1.0}, NOISE, QUIET) == {0, 2}


def test_one_restart_without_calibration_excludes_nobody() -> None:
    samples = {0: restarts(0.10, count=1), 1: restarts(0.02, count=1)}
    assert still_racing(samples, {"w": 1.0}, None, QUIET) == {0, 1}


def test_nobody_is_left_of_nobody() -> None:
    assert still_racing({}, {"w": 1.0}, None, QUIET) == frozenset()


def test_settings_are_as_many_as_the_compilers_build_in_the_time_of_a_screening() -> None:
    law = Policy(screening_s=4.0, settings=64, variants=4)
    assert settings_worth_building(law, 16, None) == 16
    assert settings_worth_building(law, 16, 2.0) == 32
    assert settings_worth_building(law, 16, 0.1) == 64
    assert settings_worth_building(law, 1, 30.0) == 4
    assert settings_worth_building(law.model_copy(update={"settings": 2}), 16, 0.1) == 2


def past(name: str, champion: str, seen: dict[str, float | None]) -> PastExperiment:
    return PastExperiment(
        id=name, agent=A, role=Role.EXPLOITER, plan=plan(), verdict=Verdict.KEEP, reason="", base="b", commit="c",
        parameters={TEXT: champion}, screened=tuple(({TEXT: text}, gain) for text, gain in seen.items()),
    )  # fmt: skip


def test_the_frontier_holds_what_ran_won_and_was_no_champion() -> None:
    first = past("E1", "a", {"a": 0.5, "b": 0.3, "failed": None, "slower": -0.1, "c": 0.2})
    second = past("E2", "c", {"c": 0.4, "d": log1p(0.01), "b": 0.35})
    found = frontier([first, second], QUIET)
    assert [(one.experiment, one.parameters[TEXT], one.gain) for one in found] == [
        ("E2", "b", 0.35),
        ("E2", "d", log1p(0.01)),
    ]
    assert len(frontier([first, second], Policy(frontier=1))) == 1


def test_what_lies_far_behind_the_fastest_on_its_base_is_no_start() -> None:
    """Four of 17 experiments polished variants sixteen times slower than main: the best of a race that another beat."""
    polish, structure = past("E1", "p", {"p": 0.42, "q": 0.4}), past("E2", "a", {"a": 2.8, "near": 2.4, "far": 0.3})
    assert [one.parameters[TEXT] for one in frontier([polish, structure], Policy(frontier_reach=0.5))] == ["near"]
    assert len(frontier([polish, structure], Policy(frontier_reach=3.0))) == 3
    assert [one.parameters[TEXT] for one in frontier([polish], QUIET)] == ["q"]


def test_of_many_settings_of_one_text_the_fastest_alone_is_a_start() -> None:
    settings = past("E1", "a", {"a": 0.5, **{f"s{number}": 0.49 - 0.01 * number for number in range(QUIET.variants)}})
    other = past("E2", "x", {"x": 0.46, "built differently": 0.3})
    assert [one.parameters[TEXT] for one in frontier([settings, other], QUIET)] == ["s0", "built differently"]

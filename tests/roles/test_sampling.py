"""Which settings are tried: spread at first, then near what was fast, and nothing twice."""

from collections import Counter
from collections.abc import Mapping
from itertools import islice, product

from protocol.messages import Parameter
from roles.techniques.sampling import Setting, Told, settings

CHOICES: dict[str, tuple[Parameter, ...]] = {
    "tile_m": (32, 64, 128),
    "tile_n": (32, 64, 128),
    "tile_k": (8, 16, 32),
    "work": (4, 8),
    "unrolled": (1, 4, 8, 32),
    "skew": (1, 2),
}
BEST = {"tile_m": 128, "tile_n": 64, "tile_k": 16, "work": 8, "unrolled": 4, "skew": 2}


def gain(setting: Setting) -> float:
    """Log gain of a setting: what is right counts, and some things only together."""
    right = {name: setting[name] == value for name, value in BEST.items()}
    pairs = [("tile_m", "work"), ("tile_k", "skew"), ("tile_n", "unrolled")]
    return 0.1 * sum(right.values()) + sum(0.2 if right[one] and right[other] else -0.05 for one, other in pairs)


def rounds(count: int, each: int) -> list[list[Setting]]:
    """Experiments of ``each`` settings, all of which are told to the next."""
    told: list[Told] = []
    seen: list[list[Setting]] = []
    for number in range(count):
        asked = list(islice(settings(CHOICES, (), told, number), each))
        told += [(one, gain(one)) for one in asked]
        seen.append(asked)
    return seen


def test_the_first_settings_are_spread_over_every_choice() -> None:
    first = list(islice(settings(CHOICES, (), (), 3), 48))
    for name, values in CHOICES.items():
        times = Counter(one[name] for one in first)
        share = len(first) / len(values)
        assert all(0.5 * share <= times[value] <= 1.6 * share for value in values), (name, times)


def test_later_settings_come_near_the_fastest_and_find_the_best() -> None:
    seen = rounds(5, 24)
    means = [sum(map(gain, each)) / len(each) for each in seen]
    assert means[1] > means[0]
    assert means[3] > means[0] + 0.2
    assert BEST in [one for each in seen for one in each]


def test_nothing_is_proposed_twice() -> None:
    every = [tuple(one.items()) for each in rounds(6, 40) for one in each]
    assert len(set(every)) == len(every) == 240


def test_every_sound_setting_comes_in_the_end() -> None:
    few = {name: values[:2] for name, values in CHOICES.items()}

    def sound(setting: Mapping[str, Parameter]) -> bool:
        return setting["tile_m"] != setting["tile_n"]

    told: list[Told] = [
        (one, None if at % 5 else gain(one)) for at, one in enumerate(islice(settings(few, (), (), 0), 20))
    ]
    left = [tuple(one.items()) for one in settings(few, (), told, 0, sound)]
    whole = [dict(zip(few, values, strict=True)) for values in product(*few.values())]
    known = {tuple(one.items()) for one, _ in told}
    assert {*left} == {tuple(one.items()) for one in whole if sound(one)} - known
    assert len({*left}) == len(left) > 10

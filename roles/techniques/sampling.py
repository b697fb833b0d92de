"""Parameter settings to try next: the card's presets, then a spread of the space, then what the measured ones suggest.

The first settings are spread by a sequence of low discrepancy. As soon as some have been measured, three sources take
turns: neighbours of the fastest, which differ in one choice; Optuna's TPE, told of every setting measured so far; and,
less often, the spread, so that no corner is lost because nobody looked there. Nothing told is proposed again.

The study is rebuilt from the history each time, so a restarted process proposes what the old one would have.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice, product

from protocol.messages import Parameter
from roles.techniques.transform import Choices, Sound, always

Setting = dict[str, Parameter]
Told = tuple[Mapping[str, Parameter], float | None]
_FAILED = -3.0
_ATTEMPTS = 12  # questions to the study beyond which its answers are taken for repetitions, when none was new
_DRAWS = 200
_TURNS = "nnannans"  # of neighbours, answers of the study, and the spread


def settings(
    choices: Choices,
    presets: Iterable[Mapping[str, Parameter]],
    told: Sequence[Told],
    seed: int,
    sound: Sound = always,
) -> Iterator[Setting]:
    """Sound settings that have not been told yet, distinct, best guesses first, until none is left.

    A preset names only what it cares about; the rest takes the defaults.
    """
    if not choices:
        yield from () if told else ({},)
        return
    seen = {_key(parameters, choices) for parameters, _ in told}
    for candidate in _candidates(choices, presets, told, seed):
        key = _key(candidate, choices)
        valid = all(candidate.get(name) in values for name, values in choices.items())
        if valid and key not in seen and sound(candidate):
            seen.add(key)
            yield {name: candidate[name] for name in choices}


def _candidates(
    choices: Choices, presets: Iterable[Mapping[str, Parameter]], told: Sequence[Told], seed: int
) -> Iterator[Setting]:
    default = {name: values[0] for name, values in choices.items()}
    yield default
    for preset in presets:
        yield {**default, **{name: value for name, value in preset.items() if name in choices}}
    dice = random.Random(seed)
    if told:
        sources = {"n": _neighbours(choices, told, dice), "a": _asked(choices, told, seed), "s": _spread(choices, dice)}
        yield from _in_turns(sources)
    yield from islice(_spread(choices, dice), _DRAWS)
    for values in product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


def _key(parameters: Mapping[str, Parameter], choices: Choices) -> tuple[Parameter | None, ...]:
    return tuple(parameters.get(name) for name in choices)


def _in_turns(sources: Mapping[str, Iterator[Setting]]) -> Iterator[Setting]:
    """Each source in its turns until all but the endless spread are exhausted."""
    finite = {name for name in sources if name != "s"}
    for name in cycle(_TURNS):
        found = next(sources[name], None)
        if found is not None:
            yield found
            continue
        finite.discard(name)
        if not finite:
            return


def _spread(choices: Choices, dice: random.Random) -> Iterator[Setting]:
    """Settings of low discrepancy, from a random start: an additive recurrence on the roots of x^(d+1) = x + 1
    (Roberts 2018), which fills a space evenly however many of them are taken."""
    root = 2.0
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (len(choices) + 1))
    at = [dice.random() for _ in choices]
    while True:
        yield {name: values[int(x * len(values))] for (name, values), x in zip(choices.items(), at, strict=True)}
        at = [(x + root ** -(place + 1)) % 1.0 for place, x in enumerate(at)]


def _neighbours(choices: Choices, told: Sequence[Told], dice: random.Random) -> Iterator[Setting]:
    """Settings that differ from a measured one in one choice: those of the fastest first."""
    best: dict[tuple[Parameter | None, ...], tuple[float, Mapping[str, Parameter]]] = {}
    for parameters, gain in told:
        if gain is not None and all(parameters.get(name) in values for name, values in choices.items()):
            best[_key(parameters, choices)] = gain, parameters
    for _, parameters in sorted(best.values(), key=lambda one: -one[0]):
        here = {name: parameters[name] for name in choices}
        near = [{**here, name: value} for name, values in choices.items() for value in values if value != here[name]]
        yield from dice.sample(near, len(near))


def _asked(choices: Choices, told: Sequence[Told], seed: int) -> Iterator[Setting]:
    """Settings asked of a study to which everything measured has been told; none before there is something to tell."""
    if not told:
        return
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.CategoricalDistribution(values) for name, values in choices.items()
    }
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=4, constant_liar=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for parameters, gain in told:
        if all(parameters.get(name) in values for name, values in choices.items()):
            known = {name: parameters[name] for name in choices}
            value = _FAILED if gain is None else gain
            study.add_trial(optuna.trial.create_trial(params=known, distributions=space, value=value))
    seen = {_key(parameters, choices) for parameters, _ in told}
    stale = 0
    while stale < _ATTEMPTS:
        answer = dict(study.ask(space).params)
        stale = stale + 1 if _key(answer, choices) in seen else 0
        seen.add(_key(answer, choices))
        yield answer

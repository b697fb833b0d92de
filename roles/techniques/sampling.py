"""Parameter settings to try next: the card's presets first, then Optuna's TPE on every setting measured so far.

The study is rebuilt from the history each time, so a restarted process proposes what the old one would have.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from protocol.messages import Parameter
from roles.techniques.transform import Choices, Sound, always

Setting = dict[str, Parameter]
Told = tuple[Mapping[str, Parameter], float | None]
_FAILED = -3.0
_ATTEMPTS = 12
_DRAWS = 200


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
    yield from _asked(choices, told, seed)
    dice = random.Random(seed)
    for _ in range(_DRAWS):
        yield {name: dice.choice(values) for name, values in choices.items()}
    for values in product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


def _key(parameters: Mapping[str, Parameter], choices: Choices) -> tuple[Parameter | None, ...]:
    return tuple(parameters.get(name) for name in choices)


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
    for _ in range(_ATTEMPTS):
        yield dict(study.ask(space).params)

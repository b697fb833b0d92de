"""Parameter settings to try next: the card's presets first, then Optuna's TPE on every setting measured so far.

The study is rebuilt from the history each time, so a restarted process proposes what the old one would have.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from protocol.messages import Parameter
from roles.techniques.transform import Choices

Setting = dict[str, Parameter]
Told = tuple[Mapping[str, Parameter], float | None]
_FAILED = -3.0
_ATTEMPTS = 24


def settings(
    choices: Choices, presets: Iterable[Setting], told: Sequence[Told], count: int, seed: int
) -> list[Setting]:
    """Up to ``count`` settings that have not been told yet, distinct, best guesses first."""
    if not choices:
        return [] if told else [{}]
    seen = {_key(parameters, choices) for parameters, _ in told}
    chosen: list[Setting] = []
    for candidate in (_default(choices), *presets, *_asked(choices, told, seed), *_rest(choices)):
        key = _key(candidate, choices)
        valid = all(candidate.get(name) in values for name, values in choices.items())
        if len(chosen) < count and valid and key not in seen:
            seen.add(key)
            chosen.append({name: candidate[name] for name in choices})
    return chosen


def _default(choices: Choices) -> Setting:
    return {name: values[0] for name, values in choices.items()}


def _key(parameters: Mapping[str, Parameter], choices: Choices) -> tuple[Parameter | None, ...]:
    return tuple(parameters.get(name) for name in choices)


def _rest(choices: Choices) -> list[Setting]:
    names = list(choices)
    return [dict(zip(names, values, strict=True)) for values in product(*choices.values())]


def _asked(choices: Choices, told: Sequence[Told], seed: int) -> list[Setting]:
    """Settings asked of a study to which everything measured has been told."""
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
    return [dict(study.ask(space).params) for _ in range(_ATTEMPTS)]

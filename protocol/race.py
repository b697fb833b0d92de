"""Who stays in a race of variants, and which of those that lost it are worth starting from later. Pure.

A race picks what to measure and decides nothing: whatever is kept is measured afresh. So its error may be generous.
"""

from collections.abc import Iterable, Mapping, Sequence

from protocol.messages import TEXT, Estimate, Noise, PastExperiment, Restart, Runnerup
from protocol.policy import Policy
from protocol.sequential import estimate


def still_racing(
    samples: Mapping[int, Sequence[Restart]], weights: Mapping[str, float], noise: Noise | None, policy: Policy
) -> frozenset[int]:
    """The variants that may still be the fastest: those whose upper bound reaches the best lower bound."""
    seen = {number: _seen(restarts, weights, noise, policy) for number, restarts in samples.items()}
    best = max((one.low for one in seen.values()), default=0.0)
    return frozenset(number for number, one in seen.items() if one.high >= best)


def settings_worth_building(policy: Policy, jobs: int, build_s: float | None) -> int:
    """Settings of constants that one experiment screens: what ``jobs`` compilers build within the law's time when one
    takes ``build_s`` beside the others. Until a build was seen, as many as there are compilers."""
    fitting = jobs if build_s is None else int(policy.screening_s * jobs / max(build_s, 1e-3))
    return max(min(policy.variants, policy.settings), min(fitting, policy.settings))


def _seen(restarts: Sequence[Restart], weights: Mapping[str, float], noise: Noise | None, policy: Policy) -> Estimate:
    return estimate(restarts, weights, noise, policy, policy.race_error)[0]


def frontier(history: Iterable[PastExperiment], policy: Policy) -> tuple[Runnerup, ...]:
    """The fastest variants that ran, beat their base and were not their experiment's champion; the fastest first.

    One that lies far behind the fastest on its base, in whatever race, is left out: polishing does not make that up.
    A text that was a champion itself, in whatever experiment, is left out: it has had its measurement. Where more were
    screened than are raced, they are settings of one text, near each other and in reach of whoever sets its constants:
    the fastest of them alone is offered, lest they crowd out whatever is built differently.
    """
    past = list(history)
    measured = {each.parameters.get(TEXT) for each in past} - {None}
    best: dict[str, float] = {}
    for each in past:
        gains = [gain for _, gain in each.screened if gain is not None]
        best[each.base] = max(best.get(each.base, 0.0), *gains, 0.0)
    found: dict[object, Runnerup] = {}
    for each in past:
        least = best[each.base] - policy.frontier_reach
        fit = [
            (parameters, gain)
            for parameters, gain in each.screened
            if gain is not None and gain > 0.0 and gain >= least
            if parameters != each.parameters and parameters.get(TEXT) not in measured
        ]
        if len(each.screened) > policy.variants:
            fit = sorted(fit, key=lambda one: -one[1])[:1]
        for parameters, gain in fit:
            text = parameters.get(TEXT)
            one = Runnerup(experiment=each.id, technique=each.plan.technique, parameters=parameters, gain=gain)
            key = text or (each.id, tuple(sorted(parameters.items())))
            if key not in found or found[key].gain < gain:
                found[key] = one
    ranked = sorted(found.values(), key=lambda one: (-one.gain, one.experiment))
    return tuple(ranked[: policy.frontier])

"""How the catalog reads a campaign's record: plain regularities, each with its count, and what they ask for next."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from math import exp

from protocol.messages import SITE, Chronicle, Insight, PastExperiment, Verdict
from roles.techniques.card import Numerics
from roles.techniques.catalog import all_cards

_DEAD_AFTER = 3
_CORRELATED = 0.7
_FEWEST_POINTS = 5
_MOST = 3


def insights(chronicle: Chronicle) -> tuple[Insight, ...]:
    """At least one; the same record always gives the same."""
    history = chronicle.history
    parts = (_noise(chronicle), _dead(history), _moved(history), _parameters(history), _faults(history))
    return (*(one for part in parts for one in part), _untried(chronicle))


def _noise(chronicle: Chronicle) -> Iterable[Insight]:
    """How many effects stand out of the noise."""
    floor = max([chronicle.threshold, *chronicle.floors.values()])
    gains = [past.gain for past in chronicle.history if past.gain is not None]
    small = sum(abs(gain) < floor for gain in gains)
    if gains and small:
        yield Insight(
            what=f"{small} of {len(gains)} measured effects are smaller than {exp(floor) - 1:.1%}",
            why="that is the larger of the threshold and the noise floor of the devices",
            next="changes of structure, whose effect would stand out" if 2 * small > len(gains) else "go on as now",
        )


def _dead(history: tuple[PastExperiment, ...]) -> Iterable[Insight]:
    """Categories that were tried often and never kept."""
    for category, pasts in _by_category(history).items():
        if len(pasts) >= _DEAD_AFTER and not any(past.verdict.kept for past in pasts):
            yield Insight(
                what=f"category '{category}': {len(pasts)} experiments, none kept",
                why=f"its best measured effect was {_best(pasts)}",
                next="another category",
            )


def _moved(history: tuple[PastExperiment, ...]) -> Iterable[Insight]:
    """The category that brought most."""
    sums = {
        category: sum(past.gain or 0.0 for past in pasts if past.verdict.kept)
        for category, pasts in _by_category(history).items()
    }
    best = max(sums, key=lambda category: sums[category], default="")
    if best and sums[best] > 0.0:
        yield Insight(
            what=f"category '{best}' brought most: {exp(sums[best]):.3f}x over its keeps",
            why=f"kept: {', '.join(sorted({p.plan.technique for p in _by_category(history)[best] if p.verdict.kept}))}",
            next="what composes with it, and its parameters on the new base",
        )


def _parameters(history: tuple[PastExperiment, ...]) -> Iterable[Insight]:
    """Parameters whose size goes with the effect, by rank correlation over all variants of a technique."""
    points: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for past in history:
        for setting, gain in (*past.screened, (past.parameters, past.gain)):
            for name, value in setting.items():
                if gain is not None and name != SITE and isinstance(value, int | float):
                    points[past.plan.technique, name].append((float(value), gain))
    for (technique, name), seen in points.items():
        strength = rank_correlation(seen)
        if len(seen) >= _FEWEST_POINTS and abs(strength) >= _CORRELATED:
            yield Insight(
                what=f"{technique}: {'larger' if strength > 0 else 'smaller'} {name} was faster ({len(seen)} variants)",
                why=f"rank correlation {strength:+.2f} between {name} and the log gain",
                next=f"{'larger' if strength > 0 else 'smaller'} {name} than those measured",
            )


def _faults(history: tuple[PastExperiment, ...]) -> Iterable[Insight]:
    """Techniques that failed before they could be timed."""
    wrong = Counter(p.plan.technique for p in history if p.verdict in (Verdict.INCORRECT, Verdict.CRASHED))
    if wrong:
        named = ", ".join(f"{technique} ({times})" for technique, times in wrong.most_common(_MOST))
        yield Insight(
            what=f"{wrong.total()} experiments were incorrect or crashed: {named}",
            why="what never ran right says nothing about speed",
            next="the same idea with its tail and its bounds mended, before another one",
        )


def _untried(chronicle: Chronicle) -> Insight:
    """Cards with a transform for this language that the record does not mention."""
    tried = {past.plan.technique for past in chronicle.history}
    left = [
        card
        for card in all_cards()
        if chronicle.language in card.languages
        and card.transform is not None
        and card.name not in tried
        and (card.numerics is Numerics.EXACT or chronicle.numerics != "strict")
    ]
    left.sort(key=lambda card: (-card.expected_gain, card.name))
    named = ", ".join(card.name for card in left[:_MOST])
    return Insight(
        what=f"{len(left)} techniques of the catalog with a transform were never tried"
        + (f": {named}" if left else ""),
        why="none of them is in the record",
        next="where one of them has a site, it" if left else "an idea from outside the catalog",
    )


def _by_category(history: tuple[PastExperiment, ...]) -> dict[str, list[PastExperiment]]:
    groups: dict[str, list[PastExperiment]] = defaultdict(list)
    for past in history:
        groups[past.plan.category].append(past)
    return groups


def _best(pasts: list[PastExperiment]) -> str:
    gains = [past.gain for past in pasts if past.gain is not None]
    return f"{exp(max(gains)):.3f}x" if gains else "not measured"


def rank_correlation(points: list[tuple[float, float]]) -> float:
    """Spearman's: Pearson's correlation of the ranks, ties sharing their mean rank; 0 when a side is constant."""
    ranks = [_ranks([point[side] for point in points]) for side in (0, 1)]
    mean = (len(points) - 1) / 2.0
    across = sum((a - mean) * (b - mean) for a, b in zip(*ranks, strict=True))
    spread = [sum((rank - mean) ** 2 for rank in side) for side in ranks]
    return across / (spread[0] * spread[1]) ** 0.5 if spread[0] > 0.0 and spread[1] > 0.0 else 0.0


def _ranks(values: list[float]) -> list[float]:
    first: dict[float, int] = {}
    for index, value in enumerate(sorted(values)):
        first.setdefault(value, index)
    count = Counter(values)
    return [first[value] + (count[value] - 1) / 2.0 for value in values]

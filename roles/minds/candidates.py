"""What the catalog could propose for a briefing: every card at every site, scored, less what the law closes."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import inf, log, prod

from protocol.messages import SITE, Briefing, Parameter, PastExperiment
from roles.taste import taste_of
from roles.techniques.card import Card, Numerics
from roles.techniques.catalog import all_cards, card_named
from roles.techniques.cpp.knobs import Knobs
from roles.techniques.transform import Choices, Site, Transform
from roles.techniques.triton_launch import TritonLaunch

_OTHER_CELL = 0.6
_REVERTED_HERE = 0.3
_KEPT_HERE = 0.5
_REVERTED_ELSEWHERE = 0.7
# What earlier campaigns say counts until the technique is tried in this one; a preferred technique is tried first.
_PREFERRED = 10.0
_CAUTION = 0.3
_OTHER_ROLE = 0.02  # what the other role would take first comes when the own ideas have failed a few times
_ALONE = 0.5  # but an agent without a team does the other role's work, too, a little later
_MOST_TRIES_ON_A_CPU = 6  # experiments with the knobs of one site

# What a task's numerics allow a technique to do to its results.
NUMERICS = {
    "strict": frozenset({Numerics.EXACT}),
    "reference": frozenset({Numerics.EXACT, Numerics.REORDERED, Numerics.TOLERANCE}),
    "approximate": frozenset(Numerics),
}


@dataclass(frozen=True)
class Candidate:
    """One card at one site of one file."""

    card: Card
    transform: Transform
    path: str
    site: Site
    score: float

    @property
    def gain(self) -> float:
        """Expected log gain at this site."""
        return self.card.expected_gain if self.site.gain is None else self.site.gain


def candidates(briefing: Briefing) -> list[Candidate]:
    """Everything admissible, best first. Deterministic in the briefing."""
    found = [each for card in admissible_cards(briefing) for each in _at_sites(card, briefing)]
    return sorted(found, key=lambda each: (-each.score, each.card.name, each.site.key))


def admissible_cards(briefing: Briefing) -> list[Card]:
    """Cards with a transform for the language that neither the law nor the direction closes."""
    return [card for card in all_cards() if card.transform is not None and admissible(card, briefing)]


def admissible(card: Card, briefing: Briefing) -> bool:
    """True when the card's category, name, language and numerics are open in this briefing."""
    closed = card.category in briefing.closed_categories or card.name in briefing.abandoned
    claimed = not briefing.allowed_categories or card.category in briefing.allowed_categories
    exact = NUMERICS[briefing.numerics]
    possible = briefing.language in card.languages and briefing.cores >= card.cores
    return possible and claimed and card.numerics in exact and not closed


def tries(card: Card, briefing: Briefing) -> list[PastExperiment]:
    """The team's experiments with this technique."""
    return [past for past in briefing.history if past.plan.technique == card.name]


def at_site(past: PastExperiment, key: str) -> bool:
    """True when the experiment worked on this place of this very text."""
    return past.parameters.get(SITE) == key or any(parameters.get(SITE) == key for parameters, _ in past.screened)


def _at_sites(card: Card, briefing: Briefing) -> Iterator[Candidate]:
    if card.transform is None:
        return
    transform = card.transform()
    for path, text in briefing.editable.items():
        for site in _sites(card.name, text):
            key = f"{path}:{site.key}"
            spent = sum(at_site(past, key) for past in tries(card, briefing))
            if spent < _allowance(transform, transform.space(site), briefing):
                yield Candidate(card, transform, path, site, _score(card, site, key, briefing))


@lru_cache(maxsize=512)
def _sites(technique: str, text: str) -> tuple[Site, ...]:
    """Where a technique applies to a text: looked up again and again while an agent asks on one base."""
    card = card_named(technique)
    return tuple(card.transform().applies(text)) if card is not None and card.transform is not None else ()


def _allowance(transform: Transform, space: Choices, briefing: Briefing) -> float:
    """Experiments that a site is worth: on a GPU as many as its space has settings for, on a CPU a few."""
    if not space:
        return 1
    if briefing.language != "cpp":
        return inf
    settings = prod(len(values) for values in space.values())
    sampled = most_of(transform, briefing)
    return min(_MOST_TRIES_ON_A_CPU, max(2, -(-settings // (2 * sampled))))


def most_of(transform: Transform, briefing: Briefing) -> int:
    """Variants that one experiment may have: few texts of their own, or as many settings as a screening takes."""
    few = max(1, min(briefing.max_variants, taste_of(briefing.role).variants))
    return max(few, briefing.max_settings) if isinstance(transform, Knobs | TritonLaunch) else few


def _score(card: Card, site: Site, key: str, briefing: Briefing) -> float:
    """Expected log gain, discounted by cell and by the team's reverts, plus the role's temperature."""
    taste = taste_of(briefing.role)
    gain = card.expected_gain if site.gain is None else site.gain
    if not card.suits(briefing.position, briefing.phase):
        gain *= _OTHER_CELL
    for past in tries(card, briefing):
        here = at_site(past, key) or site.subject in past.plan.change
        if past.verdict.kept:
            gain *= _KEPT_HERE if here else 1.0
        else:
            gain *= _REVERTED_HERE if here else _REVERTED_ELSEWHERE
    noise = random.Random(f"{briefing.seed}:{briefing.number}:{card.name}:{key}").random()
    gumbel = -log(-log(min(max(noise, 1e-9), 1 - 1e-9)))
    advised = 0.0
    for advice in briefing.advice:
        if advice.technique == card.name and not tries(card, briefing):
            gain *= _CAUTION if advice.word == "caution" else 1.0
            advised = _PREFERRED + advice.gain if advice.word == "prefer" else 0.0
    if card.tier not in taste.tiers:
        gain *= _ALONE if briefing.team_size == 1 else _OTHER_ROLE
    return gain + advised + taste.temperature * 0.1 * gumbel


def told(card: Card, briefing: Briefing) -> list[tuple[dict[str, Parameter], float | None]]:
    """Every setting of this technique that was measured or screened, with its log gain."""
    seen: list[tuple[dict[str, Parameter], float | None]] = []
    for past in tries(card, briefing):
        seen.extend(past.screened)
        seen.append((past.parameters, past.gain))
    return seen

"""The built-in mind: a search over the technique catalog by real source edits. It is not a language model.

It needs no key and no network, and it keeps nothing between calls: everything is rebuilt from the briefing, so the
same briefing always gives the same proposal.
"""

import zlib

from protocol.messages import (
    Briefing,
    Merge,
    Parameter,
    Plan,
    Proposal,
    Resolution,
    SearchReport,
    Source,
    Variant,
)
from roles.merger import resolve_mechanically
from roles.minds.candidates import SITE, Candidate, admissible, at_site, candidates, told, tries
from roles.minds.mind import CannotResolve, NothingToPropose
from roles.taste import taste_of
from roles.techniques.card import Card
from roles.techniques.catalog import all_cards
from roles.techniques.sampling import settings


class CatalogMind:
    """Proposes the most promising technique of the catalog that applies to the source."""

    name = "catalog"

    def propose(self, briefing: Briefing) -> Proposal:
        """The best admissible card at its best site, as K parameter variants."""
        if briefing.language not in ("cpp", "cuda"):
            raise NothingToPropose(f"the catalog has no source transform for {briefing.language}")
        for candidate in _ordered(candidates(briefing), briefing)[len(briefing.refused) :]:
            variants = _variants(candidate, briefing)
            if variants:
                return Proposal(plan=_plan(candidate, briefing), variants=variants, dollars=0.0)
        raise NothingToPropose("every technique of the catalog that applies here has been tried or is closed")

    def repair(self, briefing: Briefing, proposal: Proposal, failure: str) -> Proposal | None:
        """The catalog's edits are mechanical: one that does not build is a defect, not a draft."""
        return None

    def resolve(self, merge: Merge) -> Resolution:
        """The kept change made again on main's text, or hunks that do not overlap put together."""
        resolution = resolve_mechanically(merge)
        if resolution is None:
            raise CannotResolve("the technique has no such site in main's text, and the hunks overlap")
        return resolution

    def research(self, briefing: Briefing, duty_id: str) -> SearchReport:
        """An offline search of the catalog itself: the cards of the cell that the team has not tried."""
        ranked = _unexplored(briefing)
        chosen = ranked[0]
        cell = f"{briefing.position}/{briefing.phase}"
        queries = tuple(
            dict.fromkeys([f"catalog: {briefing.language}, cell {cell}", f"catalog: category {chosen.category}"])
        )
        sources = dict.fromkeys((card.source.title, card.source.locator) for card in ranked[:5])
        times = len(tries(chosen, briefing))
        applies = any(each.card.name == chosen.name for each in candidates(briefing))
        why = (
            f"{'not tried by the team yet' if not times else f'tried {times} times, least of those left'}; "
            f"{'it applies to the source as it is' if applies else 'no site in the source now'}; {chosen.helps}"
        )
        return SearchReport(
            id=duty_id,
            queries=queries,
            sources=tuple(Source(title=title, locator=locator) for title, locator in sources),
            technique=chosen.name,
            category=chosen.category,
            why=why,
            dollars=0.0,
        )


def _ordered(found: list[Candidate], briefing: Briefing) -> list[Candidate]:
    """A technique that a search chose comes first."""
    if briefing.search is None:
        return found
    wanted = briefing.search.technique
    return sorted(found, key=lambda each: each.card.name != wanted)


def _unexplored(briefing: Briefing) -> list[Card]:
    """Cards by how promising a search finds them: applicable and untried first."""
    applicable = {each.card.name: each.score for each in reversed(candidates(briefing))}
    open_cards = [card for card in all_cards() if admissible(card, briefing)]
    pool = open_cards or [card for card in all_cards() if briefing.language in card.languages] or list(all_cards())

    def rank(card: Card) -> tuple[bool, int, bool, float, str]:
        suits = card.suits(briefing.position, briefing.phase)
        score = applicable.get(card.name, card.expected_gain)
        return card.name not in applicable, len(tries(card, briefing)), not suits, -score, card.name

    return sorted(pool, key=rank)


def _variants(candidate: Candidate, briefing: Briefing) -> tuple[Variant, ...]:
    """The settings to race, each as the full new text of its file; those that change nothing are left out."""
    key = f"{candidate.path}:{candidate.site.key}"
    choices = candidate.transform.space(candidate.site)
    measured = told(candidate.card, briefing)
    here = [each for each in measured if each[0].get(SITE) == key] if not choices else _comparable(measured, key)
    count = max(1, min(briefing.max_variants, taste_of(briefing.role).variants))
    seed = zlib.crc32(f"{briefing.seed}:{briefing.number}:{key}".encode())
    text = briefing.editable[candidate.path]
    found: dict[str, Variant] = {}
    for setting in settings(choices, candidate.card.presets, here, count + 1, seed):
        edited = candidate.transform.apply(text, candidate.site, setting)
        parameters: dict[str, Parameter] = {**setting, SITE: key}
        if edited != text:
            found.setdefault(edited, Variant(parameters=parameters, files={candidate.path: edited}))
    return tuple(found.values())[:count]


def _comparable(
    measured: list[tuple[dict[str, Parameter], float | None]], key: str
) -> list[tuple[dict[str, Parameter], float | None]]:
    """Settings measured at this very site; results of other texts would mislead the sampler."""
    return [each for each in measured if each[0].get(SITE) == key]


def _plan(candidate: Candidate, briefing: Briefing) -> Plan:
    card, site = candidate.card, candidate.site
    cited = briefing.search
    evidence = f"{candidate.path}, {site.evidence}"
    if cited is not None and cited.technique != card.name:
        evidence += f"; the searched technique {cited.technique} has no admissible site in this source"
    for advice in briefing.advice:
        if advice.technique == card.name:
            evidence += f"; earlier campaigns: {advice.word}, {advice.positives} for, {advice.negatives} against"
    return Plan(
        technique=card.name,
        category=card.category,
        bottleneck=card.bottleneck,
        evidence=evidence,
        change=f"{card.title}: {site.subject}",
        mechanism=card.mechanism,
        expected_gain=round(candidate.gain, 3),
        disproof=card.disproof,
        fallback=card.fallback,
        cell=f"{briefing.position}/{briefing.phase}",
        rewrite=card.rewrite,
        differs=_difference(candidate, briefing),
        cites=cited.id if cited is not None else "",
    )


def _difference(candidate: Candidate, briefing: Briefing) -> str:
    """A true statement of how this try differs from the team's last reverted one; empty when there is none."""
    reverted = [past for past in tries(candidate.card, briefing) if not past.verdict.kept]
    if not reverted:
        return ""
    last = reverted[-1]
    key = f"{candidate.path}:{candidate.site.key}"
    if at_site(last, key):
        return f"other parameter settings than those of {last.id}, on the same code"
    if str(last.parameters.get(SITE, "")).split(":")[-1] == key.split(":")[-1]:
        return f"another site of the same code: {site_line(candidate)}; {last.id} tried '{last.plan.change}'"
    return f"the code around the site is not the text that {last.id} changed on base {last.base[:10]}"


def site_line(candidate: Candidate) -> str:
    """The site in words, with its line."""
    return f"{candidate.site.subject} at line {candidate.site.line}"

"""The built-in mind: a search over the technique catalog by real source edits. It is not a language model.

It needs no key and no network, and it keeps nothing between calls: everything is rebuilt from the briefing, so the
same briefing always gives the same proposal.
"""

from collections.abc import Mapping

from protocol.messages import (
    SITE,
    Briefing,
    Chronicle,
    Merge,
    Plan,
    Proposal,
    Recheck,
    RecheckReport,
    ResearchReport,
    Resolution,
    SearchReport,
    Source,
)
from roles.merger import resolve_mechanically
from roles.minds.candidates import Candidate, admissible, admissible_cards, at_site, candidates, tries
from roles.minds.excuses import excuses
from roles.minds.mind import CannotResolve, NothingToPropose
from roles.minds.reading import insights
from roles.minds.rechecking import recheck
from roles.minds.variants import share_of, site_key, variants_of
from roles.techniques.card import Card
from roles.techniques.catalog import all_cards


class CatalogMind:
    """Proposes the most promising technique of the catalog that applies to the source."""

    name = "catalog"

    def propose(self, briefing: Briefing) -> Proposal:
        """The best admissible card at its best site, as K parameter variants."""
        refused = len(briefing.refused)
        found = candidates(briefing)
        for candidate, item in _in_turn(found, briefing):
            variants = variants_of(candidate, briefing)
            if variants and not refused:
                passed = excuses(briefing, found, candidate.card.name, item)
                plan = _plan(candidate, briefing).model_copy(update={"sweep": item, "passed_over": passed})
                return Proposal(plan=plan, variants=variants, dollars=0.0)
            refused -= bool(variants)
        if resumed := self._from_frontier(briefing, refused):
            return resumed
        raise NothingToPropose(_exhausted(briefing), passed_over=excuses(briefing, found))

    def _from_frontier(self, briefing: Briefing, refused: int) -> Proposal | None:
        """What applies to a variant that lost its race, when the base itself offers nothing new."""
        for start in briefing.frontier:
            there = briefing.model_copy(update={"editable": {**briefing.editable, **start.files}})
            found = candidates(there)
            for candidate in found:
                variants = variants_of(candidate, there)
                if variants and not refused:
                    plan = _plan(candidate, there)
                    words = f"{plan.change}, on top of {start.technique} of {start.experiment}"
                    passed = excuses(briefing, found, candidate.card.name, "")
                    updates = {"change": words, "passed_over": passed}
                    whole = tuple(v.model_copy(update={"files": {**start.files, **v.files}}) for v in variants)
                    return Proposal(plan=plan.model_copy(update=updates), variants=whole, dollars=0.0)
                refused -= bool(variants)
        return None

    def repair(self, briefing: Briefing, proposal: Proposal, failure: str) -> Proposal | None:
        """The catalog's edits are mechanical: one that does not build is a defect, not a draft."""
        return None

    def resolve(self, merge: Merge) -> Resolution:
        """The kept change made again on main's text, or hunks that do not overlap put together."""
        resolution = resolve_mechanically(merge)
        if resolution is None:
            raise CannotResolve("the technique has no such site in main's text, and the hunks overlap")
        return resolution

    def recheck(self, briefing: Briefing, duty: Recheck) -> RecheckReport:
        """The card against the site, the profile and the failure, mechanically."""
        return recheck(briefing, duty)

    def reflect(self, chronicle: Chronicle, duty_id: str) -> ResearchReport:
        """Regularities of the record: what moved, what is noise, what goes with what, what was never tried."""
        return ResearchReport(id=duty_id, insights=insights(chronicle))

    def research(self, briefing: Briefing, duty_id: str) -> SearchReport:
        """An offline search of the catalog itself: the cards of the cell that the team has not tried."""
        here = {each.card.name: each for each in reversed(candidates(briefing))}
        ranked = _unexplored(briefing, here)
        chosen = next((card for card in ranked if card.name in here and variants_of(here[card.name], briefing)), None)
        applies = chosen is not None
        chosen = chosen or ranked[0]
        cell = f"{briefing.position}/{briefing.phase}"
        queries = tuple(
            dict.fromkeys([f"catalog: {briefing.language}, cell {cell}", f"catalog: category {chosen.category}"])
        )
        sources = dict.fromkeys((card.source.title, card.source.locator) for card in (chosen, *ranked[:5]))
        times = len(tries(chosen, briefing))
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


def _in_turn(found: list[Candidate], briefing: Briefing) -> list[tuple[Candidate, str]]:
    """What the law wants first: heavy lifts of a plateau, then items of the sweep in their order, then all others.

    Each candidate comes with the item of the sweep that it would be, which is empty for the others.
    """
    ordered = _ordered(found, briefing)
    wanted = {lift.technique for lift in briefing.lifts}
    lifts = [each for each in ordered if each.card.name in wanted]
    turns = [(each, "") for each in lifts]
    for item in briefing.sweep:
        turns += [(each, item.name) for each in ordered if each.card.name in item.techniques]
    return [*turns, *((each, "") for each in ordered if each not in lifts)]


def _exhausted(briefing: Briefing) -> str:
    """What was looked through, for the ledger."""
    names = [card.name for card in admissible_cards(briefing)]
    closed = f"; closed: {', '.join(briefing.closed_categories)}" if briefing.closed_categories else ""
    told = f"{len(names)} open techniques of the catalog for {briefing.language}"
    return f"none of the {told} has anything new for this source{closed}"


def _unexplored(briefing: Briefing, here: Mapping[str, Candidate]) -> list[Card]:
    """Cards by how promising a search finds them: applicable and untried first. ``here`` holds the best sites."""
    open_cards = [card for card in all_cards() if admissible(card, briefing)]
    pool = open_cards or [card for card in all_cards() if briefing.language in card.languages] or list(all_cards())

    def rank(card: Card) -> tuple[bool, int, bool, float, str]:
        suits = card.suits(briefing.position, briefing.phase)
        score = here[card.name].score if card.name in here else card.expected_gain
        return card.name not in here, len(tries(card, briefing)), not suits, -score, card.name

    return sorted(pool, key=rank)


def _plan(candidate: Candidate, briefing: Briefing) -> Plan:
    card, site = candidate.card, candidate.site
    cited, share = briefing.search, share_of(candidate, briefing)
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
        change=f"{card.title}: {site.subject}{', ' if share else ''}{share}",
        mechanism=card.mechanism,
        expected_gain=round(candidate.gain, 3),
        disproof=card.disproof,
        fallback=card.fallback,
        cell=f"{briefing.position}/{briefing.phase}",
        rewrite=card.rewrite,
        differs=_difference(candidate, briefing),
        cites=cited.id if cited is not None else "",
        source=_source(card, cited),
    )


def _source(card: Card, cited: SearchReport | None) -> str:
    """Where the search that is cited read of this card; empty when it did not."""
    read = {source.locator for source in cited.sources} if cited is not None else set[str]()
    return card.source.locator if card.source.locator in read else ""


def _difference(candidate: Candidate, briefing: Briefing) -> str:
    """A true statement of how this try differs from the team's last reverted one; empty when there is none."""
    reverted = [past for past in tries(candidate.card, briefing) if not past.verdict.kept]
    if not reverted:
        return ""
    last = reverted[-1]
    key = site_key(candidate)
    if at_site(last, key):
        return f"other parameter settings than those of {last.id}, on the same code"
    if str(last.parameters.get(SITE, "")).split(":")[-1] == key.split(":")[-1]:
        return f"another site of the same code: {site_line(candidate)}; {last.id} tried '{last.plan.change}'"
    return f"the code around the site is not the text that {last.id} changed on base {last.base[:10]}"


def site_line(candidate: Candidate) -> str:
    """The site in words, with its line."""
    return f"{candidate.site.subject} at line {candidate.site.line}"

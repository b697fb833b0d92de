"""The strategy memory on a terminal: what is advised for each place, and the evidence behind it."""

from math import exp

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from protocol.memory import Evidence, Place, advise
from protocol.messages import Advice
from protocol.policy import Policy
from team.report import wording as w

Known = list[tuple[Place, Evidence]]
_NOTHING = "The strategy memory is empty: it learns from campaigns as they end."


def advice_table(known: Known) -> RenderableType:
    """One line for each technique and place, with what the evidence comes to."""
    if not known:
        return _NOTHING
    table = Table("operator", "hardware", "dims", "technique", "advice", "for", "against", "best", box=None)
    for place in dict.fromkeys(place for place, _ in known):
        evidence = [one for where, one in known if where == place]
        words = {advice.technique: advice for advice in advise(evidence, Policy())}
        for technique in sorted({one.technique for one in evidence}):
            table.add_row(*_row(place, [one for one in evidence if one.technique == technique], words.get(technique)))
    return table


def _row(place: Place, evidence: list[Evidence], advice: Advice | None) -> list[str]:
    positives = sum(one.positive for one in evidence)
    gains = [one.gain for one in evidence if one.positive and one.gain is not None]
    where = (place.operator, f"{place.language} on {place.arch}", place.dims, evidence[0].technique)
    best = f"{exp(max(gains)):.3f}x" if gains else "-"
    word = advice.word if advice else "not enough yet"
    return [*map(w.plain, where), word, str(positives), str(len(evidence) - positives), best]


def evidence_list(known: Known) -> RenderableType:
    """Every piece of evidence, oldest first."""
    if not known:
        return _NOTHING
    return Group(*(Text(_line(place, one)) for place, one in known))


def _line(place: Place, one: Evidence) -> str:
    sign = "+" if one.positive else "-"
    gain = f"{exp(one.gain):.3f}x" if one.gain is not None else "not measured"
    said = f"{sign} {one.technique} ({one.category}) {gain}, {one.stage}: {one.change}"
    return w.plain(f"{said}; {place.operator} [{place.dims}] {place.arch}, {one.campaign} {one.commit[:12]}")

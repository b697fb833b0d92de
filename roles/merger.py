"""The merger: how a conflict is resolved without a language model. Exact in what it does, silent where it cannot.

First the kept plan is carried out again on main's text: its technique, its parameters, its place. Where that is not
possible, the two patches are put together line by line, if no line belongs to both.
"""

from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from itertools import pairwise

from protocol.messages import Merge, Resolution
from roles.minds.candidates import SITE
from roles.techniques.catalog import all_cards
from roles.techniques.transform import Site


def resolve_mechanically(merge: Merge) -> Resolution | None:
    """The merged texts, or None when neither way leads to one."""
    return reapplied(merge) or woven(merge)


def reapplied(merge: Merge) -> Resolution | None:
    """The kept plan's own transform on main's text; None when it is no card's, or main has no such place."""
    card = next((card for card in all_cards() if card.name == merge.duty.plan.technique), None)
    path, _, key = str(merge.duty.parameters.get(SITE, "")).partition(":")
    text = merge.briefing.editable.get(path)
    if card is None or card.transform is None or text is None or path not in merge.base:
        return None
    transform = card.transform()
    meant = _found(transform.applies(merge.base[path]), lambda site: site.key == key)
    here = transform.applies(text)
    site = _found(here, lambda site: site.key == key) or _found(here, lambda site: bool(meant) and _same(site, meant))
    if site is None:
        return None
    setting = {name: value for name, value in merge.duty.parameters.items() if name != SITE}
    edited = transform.apply(text, site, setting)
    if edited == text:
        return None
    return Resolution(files={path: edited}, how=f"{card.name} carried out again on main's text: {site.subject}")


def _same(one: Site, other: Site | None) -> bool:
    return other is not None and one.subject == other.subject


def _found(sites: Iterable[Site], holds: Callable[[Site], bool]) -> Site | None:
    """The one site for which ``holds``; None when there is none or more than one."""
    matching = [site for site in sites if holds(site)]
    return matching[0] if len(matching) == 1 else None


def woven(merge: Merge) -> Resolution | None:
    """Both patches line by line, where git wants untouched lines between them and there are none."""
    files: dict[str, str] = {}
    for path, theirs in merge.theirs.items():
        base, main = merge.base.get(path), merge.briefing.editable.get(path)
        if theirs in (base, main):
            continue
        if base is None or main is None or (text := weave(base, main, theirs)) is None:
            return None
        files[path] = text
    return Resolution(files=files, how="the two patches put together line by line; none overlap") if files else None


def weave(base: str, main: str, theirs: str) -> str | None:
    """A three-way merge by lines without context; None when a line of ``base`` was changed by both.

    A directive belongs to the line after it: one that was put in front of a line which the other side changed would
    speak of something else, or of nothing.
    """
    lines = base.splitlines(keepends=True)
    hunks = sorted({*_hunks(lines, main), *_hunks(lines, theirs)})
    for (start, end, new), (following, after, _) in pairwise(hunks):
        spoken_of = end + bool(new and new[-1].lstrip().startswith("#pragma"))
        if following < spoken_of or (start, end) == (following, after):
            return None
    out: list[str] = []
    at = 0
    for start, end, new in hunks:
        out += [*lines[at:start], *new]
        at = end
    return "".join([*out, *lines[at:]])


def _hunks(base: list[str], text: str) -> list[tuple[int, int, tuple[str, ...]]]:
    """Changed ranges of ``base`` with what stands there in ``text``."""
    new = text.splitlines(keepends=True)
    matcher = SequenceMatcher(None, base, new, autojunk=False)
    return [(i, j, tuple(new[k:n])) for tag, i, j, k, n in matcher.get_opcodes() if tag != "equal"]

"""Why the catalog cannot do what the law wants next, found out from the source and the cards, not made up."""

from protocol.messages import Briefing, Excuse, HeavyLift, PassedOver, SweepItem
from roles.minds.candidates import Candidate, at_site, tries
from roles.techniques.card import Card
from roles.techniques.catalog import card_named


def excuses(briefing: Briefing, found: list[Candidate], taken: str = "", item: str = "") -> tuple[PassedOver, ...]:
    """One for each due heavy lift, unless one of them is ``taken``, and for each due sweep item before ``item``."""
    names = {candidate.card.name for candidate in found}
    lifts = [] if any(lift.technique == taken for lift in briefing.lifts) else briefing.lifts
    passed = [_lift(lift, briefing) for lift in lifts if lift.technique not in names]
    for each in briefing.sweep:
        if each.name == item:
            break
        passed.append(_item(each, briefing))
    return tuple(passed)


def _lift(lift: HeavyLift, briefing: Briefing) -> PassedOver:
    kind, reason = _why(lift.technique, briefing)
    needs = f"; it needs {lift.needs}" if lift.needs else ""
    return PassedOver(name=lift.technique, kind=kind, reason=f"{reason}{needs}")


def _item(item: SweepItem, briefing: Briefing) -> PassedOver:
    if not item.techniques:
        reason = "the catalog has no template for it: no card of this language covers it"
        return PassedOver(name=item.name, kind=Excuse.REFERENCE, reason=reason)
    whys = [(name, *_why(name, briefing)) for name in item.techniques]
    kind = next((kind for _, kind, _ in whys if kind is not Excuse.REFERENCE), Excuse.REFERENCE)
    return PassedOver(name=item.name, kind=kind, reason="; ".join(f"{name}: {reason}" for name, _, reason in whys))


def _why(name: str, briefing: Briefing) -> tuple[Excuse, str]:
    """What stands against one technique here."""
    card = card_named(name)
    if card is None or card.transform is None:
        return Excuse.REFERENCE, "the catalog holds no template that could be applied, knowledge alone"
    if briefing.cores < card.cores:
        return Excuse.HARDWARE, f"it needs {card.cores} cores and the kernel has {briefing.cores}"
    return Excuse.PREREQUISITE, _no_site(card, briefing)


def _no_site(card: Card, briefing: Briefing) -> str:
    transform = card.transform() if card.transform is not None else None
    assert transform is not None
    keys = [f"{path}:{site.key}" for path, text in briefing.editable.items() for site in transform.applies(text)]
    if not keys:
        return f"no site in {', '.join(briefing.editable)}; it helps {card.helps}"
    there = [past.id for past in tries(card, briefing) if any(at_site(past, key) for key in keys)]
    if there:
        return f"its settings were measured at every site ({', '.join(there[-3:])})"
    return f"it is closed here: category {card.category}, numerics {briefing.numerics}, or its edit changes nothing"

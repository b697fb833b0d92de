"""What a model may look up while it plans: technique cards, the team's findings and history, the profile."""

from dataclasses import fields

from protocol.messages import Briefing
from roles.minds.anthropic.pad import Wrong
from roles.prompts.profiled import in_full
from roles.prompts.texts import past_line
from roles.techniques.card import Card
from roles.techniques.catalog import all_cards, card_named

_MOST = 40
_SHOWN = ("helps", "hurts", "needs", "mechanism", "expected_gain", "evidence", "numerics", "arch", "proof", "disproof")


def card(name: str, briefing: Briefing) -> str:
    """One card in full, or the cards of a category, or a list of all that suit the language."""
    if found := card_named(name):
        return _in_full(found)
    suiting = [each for each in all_cards() if briefing.language in each.languages]
    listed = [each for each in suiting if each.category == name] or suiting
    return "\n".join(f"{each.name} ({each.category}): {each.title}" for each in listed)


def findings(words: str, briefing: Briefing) -> str:
    """Lines of the team's findings and experiments with all of these words in them."""
    wanted = words.lower().split()
    lines = [f"{found.kind}: {found.technique} ({found.category}), {found.what}" for found in briefing.findings]
    lines += [past_line(past) for past in briefing.history]
    told = [line for line in lines if all(word in line.lower() for word in wanted)]
    return "\n".join(told[-_MOST:]) or "nothing on record has these words"


def profile(briefing: Briefing) -> str:
    """What the newest profile shows, with every remark of the compiler."""
    seen = briefing.profile
    if seen is None:
        raise Wrong("nothing was profiled yet: until then `check` shows what the compiler says")
    return "\n".join([f"at commit {seen.commit[:12]}", *in_full(seen)])


def _in_full(found: Card) -> str:
    known = {field.name for field in fields(Card)}
    told = [f"{name}: {getattr(found, name)}" for name in _SHOWN if name in known and getattr(found, name)]
    return "\n".join([f"{found.name} ({found.category}): {found.title}", *told, f"source: {found.source.locator}"])

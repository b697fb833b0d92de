"""Which settings of a candidate to race next: new texts only, and never those that a teammate may be running.

A text that the team has measured is never proposed again, whatever edit and base lead to it: every variant carries a
digest of its text among its parameters. The default of a site belongs to whoever comes first; the law lets only one
agent run it. All other texts are shared out among the agents by their digest, so that two agents have nothing in
common, neither at one site nor at different ones that lead to the same texts.
"""

import hashlib
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import islice

from protocol.messages import SITE, TEXT, Briefing, Parameter, Variant
from roles.minds.candidates import Candidate, most_of, told
from roles.techniques.cpp.knobs import Knobs
from roles.techniques.cuda.move import Move
from roles.techniques.sampling import Setting, settings


def variants_of(candidate: Candidate, briefing: Briefing) -> tuple[Variant, ...]:
    """Up to K variants, each the full new text of its file; empty when nothing new is left for this agent here.

    Where a technique only sets values, K is the law's number of settings, which are screened in few processes.
    """
    count = most_of(candidate.transform, briefing)
    return tuple(islice(_fresh(candidate, briefing, _measured_texts(briefing)), count))


def share_of(candidate: Candidate, briefing: Briefing) -> str:
    """The share that this agent draws from, in words; empty for the first experiment at a site."""
    if briefing.team_size < 2 or not _shared(candidate, briefing):
        return ""
    return f"share {briefing.place + 1} of {briefing.team_size} of its settings"


def _shared(candidate: Candidate, briefing: Briefing) -> bool:
    """True when even the default belongs to one agent."""
    return candidate.site.crowded or bool(_here(candidate, briefing))


def site_key(candidate: Candidate) -> str:
    """The site with its file: what ``parameters`` of an experiment record."""
    return f"{candidate.path}:{candidate.site.key}"


def _fresh(candidate: Candidate, briefing: Briefing, known: set[str]) -> Iterator[Variant]:
    text = briefing.editable[candidate.path]
    known = {*known, _digest(text, candidate.path)}
    choices = candidate.transform.space(candidate.site)
    common = None if _shared(candidate, briefing) else {name: values[0] for name, values in choices.items()}
    for setting in _settings(candidate, briefing):
        edited = candidate.transform.apply(text, candidate.site, setting)
        digest = _digest(edited, candidate.path)
        if digest not in known and (not choices or setting == common or _mine(digest, briefing)):
            known.add(digest)
            parameters: dict[str, Parameter] = {**setting, SITE: site_key(candidate), TEXT: digest}
            yield Variant(parameters=parameters, files={candidate.path: edited})


def _settings(candidate: Candidate, briefing: Briefing) -> Iterator[Setting]:
    choices = candidate.transform.space(candidate.site)
    seed = zlib.crc32(f"{briefing.seed}:{briefing.number}:{site_key(candidate)}".encode())
    presets = (*candidate.card.presets, *candidate.site.presets)
    return settings(choices, presets, _here(candidate, briefing), seed, candidate.site.sound)


def _mine(digest: str, briefing: Briefing) -> bool:
    """Whether this agent may propose a text: every text belongs to one agent, whichever edits lead to it."""
    return briefing.team_size < 2 or int(digest, 16) % briefing.team_size == briefing.place


def _here(candidate: Candidate, briefing: Briefing) -> list[tuple[Mapping[str, Parameter], float | None]]:
    """Settings measured at this very site, and what the same settings did on texts that this one came from.

    Where a technique only sets values, a setting leads to one text whatever the values were before. So when this text
    is itself among those that were measured from another base, the rest of that table holds here, less its own gain.
    Results of any other text would mislead the sampler.
    """
    tables: dict[Parameter, list[tuple[Mapping[str, Parameter], float | None]]] = defaultdict(list)
    for setting, gain in told(candidate.card, briefing):
        tables[setting.get(SITE, "")].append((setting, gain))
    here = tables.pop(site_key(candidate), [])
    if not isinstance(candidate.transform, Knobs | Move):
        return here
    digest = _digest(briefing.editable[candidate.path], candidate.path)
    for table in tables.values():
        own = [gain for setting, gain in table if setting.get(TEXT) == digest and gain is not None]
        here += [(setting, None if gain is None else gain - own[-1]) for setting, gain in table if own]
    return here


def _measured_texts(briefing: Briefing) -> set[str]:
    parameters = (each for past in briefing.history for each in (past.parameters, *(one for one, _ in past.screened)))
    return {str(each[TEXT]) for each in parameters if TEXT in each}


def _digest(text: str, path: str) -> str:
    """Of the code alone: a text that differs in comments is no new idea."""
    text = re.sub(r"#[^\n]*" if path.endswith(".py") else r"//[^\n]*", "", text)
    return hashlib.sha256(text.encode()).hexdigest()[:12]

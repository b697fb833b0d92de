"""How the catalog re-checks a technique that regressed: its card line by line against the site, the profile, the fault.

Everything here is looked up: the transform is asked again for its site, dimensions are divided by settings.
"""

from math import exp, prod

from protocol.messages import SITE, Briefing, Compared, PastExperiment, Recheck, RecheckReport, Verdict
from roles.minds.candidates import tries
from roles.techniques.card import Card, Numerics
from roles.techniques.catalog import card_named
from roles.techniques.transform import Site

_FAULTY = (Verdict.INCORRECT, Verdict.CRASHED)


def recheck(briefing: Briefing, duty: Recheck) -> RecheckReport:
    """The report on one regressed experiment; ``briefing`` holds the source at its base."""
    card = card_named(duty.technique)
    past = next((one for one in briefing.history if one.id == duty.experiment), None)
    if card is None or past is None:
        nothing = Compared(what="card", card="none in this catalog", seen=duty.technique, holds=False)
        return RecheckReport(id=duty.id, experiment=duty.experiment, technique=duty.technique, compared=(nothing,))
    return RecheckReport(
        id=duty.id,
        experiment=duty.experiment,
        technique=duty.technique,
        compared=_compared(card, past, briefing),
        suspect=_suspect(past, briefing),
    )


def _compared(card: Card, past: PastExperiment, briefing: Briefing) -> tuple[Compared, ...]:
    where = f"{briefing.position.value}/{briefing.phase.value}"
    seen = f"{past.verdict.value}: {past.reason}" if past.gain is None else f"{exp(past.gain):.3f}x"
    site = _site(card, past, briefing)
    measured, all_settings = _settings(card, past, site, briefing)
    return (
        Compared(what="promise", card=card.evidence, seen=seen, holds=past.verdict.kept),
        Compared(
            what="matrix cell",
            card=", ".join(f"{position.value}/{phase.value}" for position, phase in card.cells),
            seen=where,
            holds=card.suits(briefing.position, briefing.phase),
        ),
        Compared(
            what="site",
            card=card.helps,
            seen=site.evidence if site else "the transform finds no such site in the base",
            holds=site is not None,
        ),
        Compared(
            what="numerics",
            card=card.numerics.value,
            seen=briefing.numerics,
            holds=card.numerics is Numerics.EXACT or briefing.numerics != "strict",
        ),
        Compared(
            what="settings",
            card=f"{all_settings} in its space",
            seen=f"{measured} measured or raced at this site",
            holds=measured >= min(2, all_settings),
        ),
    )


def _site(card: Card, past: PastExperiment, briefing: Briefing) -> Site | None:
    """The experiment's site, found again in the text of its base."""
    key = past.parameters.get(SITE)
    if card.transform is None or not isinstance(key, str):
        return None
    transform = card.transform()
    sites = {f"{path}:{site.key}": site for path, text in briefing.editable.items() for site in transform.applies(text)}
    return sites.get(key)


def _settings(card: Card, past: PastExperiment, site: Site | None, briefing: Briefing) -> tuple[int, int]:
    """Settings of the site that were measured or raced, and how many its space has."""
    key = past.parameters.get(SITE)
    told = [p for one in tries(card, briefing) for p in (one.parameters, *(raced for raced, _ in one.screened))]
    here = {tuple(sorted((name, str(value)) for name, value in each.items())) for each in told if each.get(SITE) == key}
    if card.transform is None or site is None:
        return len(here), 1
    return len(here), max(1, prod(len(values) for values in card.transform().space(site).values()))


def _suspect(past: PastExperiment, briefing: Briefing) -> str:
    """A fault beside the technique that would explain its failure; empty when there is none to see."""
    if past.verdict is Verdict.BUILD_FAILED:
        return f"the edit did not build, so the technique was never measured: {past.reason}"[:300]
    if past.verdict in _FAULTY:
        return _tail_fault(past, briefing)
    faster = [(gain, setting) for setting, gain in past.screened if gain is not None and gain > 0.0]
    if past.gain is not None and past.gain < 0.0 and faster:
        gain, setting = max(faster, key=lambda each: each[0])
        shown = ", ".join(f"{name}={value}" for name, value in setting.items() if name != SITE)
        return f"the champion's settings: in the race another setting ({shown}) ran at {exp(gain):.3f}x"
    return ""


def _tail_fault(past: PastExperiment, briefing: Briefing) -> str:
    """A setting that does not divide a dimension of the workload that failed: the fault is in a tail."""
    failed = [(name, dims) for name, dims in briefing.workloads.items() if name in past.reason]
    steps = {name: value for name, value in past.parameters.items() if isinstance(value, int) and value > 1}
    for workload, dims in failed:
        for dim, extent in dims.items():
            for name, step in steps.items():
                if extent % step:
                    return f"the tail of {dim}={extent} on workload {workload}, which {name}={step} does not divide"
    return ""

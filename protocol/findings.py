"""What the team knows, as typed findings: made from the events as they happen, told to every mind, the most relevant to
its direction first. A negative finding is worth as much as a positive one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from protocol import events as ev
from protocol.directions import directed
from protocol.messages import Finding, Verdict

if TYPE_CHECKING:
    from protocol.messages import SearchReport
    from protocol.record import CampaignState, ExperimentState

_WRONG = (Verdict.INCORRECT, Verdict.CRASHED, Verdict.BUILD_FAILED, Verdict.TIMEOUT)


def note(state: CampaignState, finding: Finding) -> None:
    """Keep a finding, and where to find it again."""
    place = len(state.findings)
    state.findings.append(finding)
    state.found_in.setdefault(finding.category, []).append(place)
    if finding.kind == "tampered":
        state.tampered.append(place)


def of_experiment(state: CampaignState, experiment: ExperimentState) -> Finding | None:
    """What a judged experiment teaches; None for one that never ran."""
    plan, verdict = experiment.plan, experiment.verdict
    if plan is None or verdict is None or verdict is Verdict.LOST:
        return None
    kind = "gain" if verdict.kept else "tampered" if verdict is Verdict.TAMPERED else "no gain"
    measured = experiment.overall
    return Finding(
        id=f"f{len(state.findings) + 1}",
        kind="wrong" if verdict in _WRONG else kind,
        what=plan.change,
        technique=plan.technique,
        category=plan.category,
        agent=experiment.agent,
        device=state.device_of(state.agents[experiment.agent]),
        gain=measured.gain if measured else None,
        low=measured.low if measured else None,
        high=measured.high if measured else None,
        commit=experiment.commit,
        source=f"experiment {experiment.id}: {verdict.value}, {experiment.reason}",
    )


def of_landing(
    state: CampaignState, body: ev.Landed | ev.LandingRefused, measured: ev.LandingMeasured | None
) -> Finding | None:
    """What came of a kept change on main, where other agents' changes are, and where that was measured if it was."""
    experiment = state.experiments[body.experiment]
    if experiment.plan is None:
        return None
    gain = body.gain if isinstance(body, ev.Landed) else None
    return Finding(
        id=f"f{len(state.findings) + 1}",
        kind="landed" if gain else "not landed",
        what=experiment.plan.change,
        technique=experiment.plan.technique,
        category=experiment.plan.category,
        agent=experiment.agent,
        device=measured.device if measured else "",
        gain=gain.gain if gain else None,
        low=gain.low if gain else None,
        high=gain.high if gain else None,
        commit=body.commit if isinstance(body, ev.Landed) else experiment.commit,
        source=f"landing of {experiment.id}: {body.why if isinstance(body, ev.LandingRefused) else 'verified on main'}",
    )


def of_search(state: CampaignState, agent: str, report: SearchReport) -> Finding:
    """What a search chose, with where it was read."""
    first = report.sources[0]
    return Finding(
        id=f"f{len(state.findings) + 1}",
        kind="search",
        what=report.why,
        technique=report.technique,
        category=report.category,
        agent=agent,
        source=f"search {report.id}: {first.title}, {first.locator}",
    )


def ranked(state: CampaignState, agent: str) -> tuple[Finding, ...]:
    """The findings for one agent's mind: its direction's categories first, then what somebody tampered with, then what
    is faster elsewhere and can be composed, then the rest; the newest first in each, and no more than the law's number.

    Looks at the newest of each kind alone, so that its cost does not grow with the campaign.
    """
    most = state.policy.briefing_findings
    claim = directed(state, agent)
    near = {place for name in (claim.allowed if claim else ()) for place in state.found_in.get(name, ())[-most:]}
    first = [state.findings[place] for place in sorted(near, reverse=True)[:most]]
    return tuple(first) if len(first) == most else (*first, *_elsewhere(state, near, most))[:most]


def _elsewhere(state: CampaignState, near: set[int], most: int) -> Iterator[Finding]:
    """The newest findings outside an agent's direction, ranked."""
    newest = range(max(0, len(state.findings) - most), len(state.findings))
    older = (place for place in reversed(state.tampered[-most:]) if place not in newest)
    ranks: tuple[list[Finding], ...] = [], [], []
    for place in chain(reversed(newest), older):
        if place in near:
            continue
        finding = state.findings[place]
        ranks[0 if finding.kind == "tampered" else 1 if finding.positive else 2].append(finding)
    return chain.from_iterable(ranks)

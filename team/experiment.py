"""One experiment: proposed, committed, admitted, raced over its variants, and the champion measured."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from protocol import events as ev
from protocol.messages import Briefing, Experiment, Measurement, Outcome, Parameter, Plan, Proposal, Role, Variant
from protocol.race import frontier
from roles.minds.mind import MindFailed, NothingToPropose
from roles.minds.registry import is_free
from team.coordination import MAX_REFUSALS
from team.desk import Desk
from team.judge.request import Screen
from team.race import commit_variant, race, with_texts
from team.workspace.objects import Refused

log = logging.getLogger(__name__)
T = TypeVar("T")
Screened = tuple[tuple[dict[str, Parameter], float | None], ...]


@dataclass(frozen=True)
class Champion:
    """The variant that is measured; ``failed`` is what the race saw when not one variant ran."""

    commit: str
    parameters: dict[str, Parameter]
    screened: Screened = ()
    failed: Measurement | None = None


def perform_experiment(desk: Desk, duty: Experiment) -> ev.ExperimentReported | ev.NothingProposed:
    """Propose until a plan is admitted, then run it.

    A mind that costs money and proposes nothing that may run has failed: it is asked again as often as the law asks a
    mind that fails, and not anew in every round for as long as the money lasts.
    """
    desk.supply.fetch(duty.base)
    desk.worktree.reset(duty.base)
    why = ""
    for _ in range(MAX_REFUSALS):
        briefing = briefing_for(desk, duty.base)
        try:
            proposal = desk.mind.propose(briefing)
        except NothingToPropose as nothing:
            return ev.NothingProposed(
                experiment=duty.id,
                why=nothing.why,
                failed=isinstance(nothing, MindFailed),
                dollars=nothing.dollars,
                passed_over=nothing.passed_over,
            )
        try:
            commits = _beside(desk, lambda one: _commit(desk, duty, proposal.plan, one), proposal.variants)  # noqa: B023
        except Refused as refused:
            why = str(refused)
            desk.lead.refuse(duty.id, proposal.plan, why, proposal.dollars)
            continue
        why = desk.lead.admit(duty.id, proposal.plan, commits, proposal.dollars)
        if not why:
            return _run(desk, duty, briefing, proposal, commits)
        log.info("plan refused: %s", why)
    told = f"{MAX_REFUSALS} plans in a row were refused; the last: {why}"
    return ev.NothingProposed(experiment=duty.id, why=told, failed=not is_free(desk.mind.name))


def briefing_for(desk: Desk, base: str) -> Briefing:
    """What the mind is told, with the text of the editable files at ``base``."""
    told = desk.lead.briefing(base)
    known = {"editable": desk.hub.read(desk.editable, base), "cores": len(desk.device.kernel_cores)}
    known["max_settings"] = desk.settings
    if told.role is Role.EXPLOITER:
        known["frontier"] = with_texts(desk.hub, desk.editable, frontier(told.history, told.law))
    return told.model_copy(update=known)


def _run(
    desk: Desk, duty: Experiment, briefing: Briefing, proposal: Proposal, commits: list[str]
) -> ev.ExperimentReported:
    champion = _champion(desk, duty, proposal, commits)
    measured = champion.failed or _measured(desk, duty, champion.commit)
    dollars = 0.0
    if measured.outcome is Outcome.BUILD_FAILED:
        mended = desk.mind.repair(briefing, proposal, measured.detail)
        if mended is not None:
            dollars = mended.dollars
            champion, measured = _repaired(desk, duty, mended, champion, measured)
    return ev.ExperimentReported(
        experiment=duty.id,
        commit=champion.commit,
        parameters=champion.parameters,
        screened=champion.screened,
        measurement=measured,
        lines=desk.hub.lines(duty.base, champion.commit),
        dollars=dollars,
    )


def _measured(desk: Desk, duty: Experiment, commit: str) -> Measurement:
    desk.worktree.reset(commit)
    measured = desk.compare(duty.base, commit)
    desk.saw(measured)
    return measured


def _repaired(
    desk: Desk, duty: Experiment, mended: Proposal, before: Champion, failure: Measurement
) -> tuple[Champion, Measurement]:
    """The one repair that a build failure gets; a repair that may not be committed leaves the failure as it was."""
    try:
        commit = _commit(desk, duty, mended.plan, mended.variants[0])
    except Refused as refused:
        log.info("repair refused: %s", refused)
        return before, failure
    after = Champion(commit, mended.variants[0].parameters, before.screened)
    return after, _measured(desk, duty, commit)


def _champion(desk: Desk, duty: Experiment, proposal: Proposal, commits: list[str]) -> Champion:
    """The most promising variant by a short race; its samples are never used again."""
    if len(commits) == 1:
        return Champion(commits[0], proposal.variants[0].parameters)
    trees = tuple(_beside(desk, desk.snapshot, commits))
    request = Screen(task=str(desk.trusted), base=desk.snapshot(duty.base), candidates=trees, noise=desk.lead.noise())
    raced = race(desk.judge, request, desk.weights, desk.policy)
    screened = tuple((v.parameters, g) for v, g in zip(proposal.variants, raced.gains, strict=True))
    best, failed = raced.champion, None
    if best is None:
        best, failed = 0, raced.measured[0]
    return Champion(commits[best], proposal.variants[best].parameters, screened, failed)


def _beside(desk: Desk, act: Callable[[T], str], ones: Sequence[T]) -> list[str]:
    """``act`` on each, in order, on all of the device's cores: a setting's commit and its folder are a dozen short
    processes of git, and many settings of them in a row would take as long as the screening."""
    with ThreadPoolExecutor(len(desk.device.cores)) as hands:
        return list(hands.map(act, ones))


def _commit(desk: Desk, duty: Experiment, plan: Plan, variant: Variant) -> str:
    """See ``commit_variant``."""
    editable, name = desk.editable, desk.name
    return commit_variant(desk.hub, editable, duty.base, variant, duty.id, plan.technique, name, plan.change)

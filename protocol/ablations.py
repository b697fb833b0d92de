"""Ablation of a campaign: which landings of main are still to be taken out, and what all of them came to. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from protocol.methods import MethodLists, sorted_methods

if TYPE_CHECKING:
    from protocol import events as ev
    from protocol.record import CampaignState


def ablations_of_main(state: CampaignState) -> dict[str, ev.MethodAblated]:
    """The newest ablation of each landed experiment, of those that were made of main as it stands."""
    return {one.experiment: one for one in state.ablations if one.commit == state.main}


def pending_ablations(state: CampaignState) -> tuple[str, ...]:
    """Landed experiments that main has not been measured without, the largest verified gain first."""
    done = ablations_of_main(state)
    left = [landed for landed in state.landed if landed.experiment not in done]
    return tuple(landed.experiment for landed in sorted(left, key=lambda landed: -landed.gain.gain))


def labels(state: CampaignState) -> dict[str, str]:
    """A name for each landed experiment: its technique, with its id where a technique landed more than once."""
    techniques = {landed.experiment: _technique(state, landed.experiment) for landed in state.landed}
    count = Counter(techniques.values())
    return {ident: name if count[name] == 1 else f"{name} ({ident})" for ident, name in techniques.items()}


def method_lists(state: CampaignState) -> MethodLists:
    """The five lists over the landings of main; a landing that was not taken out is unverified."""
    names, done = labels(state), ablations_of_main(state)
    return sorted_methods(
        names.values(),
        {names[ident]: one.ablation for ident, one in done.items()},
        {names[ident]: one.sass for ident, one in done.items()},
    )


def _technique(state: CampaignState, ident: str) -> str:
    plan = state.experiments[ident].plan
    return plan.technique if plan else ident

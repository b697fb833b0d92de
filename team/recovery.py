"""What is found broken on disk when a campaign goes on: mended and told, or refused with the remedy.

``examine`` is the driver's look before anything starts: what it finds cannot be mended by us. ``mend`` is the
coordinator's, each time it starts: locks of dead processes, a main that moved without a verification.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from protocol.landings import Settle, pending
from protocol.ledger import Ledger, LedgerError
from protocol.snapshot import restore
from protocol.state import CampaignState
from team.errors import UserError
from team.runs import Run
from team.workspace.hub import Hub

MIN_FREE_BYTES = 64 * 1024 * 1024
"""A compiler without room reports a broken kernel, so nothing is started with less."""


def examine(run: Run) -> None:
    """Raise ``UserError`` for what keeps this campaign from going on and what only a person can mend."""
    _writable(run.folder)
    room(run.folder)
    state = _readable(run)
    hub = Hub.open(run.folder)
    missing = hub.lacking(_needed(state))
    if missing and hub.origin is not None:
        hub.fetch_again()
        missing = hub.lacking(missing)
    if missing:
        raise UserError(
            f"The hub {hub.path} lacks objects of commit {missing[0][:12]}, which the campaign stands on.",
            "Put hub.git back from a copy, or start anew with: kernelteam run TASK",
        )


def room(folder: Path) -> None:
    """``UserError`` when the disk that holds ``folder`` is as good as full."""
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        raise UserError(
            f"The disk that holds {folder} has only {free >> 20} MiB left.",
            "Free some space and go on with: kernelteam resume",
        )


def mend(hub: Hub, state: CampaignState) -> tuple[str, ...]:
    """Put right what a kill or a hand left in the hub; one sentence for each thing that was wrong."""
    return (*hub.repair(), *_main_as_verified(hub, state))


def diagnose(run: Run, otherwise: str) -> UserError:
    """Why a campaign broke off: the disk's trouble when there is one, else what was said."""
    try:
        examine(run)
    except UserError as trouble:
        return trouble
    return UserError(f"The campaign broke off: {otherwise}.", "Mend that and go on with: kernelteam resume")


def _main_as_verified(hub: Hub, state: CampaignState) -> tuple[str, ...]:
    """Main belongs where verifications brought it, or one verified step further, when a kill came before its event."""
    stands = hub.standing()
    step = pending(state)
    verified = step.proof.commit if isinstance(step, Settle) and step.proof else state.main
    if stands in (state.main, verified):
        return ()
    hub.put_back(state.main, stands)
    if not stands:
        return (f"Branch main of the hub was gone or unreadable; it stands on {state.main[:12]} again.",)
    return (
        f"Branch main of the hub stood on {stands[:12]}, which no verification in the ledger covers; it stands on"
        f" {state.main[:12]} again, and the other commit is kept as refs/kernelteam/strays/{stands[:12]}: have an agent"
        " propose its change if you want it.",
    )


def _writable(folder: Path) -> None:
    for path in (folder, folder / "ledger.sqlite", folder / "hub.git"):
        if path.exists() and not os.access(path, os.W_OK):
            raise UserError(
                f"{path} cannot be written.", "Make it writable for this user and go on with: kernelteam resume"
            )


def _readable(run: Run) -> CampaignState:
    try:
        with Ledger(run.ledger) as ledger:
            return restore(ledger)[0]
    except LedgerError as error:
        raise UserError(f"{str(error).capitalize()}.", LedgerError.remedy) from error


def _needed(state: CampaignState) -> Sequence[str]:
    """Commits that the campaign cannot do without. A kept commit that is gone is refused by the landing desk."""
    return tuple(dict.fromkeys((state.started.commit, state.main)))

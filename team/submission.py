"""Bring a campaign's result to the user's repository, on record."""

import time

from protocol.events import Submitted
from protocol.ledger import Ledger
from team.errors import UserError
from team.launch import state_of
from team.runs import Run
from team.workspace.hub import Hub
from team.workspace.submit import submit


def submit_run(run: Run, tag: str | None, into: str) -> str:
    """Make branch ``autodev/<tag>`` in the user's repository at the campaign's main; the sentences to print."""
    state = state_of(run)
    if state.main == state.started.commit:
        raise UserError("Nothing was faster beyond doubt, so there is nothing to submit.", "See: kernelteam log")
    with run.owned():
        said = submit(Hub.open(run.folder), state.main, tag or run.name, into)
        with Ledger(run.ledger, writer=True) as ledger:
            ledger.append(time.time(), [("", Submitted(commit=state.main, branch=f"autodev/{tag or run.name}"))])
    return said

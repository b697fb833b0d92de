"""Trouble with the ledger, in a module of its own so that the command line can name it without importing the ledger."""


class LedgerTrouble(Exception):
    """The ledger cannot be read or written. The message says which file and why; ``remedy`` is the same for all."""

    remedy = (
        "Copy the campaign's folder first; what landed is branch main of its hub.git."
        " Put ledger.sqlite back from a copy and go on with: kernelteam resume"
    )

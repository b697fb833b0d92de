"""What every mind can do, in one screenful."""

from typing import Protocol

from protocol.messages import Briefing, Merge, Proposal, Resolution, SearchReport


class NothingToPropose(Exception):
    """The mind has no admissible idea for this briefing. ``why`` goes to the ledger."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class CannotResolve(Exception):
    """The mind cannot bring the two changes together. ``why`` goes to the ledger; whole trees are compared then."""

    def __init__(self, why: str, dollars: float = 0.0) -> None:
        super().__init__(why)
        self.why = why
        self.dollars = dollars


class Mind(Protocol):
    """A source of proposals. Implementations: ``catalog``, ``anthropic``, ``command``, and scripted ones in tests."""

    name: str

    def propose(self, briefing: Briefing) -> Proposal:
        """One plan and its variants, or ``NothingToPropose``."""
        ...

    def repair(self, briefing: Briefing, proposal: Proposal, failure: str) -> Proposal | None:
        """One try at mending a build failure; None when this mind does not repair."""
        ...

    def research(self, briefing: Briefing, duty_id: str) -> SearchReport:
        """The answer to a search duty; its ``id`` is ``duty_id``."""
        ...

    def resolve(self, merge: Merge) -> Resolution:
        """Both changes in one text, on top of main's, or ``CannotResolve``."""
        ...

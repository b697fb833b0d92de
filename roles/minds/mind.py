"""What every mind can do, in one screenful."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from protocol.messages import (
    Briefing,
    Chronicle,
    Measurement,
    Merge,
    ModelCall,
    PassedOver,
    Proposal,
    Recheck,
    RecheckReport,
    ResearchReport,
    Resolution,
    SearchReport,
)


class NothingToPropose(Exception):
    """The mind has no admissible idea for this briefing. ``why`` goes to the ledger, with what it cost (US dollars) and
    what the law wanted next, each with the reason that stands against it."""

    def __init__(self, why: str, dollars: float = 0.0, passed_over: tuple[PassedOver, ...] = ()) -> None:
        super().__init__(why)
        self.why = why
        self.dollars = dollars
        self.passed_over = passed_over


class MindFailed(NothingToPropose):
    """The mind did not answer: no network, a limit, a reply that is not one. It may be asked again."""


class Workshop(Protocol):
    """What an agent lends to its mind: folders of its own, the judge's quick look, a place for records, an account."""

    def laid_out(self, base: str) -> AbstractContextManager[Path]:
        """A folder with the task as it stands at commit ``base``, the mind's to change; it is gone afterwards."""
        ...

    def cleared(self) -> AbstractContextManager[Path]:
        """An empty folder, the mind's to fill; it is gone afterwards."""
        ...

    def check(self, base: str, files: Mapping[str, str]) -> Measurement:
        """Build and check ``base`` with these editable files changed (path -> new text). Nothing is timed.

        A file that is not editable is refused as an outcome, in words for the mind.
        """
        ...

    def machine_code(self, base: str, files: Mapping[str, str], function: str, first: int) -> str:
        """Lines of a GPU's machine code of ``base`` with these editable files changed, from line ``first`` of
        ``function`` on (empty: the longest function); a sentence where there is none to show. Builds as ``check`` does.
        """
        ...

    def transcript(self, duty: str) -> Path:
        """Where what was said for a duty is kept for good."""
        ...

    def spent(self, call: ModelCall) -> None:
        """Have an answer of a model counted in the ledger; durable when this returns. Twice counts once."""
        ...


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

    def recheck(self, briefing: Briefing, duty: Recheck) -> RecheckReport:
        """The regressed experiment against its card; ``briefing`` holds the source at the experiment's base."""
        ...

    def reflect(self, chronicle: Chronicle, duty_id: str) -> ResearchReport:
        """What the record shows to a mind that knows nothing else; its ``id`` is ``duty_id``."""
        ...

"""What is proven of methods: seen in the machine code, missed when taken out, clean under the sanitizer. Pure.

A method is effective only when both are proven: the champion is faster with it beyond doubt, and its instructions are
there (or nothing in the machine code could show it). What is missing, failed or undecided proves nothing either way.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Literal

from pydantic import Field

from protocol.messages import Decision, Estimate, Message, Outcome

Tool = Literal["memcheck", "racecheck", "initcheck", "synccheck"]


class Status(StrEnum):
    """What a look at the machine code says. ``NOT_APPLICABLE``: nothing there could show the method."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    NOT_APPLICABLE = "not_applicable"
    TOOL_ERROR = "tool_error"


class SassCheck(Message):
    """One method in the machine code of one kernel against its parent's.

    ``now`` and ``before`` are the opcode counts that were looked at, by pattern; ``kernel`` is the function that shows
    the method, empty when none does or all count together.
    """

    method: str
    status: Status
    why: str = Field(min_length=1, description="one sentence")
    arch: str = Field(default="", description="of the machine code, such as sm_90a; empty when there was none")
    kernel: str = ""
    now: dict[str, int] = Field(default_factory=dict[str, int])
    before: dict[str, int] = Field(default_factory=dict[str, int])


class Contribution(StrEnum):
    """What the champion owes to a method."""

    CONTRIBUTED = "contributed"
    NOT_CONTRIBUTED = "not_contributed"
    INCONCLUSIVE = "inconclusive"


class Ablation(Message):
    """The champion against itself without one method. ``gain`` is the log gain of having it."""

    method: str
    contribution: Contribution
    why: str = Field(min_length=1)
    without: str = Field(default="", description="commit or folder of the tree without it; empty when there is none")
    how: str = Field(default="", description="how that tree was made")
    gain: Estimate | None = None
    workloads: dict[str, Estimate] = Field(default_factory=dict[str, Estimate])


class Sanitized(Message):
    """What one tool of compute-sanitizer said before a landing. Unchecked is not clean."""

    tool: Tool
    status: Literal["clean", "found", "unchecked"]
    findings: tuple[str, ...] = ()
    why: str = Field(default="", description="why it is unchecked")


class MethodLists(Message):
    """Every method that was selected, sorted by what is proven of it."""

    selected: tuple[str, ...] = ()
    effective: tuple[str, ...] = ()
    ineffective: tuple[str, ...] = ()
    implementation_failed: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()


def attributed(
    method: str, outcome: Outcome, detail: str, decision: Decision | None, without: str, how: str
) -> Ablation:
    """The word on a method: ``decision`` is the sequential test of the champion over the tree without it."""

    def said(contribution: Contribution, why: str) -> Ablation:
        gain = decision.overall if decision else None
        workloads = decision.workloads if decision else {}
        return Ablation(
            method=method, contribution=contribution, why=why, without=without, how=how, gain=gain, workloads=workloads
        )

    if outcome is not Outcome.MEASURED or decision is None:
        return said(Contribution.INCONCLUSIVE, f"without it: {outcome.value}{f', {detail}' if detail else ''}"[:500])
    if decision.state == "keep":
        return said(Contribution.CONTRIBUTED, decision.reason)
    if decision.state == "revert":
        return said(Contribution.NOT_CONTRIBUTED, decision.reason)
    return said(Contribution.INCONCLUSIVE, decision.reason)


def absent(method: str, why: str) -> Ablation:
    """There is no tree without the method, so nothing is known of it."""
    return Ablation(method=method, contribution=Contribution.INCONCLUSIVE, why=why)


def sorted_methods(
    selected: Iterable[str], ablations: Mapping[str, Ablation], checks: Mapping[str, SassCheck]
) -> MethodLists:
    """The five lists. A method without a check or an ablation is unverified."""
    names = tuple(dict.fromkeys(selected))
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(_list_of(ablations.get(name), checks.get(name)), []).append(name)
    return MethodLists(selected=names, **{key: tuple(methods) for key, methods in found.items()})


def _list_of(ablation: Ablation | None, check: SassCheck | None) -> str:
    if check is not None and check.status is Status.FAIL:
        return "implementation_failed"
    seen = check is not None and check.status in (Status.PASS, Status.NOT_APPLICABLE)
    if not seen or ablation is None or ablation.contribution is Contribution.INCONCLUSIVE:
        return "unverified"
    return "effective" if ablation.contribution is Contribution.CONTRIBUTED else "ineffective"

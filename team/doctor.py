"""``kernelteam doctor``: what this machine has, what is missing, and the remedy for each missing thing."""

import os
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from team.probes.finding import CLAUDE, EVERY, Finding
from team.probes.gpu import gpus
from team.probes.host import machine, packages, programs
from team.probes.sandbox import layers
from team.runs import home


def diagnose() -> list[Finding]:
    """Every finding, in the order in which a person would ask. Starts short-lived programs, changes nothing."""
    return [*programs(), *packages(), *machine(home()), *gpus(), *layers(), _key()]


def missing(findings: Sequence[Finding]) -> list[Finding]:
    """Those without which no campaign can run on this machine at all."""
    return [finding for finding in findings if not finding.ok and finding.wanted_for == EVERY]


def _key() -> Finding:
    if os.environ.get("ANTHROPIC_API_KEY"):
        return Finding("ANTHROPIC_API_KEY", True, "set", "", CLAUDE)
    remedy = "Set it to use that mind; the built-in one needs no key."
    return Finding("ANTHROPIC_API_KEY", False, "ANTHROPIC_API_KEY is not set.", remedy, CLAUDE)


def render(findings: Sequence[Finding]) -> Table:
    """What a person sees: what is there, what is not, and below that who misses it and the remedy."""
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        mark = Text("ok", "green") if finding.ok else Text("no", "red" if finding.wanted_for == EVERY else "yellow")
        told = finding.what if finding.ok else f"{finding.what}\nFor {finding.wanted_for}: {finding.remedy}"
        table.add_row(mark, Text(finding.name), Text(told))
    return table

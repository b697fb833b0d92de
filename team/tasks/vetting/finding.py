"""What is wrong with a task, one sentence at a time."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Finding:
    """One fault: what it is, and what to change. ``kind`` names it for programs."""

    kind: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what} {self.remedy}"


@dataclass
class Vetted:
    """A task that was looked at: its faults, and what is to be known of how it was looked at."""

    task: str
    findings: list[Finding] = field(default_factory=list[Finding])
    notes: list[str] = field(default_factory=list[str])

    def add(self, kind: str, what: str, remedy: str) -> None:
        """One more fault; one of a kind and place is enough."""
        finding = Finding(kind, what, remedy)
        if finding not in self.findings:
            self.findings.append(finding)

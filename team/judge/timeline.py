"""Where the time of a request goes: every stage with its begin, its end and its process. Always recorded. Trusted.

One judge answers one request at a time in one process, so there is one timeline, as there is one log. A stage costs
about a microsecond; what is written between two measured launches is a list entry and nothing else.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MOST = 50_000  # stages of one request that are kept: some minutes of measuring
SINGLE = 12  # occurrences of a stage that a listing shows one by one; more are summed
JUDGE = "judge"


@dataclass(frozen=True)
class Stage:
    """One stage of ``who``, in nanoseconds of the monotonic clock, which every process of a machine shares."""

    name: str
    who: str
    begin_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end_ns - self.begin_ns) * 1e-9


class Timeline:
    """The stages of one request."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self._written: int | None = None
        self.begin()

    def begin(self) -> None:
        """Forget what was before: another request comes. What was done since the last one was written, while nobody
        waited, is this one's: it begins before zero."""
        self.began_ns = time.perf_counter_ns()
        self.stages = [] if self._written is None else self.stages[self._written :]
        self._written = None

    def add(self, name: str, who: str, begin_ns: int, end_ns: int) -> None:
        """Record a stage that has ended."""
        if len(self.stages) < MOST:
            self.stages.append(Stage(name, who, begin_ns, end_ns))

    @contextmanager
    def stage(self, name: str, who: str = JUDGE) -> Iterator[None]:
        """Record a block of code, however it ends."""
        begin = time.perf_counter_ns()
        try:
            yield
        finally:
            self.add(name, who, begin, time.perf_counter_ns())

    def write(self, path: Path) -> None:
        """Leave the stages at ``path``, one a line, times counted from the request's begin."""
        zero = self.began_ns
        lines = [f"{one.begin_ns - zero}\t{one.end_ns - zero}\t{one.who}\t{one.name}\n" for one in self.stages]
        path.write_text("".join(lines))
        self._written = len(lines)


TIMELINE = Timeline()


def timeline_path(scratch: Path, device: str) -> Path:
    """Where the judge of ``device`` leaves the stages of its last request."""
    return scratch / f"timeline-{device.replace(':', '-').replace(',', '_')}.tsv"


def read_stages(path: Path) -> list[Stage]:
    """What ``Timeline.write`` left; empty when nothing was."""
    lines = path.read_text().splitlines() if path.exists() else []
    fields = [line.split("\t", 3) for line in lines]
    return [Stage(name, who, int(begin), int(end)) for begin, end, who, name in fields]


def listing(stages: list[Stage]) -> list[str]:
    """A line for every rare stage and a line for every frequent kind, in the order in which they began."""
    groups: dict[tuple[str, str], list[Stage]] = {}
    counts: dict[str, int] = {}
    for stage in stages:
        counts[stage.name] = counts.get(stage.name, 0) + 1
    for number, stage in enumerate(sorted(stages, key=lambda one: one.begin_ns)):
        frequent = counts[stage.name] > SINGLE
        groups.setdefault((stage.name, "" if frequent else str(number)), []).append(stage)
    return [_line(group) for group in groups.values()]


def _line(group: list[Stage]) -> str:
    first, last = group[0].begin_ns * 1e-9, max(stage.end_ns for stage in group) * 1e-9
    total = sum(stage.seconds for stage in group)
    times = f" in {len(group)}, longest {max(stage.seconds for stage in group) * 1e3:.1f} ms" if len(group) > 1 else ""
    who = group[0].who if len({stage.who for stage in group}) == 1 else "several"
    return f"{first:8.3f} to {last:8.3f}  {total:7.3f} s  {group[0].name:18} {who}{times}"

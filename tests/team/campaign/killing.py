"""Random ``kill -9`` points over a real campaign, and the audit of what is left. Seeded; run by a test and a script."""

import hashlib
import random
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from campaign_bench import Bench, git
from recomputing import REFERENCE, TASK, apart, play

from protocol import events as ev
from team.workspace.hub import Hub

LAW = """
[policy]
threshold = 0.1
looks = [4, 8]
pairs_per_restart = 2
screen_pairs = 2
struck_restarts = 1
calibration_restarts = 4
"""
# Who dies how often. "guardian" lets the driver end in order; "mixed" is two or three at once.
VICTIMS = {
    "runner": 2, "judge": 3, "agent": 4, "coordinator": 4, "driver": 2, "guardian": 1, "mixed": 3, "everything": 1,
}  # fmt: skip
MARKS = {
    "runner": "/artifact",
    "judge": "team.judge.server",
    "agent": "ray::Agent",
    "coordinator": "ray::Coordinator",
}
_LONGEST_PAUSE_S = 4.0
_EARLY = 0.15
_GONE_S = 200.0
_END_S = 500.0


class Broken(AssertionError):
    """What did not hold, with the campaign's folder."""


@dataclass
class Point:
    """One kill: when (seconds into the campaign), whom, and how many events were acknowledged until then."""

    at: float
    kind: str
    killed: list[str]
    acknowledged: int


@dataclass
class Tale:
    """What happened to one campaign."""

    seed: int
    points: list[Point] = field(default_factory=list[Point])
    resumes: int = 0
    events: int = 0
    experiments: int = 0
    lost: int = 0
    landed: int = 0
    seconds: float = 0.0


def make_bench(folder: Path) -> Bench:
    """A small task with one thing to win that no noise can hide, in a repository of its own."""
    task = folder / "repo" / "row_energy"
    task.mkdir(parents=True)
    law = TASK.replace("\n[policy]\ncalibration_restarts = 4\n", LAW)
    for name, text in (("row_energy.cpp", apart(False, False)), ("reference.py", REFERENCE), ("task.toml", law)):
        (task / name).write_text(text)
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "a task")):
        git(folder / "repo", *words)
    (folder / "script.json").write_text(play("both", apart(True, True)).model_dump_json())
    return Bench(task, folder / "home")


class Killing:
    """One campaign under fire."""

    def __init__(self, bench: Bench, seed: int) -> None:
        self._bench = bench
        self._dice = random.Random(seed)
        self._begun = time.monotonic()
        self._rows: list[str] = []
        self._from = 0
        self._team = f"explorer:scripted:{bench.home.parent / 'script.json'},exploiter:noop"
        self._pause = threading.Event()
        self._driver: subprocess.Popen[str] | None = None
        self.tale = Tale(seed)

    def run(self, kills: int) -> Tale:
        """Kill ``kills`` times, let the campaign end, audit it. ``Broken`` when something does not hold."""
        self._start("run", str(self._bench.task), "--yes", "--experiments", "1000", "--agents", self._team)
        self._bench.until(lambda events: bool(events))
        while len(self.tale.points) < kills:
            self._until_worth_killing()
            self._pause.wait(self._dice.uniform(0.0, _LONGEST_PAUSE_S))
            self._go_on_when_dead()
            self._kill()
        self._end()
        self._audit()
        self.tale.seconds = time.monotonic() - self._begun
        return self.tale

    # ------------------------------------------------------------ the fire

    def _until_worth_killing(self) -> None:
        """Mostly wait until duties are being done; now and then a start is killed as well."""
        if self._dice.random() < _EARLY:
            return
        deadline = time.monotonic() + _END_S
        while not self._at_work():
            self._go_on_when_dead()
            if time.monotonic() > deadline:
                raise Broken(f"nobody works {_END_S:.0f} s after a kill; {self._said()}")
            self._pause.wait(0.2)

    def _at_work(self) -> bool:
        """Whether a duty was handed out since the driver was started."""
        assert self._driver is not None
        fresh = self._bench.events(after=self._from)
        return self._driver.poll() is None and any(e.body.kind == "duty_given" for e in fresh)

    def _kill(self) -> None:
        kind = self._dice.choices(list(VICTIMS), list(VICTIMS.values()))[0]
        victims = self._victims(kind)
        self.acknowledge()
        killed: list[str] = []
        for name, process in victims:
            with suppress(psutil.NoSuchProcess):
                process.kill()
                killed.append(name)
        if killed:
            at = round(time.monotonic() - self._begun, 2)
            self.tale.points.append(Point(at, kind, killed, len(self._rows)))

    def _victims(self, kind: str) -> list[tuple[str, psutil.Process]]:
        found = [(name, process) for process in self._bench.processes() if (name := self._name(process))]
        if kind == "everything":
            return [(self._name(process) or "helper", process) for process in self._bench.processes()]
        if kind == "mixed":
            return self._dice.sample(found, min(len(found), self._dice.choice((2, 3))))
        chosen = [each for each in found if each[0] == kind]
        return [self._dice.choice(chosen)] if chosen else []

    def _name(self, process: psutil.Process) -> str:
        """Which kind of member a process is; empty for Ray's own helpers and for compilers."""
        with suppress(psutil.Error):
            if self._driver is not None and process.pid == self._driver.pid:
                return "guardian"
            command = " ".join(process.cmdline())
            if "team.cli" in command and ("run" in command or "resume" in command):
                return "driver"
            return next((name for name, mark in MARKS.items() if mark in command), "")
        return ""

    def _start(self, *words: str) -> None:
        log = (self._bench.home.parent / "said.txt").open("a")
        with log:
            self._driver = self._bench.start(*words, to=log)

    def _go_on_when_dead(self) -> None:
        """Resume a campaign whose driver is gone. Whatever is left of it must end by itself first."""
        assert self._driver is not None
        if self._driver.poll() is None:
            return
        if not self._bench.gone(_GONE_S):
            raise Broken(f"left behind: {[' '.join(p.cmdline())[:120] for p in self._bench.processes()]}")
        self._from = len(self._bench.events())
        self._start("resume")
        self.tale.resumes += 1

    def _end(self) -> None:
        """Undisturbed now: one more experiment, then asked to stop."""
        self._go_on_when_dead()
        begun = len(self._bench.events())
        assert self._driver is not None
        deadline = time.monotonic() + _END_S
        while not any(e.body.kind == "experiment_judged" for e in self._bench.events(after=max(begun, self._from))):
            self._go_on_when_dead()
            if time.monotonic() > deadline:
                raise Broken(f"no experiment in {_END_S:.0f} s after the last kill; {self._said()}")
            self._pause.wait(0.2)
        self._bench.call("stop")
        try:
            status = self._driver.wait(_END_S)
        except subprocess.TimeoutExpired:
            raise Broken(f"no end {_END_S:.0f} s after 'stop'; {self._said()}") from None
        if status:
            raise Broken(f"ended with status {status}; {self._said()}")

    def _said(self) -> str:
        return (self._bench.home.parent / "said.txt").read_text()[-2000:]

    # ------------------------------------------------------------ the audit

    def _ledger(self) -> Iterator[str]:
        """A digest of every row, numbered, read as SQLite gives it and without the fold."""
        uri = f"file:{self._bench.run / 'ledger.sqlite'}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=30.0)) as db:
            for seq, when, kind, agent, body in db.execute(
                "SELECT seq, time, kind, agent, body FROM events ORDER BY seq"
            ):
                yield f"{seq} {when} {kind} {agent} {hashlib.sha256(body).hexdigest()}"

    def acknowledge(self) -> None:
        """What any reader sees now was committed, so it has to be there for good."""
        rows = list(self._ledger())
        if rows[: len(self._rows)] != self._rows:
            raise Broken(f"events were lost or changed; {len(self._rows)} were acknowledged, {len(rows)} are there")
        self._rows = rows

    def _audit(self) -> None:
        self.acknowledge()
        if not self._bench.gone(_GONE_S):
            raise Broken(f"left behind: {[' '.join(p.cmdline())[:120] for p in self._bench.processes()]}")
        locks = [str(path) for path in self._bench.run.rglob("*.lock") if path.parent != self._bench.run]
        _hold(not locks, f"stale locks: {locks}")
        events, state = self._bench.events(), self._bench.state()
        _hold([e.seq for e in events] == list(range(1, len(events) + 1)), "the ledger's numbers have a gap")
        _hold(bool(state.finished), "it did not finish")
        numbers = sorted(e.number for e in state.experiments.values())
        _hold(numbers == list(range(1, len(numbers) + 1)), f"experiments' numbers have a gap: {numbers}")
        judged = Counter(e.body.experiment for e in events if isinstance(e.body, ev.ExperimentJudged))
        _hold(max(judged.values(), default=0) <= 1, "an experiment was judged twice")
        self._main_is_verified(events)
        self.tale.events, self.tale.experiments = len(events), len(state.judged)
        self.tale.lost, self.tale.landed = state.lost, len(state.landed)

    def _main_is_verified(self, events: list[ev.Event]) -> None:
        main = self._bench.state().started.commit
        kept: set[str] = set()
        for event in events:
            body = event.body
            if isinstance(body, ev.LandingMeasured) and body.decision and body.decision.state == "keep":
                kept.add(body.experiment)
            if isinstance(body, ev.Landed):
                _hold(body.before == main, "main jumped")
                _hold(body.experiment in kept, "landed without its verification")
                main = body.commit
        hub = Hub.open(self._bench.run)
        _hold(hub.main == main, f"main stands at {hub.main}, the ledger says {main}")
        fsck = hub.git.attempt("fsck", "--connectivity-only", "--no-dangling")
        _hold(fsck.returncode == 0, f"git fsck: {fsck.stderr.decode()}")
        measured = [e.body.commit for e in events if isinstance(e.body, ev.MainMeasured)]
        baseline = self._bench.state().started.commit
        _hold(main == baseline or measured[-1:] == [main], "the final main was not measured against the baseline")


def _hold(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)

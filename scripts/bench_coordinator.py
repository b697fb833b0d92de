"""How much one coordinator takes: durable reports a second, cost per event over a long ledger, restart, and status.

    python scripts/bench_coordinator.py [--agents 1000] [--events 100000] [--callers 64] [--json FILE]

The real ``Coordination`` on the real ledger on disk (WAL, synchronous=FULL), driven by simulated agents: each asks for
a duty, is briefed, has a plan admitted, and reports a measurement of the size of a real one (restarts of four pairs, as
many as a campaign on two H200s needed). ``--callers`` of them are under way at a time, as behind the actor, and each
waits for the commit that holds its report. Rates are by the clock and by the CPU time of the coordinating process, with
the agents' own work in it, for the machine may be busy with other things.
"""

import argparse
import asyncio
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts"), str(ROOT / "tests" / "team")]

from noise_models import models  # noqa: E402
from simulated import WEIGHTS, Device  # noqa: E402

from protocol import events as ev  # noqa: E402
from protocol.briefing import Told, briefing_of  # noqa: E402
from protocol.journal import Journal  # noqa: E402
from protocol.landings import Prepare, pending  # noqa: E402
from protocol.ledger import Ledger, row_of  # noqa: E402
from protocol.messages import (  # noqa: E402
    Baseline,
    Build,
    Compared,
    DeviceInfo,
    Duty,
    Experiment,
    Insight,
    Measurement,
    Outcome,
    Plan,
    Profile,
    ProfileReport,
    Recheck,
    RecheckReport,
    Remeasure,
    Research,
    ResearchReport,
    ResolveMerge,
    Rest,
    Role,
    Search,
    SearchReport,
    Source,
    VerifyLanding,
    WorkloadCheck,
)
from protocol.policy import Policy  # noqa: E402
from protocol.sequential import decide  # noqa: E402
from protocol.snapshot import restore  # noqa: E402
from team import garbage  # noqa: E402
from team.commits import Commits  # noqa: E402
from team.coordination import Coordination  # noqa: E402

RESTARTS = (2, 2, 2, 4, 4, 4, 4, 8, 16, 32)
"""Restarts of four pairs that a decision took: most are plain after 8 or 16 pairs (``two-h200-campaign.txt``)."""
POOL = 40
"""Measurements of each size that are made beforehand; making them is the agents' work, not the coordinator's."""
YARDSTICK_EVERY = 500
"""Events between two looks at how fast the machine is."""
AGED = 70
"""Events for each agent after which all are on the plateau: from there on a mind is told of heavy lifts, and nothing
more changes but the ledger. To see 100,000 events of that with 1,000 agents takes ``--events 200000``."""
WORDS = "one line as long as a mind writes it, saying what limits the kernel and where that was seen in the profile"

_LAW = Policy()
_FIXED: dict[str, Any] = {}
"""The report that ``yardstick`` works on."""


@dataclass
class Measured:
    """Latencies of reports in seconds, and what each window of events cost."""

    reports: list[float] = field(default_factory=list[float])
    windows: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    """Events and CPU seconds at the begin of each window."""
    yardsticks: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    """Events, and CPU seconds that a fixed piece of work took then: how fast the machine was."""
    reported: int = 0


class Agents:
    """What simulated agents say. A gain is drawn for an experiment and seen again when its landing is verified."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        model = next(model for name, model in models().items() if "graph" in name)
        device = Device("H200", model, seed)
        self._noise = device.noise.model_dump(mode="json")
        self._pool = {
            (gain, count): [self._measurement(device, gain, count) for _ in range(POOL)]
            for gain in (-0.05, 0.0, 0.03)
            for count in sorted(set(RESTARTS))
        }

    @staticmethod
    def _measurement(device: Device, gain: float, count: int) -> dict[str, Any]:
        build = Build(compiler="nvcc 12.8", flags=("-O3", "-arch=sm_90"), seconds=2.1, artifact="a" * 64)
        seen = Measurement(
            outcome=Outcome.MEASURED,
            restarts=device.restarts(gain, count),
            checks=tuple(WorkloadCheck(workload=name, checks=24, worst=0.2) for name in WEIGHTS),
            base_build=build,
            candidate_build=build,
            device=DeviceInfo(kind="cuda", id="GPU-0", name="NVIDIA H200", details={"sm": "132"}),
            launching=dict.fromkeys(WEIGHTS, "graph of 64 launches"),
            seconds={"build": 2.1, "check": 0.4, "measure": 1.2},
            simplicity={"tokens": (400, 410), "branches": (3, 3), "knobs": (2, 2)},
        )
        return seen.model_dump(mode="json")

    def measured(self, gain: float) -> dict[str, Any]:
        """A measurement as it arrives over the wire."""
        return self.dice.choice(self._pool[gain, self.dice.choice(RESTARTS)])

    def usual(self) -> dict[str, Any]:
        """The same measurement every time."""
        return self._pool[0.0, 8][0]

    def plan(self, cites: str) -> dict[str, Any]:
        """A plan as it arrives over the wire."""
        words = dict.fromkeys(("bottleneck", "evidence", "mechanism", "disproof", "fallback", "differs"), WORDS)
        return {
            "technique": f"technique-{self.dice.randrange(40)}", "category": f"category-{self.dice.randrange(9)}",
            "change": f"{WORDS} {self.dice.random()}", "expected_gain": 0.05, "cell": "balanced/early", "cites": cites,
            **words,
        }  # fmt: skip

    def answer(self, name: str, duty: Duty) -> dict[str, Any]:
        """The report of a duty other than an experiment, as it arrives over the wire."""
        if isinstance(duty, Baseline):
            return {
                "kind": "baseline_measured", "duty": duty.id, "device": name, "noise": self._noise,
                "baseline_ns": dict.fromkeys(WEIGHTS, 1e4), "null_kept": False, "planted_found": True,
                "planted": {"gain": 0.02, "low": 0.01, "high": 0.03, "pairs": 8, "restarts": 2},
                "measurement": self.measured(0.0),
            }  # fmt: skip
        if isinstance(duty, VerifyLanding):
            measured = {"device": name, "measurement": self.measured(0.03)}
            return {"kind": "landing_measured", "duty": duty.id, "experiment": duty.experiment, **measured}
        if isinstance(duty, Remeasure):
            return {
                "kind": "main_measured", "duty": duty.id, "base": duty.base, "commit": duty.candidate, "device": name,
                "estimate": None, "product": 0.0, "agrees": False, "measurement": self.measured(0.03),
            }  # fmt: skip
        return self._of_mind(duty).model_dump(mode="json")

    @staticmethod
    def _of_mind(duty: Duty) -> ev.AnyBody:
        """The report of a duty that takes no measurement."""
        if isinstance(duty, Search):
            source = Source(title=WORDS, locator="https://example.org/paper")
            report = SearchReport(
                id=duty.id, queries=(WORDS,), sources=(source,), technique="t", category="c", why=WORDS
            )
            return ev.SearchReported(report=report)
        if isinstance(duty, Profile):
            return ev.ProfileReported(duty=duty.id, report=ProfileReport(commit=duty.commit, tool="ncu"))
        if isinstance(duty, Research):
            insight = Insight(what=WORDS, why=WORDS, next=WORDS)
            return ev.ResearchReported(report=ResearchReport(id=duty.id, insights=(insight,)))
        if isinstance(duty, Recheck):
            line = Compared(what="site", card=WORDS, seen=WORDS, holds=True)
            report = RecheckReport(
                id=duty.id, experiment=duty.experiment, technique=duty.technique, compared=(line,)
            )  # fmt: skip
            return ev.RecheckReported(report=report)
        assert isinstance(duty, ResolveMerge)
        return ev.MergeResolved(duty=duty.id, experiment=duty.experiment, why="no idea")


class Lead:
    """The coordinator's side of a call without Ray: decide, wait for the commit, answer."""

    def __init__(self, path: Path) -> None:
        self.ledger = Ledger(path, writer=True)
        journal = Journal(self.ledger)
        self.coordination = Coordination(journal, time.time)
        self.commits = Commits(journal)
        self.told = Told()

    async def next_duty(self, agent: str, incarnation: str, ask: str) -> Duty:
        duty = self.coordination.next_duty(agent, incarnation, ask)
        await self.commits.durable()
        return duty

    async def briefing(self, agent: str, base: str, since: int) -> tuple[str, int]:
        """The search to cite and how much was told; the briefing is made and said in full, as over the wire."""
        state = self.coordination.state
        told = len(state.verdicts)
        briefing = briefing_of(state, agent, base, since=told)
        briefing.model_dump(mode="json")
        self.told.history(state, agent, since)
        await self.commits.durable()
        return briefing.search.id if briefing.search else "", told

    async def admit(self, agent: str, experiment: str, plan: dict[str, Any]) -> str:
        why = self.coordination.admit(agent, experiment, Plan.model_validate(plan), ("c" * 40,), 0.0)
        await self.commits.durable()
        return why

    async def report(self, agent: str, body: dict[str, Any]) -> None:
        self.coordination.report(agent, ev.body_from(body))
        await self.commits.durable()

    async def tend(self) -> None:
        """What the actor's loop does: landings (git takes no time here), rounds, snapshots."""
        while True:
            await asyncio.sleep(0.02)
            await self.commits.durable()
            step = pending(self.coordination.state)
            if step is not None:
                self.coordination.record("", *step.bad, landed(step))
            self.coordination.advance()
            self.told.keep_up(self.coordination.state)
            if self.coordination.remember():
                garbage.settle()
            await self.commits.durable()


def landed(step: Any) -> ev.AnyBody:
    """The event of a landing step, as the desk would answer."""
    name = step.experiment.id
    if isinstance(step, Prepare):
        return ev.LandingPrepared(
            experiment=name, candidate=f"m-{name}", main=step.main, how=step.how, against=step.against
        )
    if step.proof is None:
        return ev.LandingRefused(experiment=name, why=step.why)
    proof = step.proof
    return ev.Landed(experiment=name, commit=proof.commit, before=proof.before, gain=proof.gain, how=proof.how)


def first_event(agents: int) -> ev.CampaignStarted:
    members = tuple(
        ev.Member(name=f"agent-{n}", role=list(Role)[n % 2], mind="simulated", device=f"agent-{n}")
        for n in range(agents)
    )
    policy = Policy(max_experiments=None, round_experiments=8 * agents, recheck_every=max(25, agents))
    return ev.CampaignStarted(
        campaign="bench", task="t", operator="t", language="cuda", numerics="reference", task_path=".", repository="/r",
        commit="base", workloads={name: {"n": 1} for name in WEIGHTS}, weights=WEIGHTS, editable=("k.cu",),
        policy=policy, members=members, seed=1,
    )  # fmt: skip


@dataclass
class Live:
    """One agent between its calls: what it holds and what it does next."""

    name: str
    lead: Lead
    agents: Agents
    seen: Measured
    asks: int = 0
    told: int = 0
    open: Experiment | None = None
    said: dict[str, Any] | None = None

    async def step(self) -> float:
        """The next call of its loop; seconds to wait before the one after it."""
        if self.said is not None:
            await self._report(self.said)
        elif self.open is not None:
            await self._plan(self.open)
        else:
            return await self._ask()
        return 0.0

    async def _ask(self) -> float:
        self.asks += 1
        duty = await self.lead.next_duty(self.name, self.name, f"{self.name}/{self.asks}")
        if isinstance(duty, Rest):
            return 0.05
        if isinstance(duty, Experiment):
            self.open = duty
        else:
            self.said = self.agents.answer(self.name, duty)
        return 0.0

    async def _plan(self, duty: Experiment) -> None:
        cites, self.told = await self.lead.briefing(self.name, duty.base, self.told)
        if await self.lead.admit(self.name, duty.id, self.agents.plan(cites)):
            return
        gain = self.agents.dice.choices((-0.05, 0.0, 0.03), (0.6, 0.39, 0.01))[0]
        self.said = {
            "kind": "experiment_reported", "experiment": duty.id, "commit": f"c-{duty.id}", "screened": [],
            "parameters": {"block": 128, "unroll": 4}, "measurement": self.agents.measured(gain),
        }  # fmt: skip

    async def _report(self, said: dict[str, Any]) -> None:
        begun = time.perf_counter()
        await self.lead.report(self.name, said)
        self.seen.reports.append(time.perf_counter() - begun)
        self.seen.reported += 1
        self.said = self.open = None


async def caller(ready: deque[Live], going: Callable[[], bool]) -> None:
    """One call after the other, each of the agent that waits longest."""
    loop = asyncio.get_running_loop()
    while going():
        if not ready:
            await asyncio.sleep(0.005)
            continue
        agent = ready.popleft()
        if pause := await agent.step():
            loop.call_later(pause, ready.append, agent)
        else:
            ready.append(agent)


async def play(lead: Lead, agents: Agents, count: int, events: int, callers: int, window: int = 0) -> Measured:
    """All agents join and work until the ledger holds so many events. ``window``: events between two looks at the
    clocks; 0: none."""
    seen = Measured()
    for n in range(count):
        lead.coordination.join(f"agent-{n}", f"agent-{n}", DeviceInfo(kind="cuda", id=f"agent-{n}", name="SIM"), 1)
    state = lead.coordination.state
    beside = [asyncio.create_task(lead.tend())]
    if window:
        beside.append(asyncio.create_task(watch(lead, seen, window)))
    ready = deque(Live(f"agent-{n}", lead, agents, seen) for n in range(count))
    await asyncio.gather(*(caller(ready, lambda: state.last_seq < events) for _ in range(callers)))
    for task in beside:
        task.cancel()
    return seen


async def watch(lead: Lead, seen: Measured, window: int) -> None:
    """Note the CPU time at every so many events, and between them how fast the machine is."""
    state = lead.coordination.state
    while True:
        if state.last_seq >= window * len(seen.windows):
            spent = sum(seconds for _, seconds in seen.yardsticks)
            seen.windows.append((state.last_seq, time.process_time() - spent))
        if state.last_seq >= YARDSTICK_EVERY * len(seen.yardsticks):
            seen.yardsticks.append((state.last_seq, yardstick()))
        await asyncio.sleep(0.01)


def yardstick() -> float:
    """CPU seconds of a fixed piece of work of the coordinator's kind: a report validated, said and decided, thrice."""
    begun = time.thread_time()
    for _ in range(3):
        told = Measurement.model_validate(_FIXED)
        told.model_dump(mode="json")
        decide(told.restarts, WEIGHTS, None, _LAW)
    return time.thread_time() - begun


def growth(seen: Measured, agents: int) -> dict[str, Any]:
    """CPU time per event in each window, in us and in yardsticks of that window (a shared machine is not always as
    fast), and the slopes of straight lines through them over 100,000 events, as shares of where the lines begin."""
    marks = np.array(seen.windows)
    sticks = np.array(seen.yardsticks)
    middle = (marks[1:, 0] + marks[:-1, 0]) / 2e5
    cost = np.diff(marks[:, 1]) / np.diff(marks[:, 0])
    pace = [
        float(np.median(sticks[(sticks[:, 0] >= begin) & (sticks[:, 0] <= end), 1]))
        for begin, end in zip(marks[:-1, 0], marks[1:, 0], strict=True)
    ]
    told: dict[str, Any] = {
        "cpu us per event by window": np.round(1e6 * cost, 1).tolist(),
        "yardstick by window, us": np.round(1e6 * np.array(pace), 0).tolist(),
    }
    if len(cost) >= 6:
        told["growth of us per event"] = slope(middle[1:], cost[1:])  # the first window holds the baselines
        told["growth of yardsticks per event"] = slope(middle[1:], (cost / np.array(pace))[1:])
    aged = marks[:-1, 0] >= AGED * agents
    if aged.sum() >= 6:
        since = middle[aged] - middle[aged][0]
        told["growth of us per event, all agents on the plateau"] = slope(since, cost[aged])
        told["growth of yardsticks per event, all agents on the plateau"] = slope(since, (cost / np.array(pace))[aged])
    return told


def slope(middle: Any, cost: Any) -> str:
    """Per cent over 100,000 events with the 95 % interval of the line's slope."""
    (steep, level), spread = np.polyfit(middle, cost, 1, cov=True)
    half = 1.96 * float(np.sqrt(spread[0, 0]))
    share = [100.0 * (float(steep) + side * half) / float(level) for side in (0, -1, 1)]
    return f"{share[0]:+.1f} % [{share[1]:+.1f}, {share[2]:+.1f}]"


@contextmanager
def clocked(told: dict[str, Any], name: str) -> Iterator[None]:
    clock, cpu = time.perf_counter(), time.process_time()
    yield
    told[name] = {"s": round(time.perf_counter() - clock, 2), "cpu s": round(time.process_time() - cpu, 2)}


def restarts(path: Path, told: dict[str, Any]) -> None:
    """A restart with the snapshot and one that must fold every event; both give the same state."""
    with Ledger(path) as ledger:
        with clocked(told, "restart with the snapshot"):
            state, remembered = restore(ledger)
        told["events after the snapshot"] = state.last_seq - remembered
        with clocked(told, "restart without a snapshot"):
            whole, _ = restore(Forgetful(ledger))
    assert state == whole
    told["experiments"] = len(state.verdicts)


class Forgetful:
    """A ledger that has no snapshot."""

    def __init__(self, ledger: Ledger) -> None:
        self.events = ledger.events

    def recall(self, code: str, settled: bool = True) -> None:
        return None


def status(folder: Path, told: dict[str, Any]) -> None:
    """``kernelteam status --json`` as a user starts it: best and median of five. The first one may keep the compiled
    modules, as at any user's, whatever this shell says of that."""
    command = [sys.executable, "-m", "team.cli", "status", "--json", str(folder)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    walls, cpus = [], []
    for _ in range(5):
        clock, cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        said = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if said.returncode:
            raise SystemExit(f"status failed: {said.stderr}")
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        walls.append(time.perf_counter() - clock)
        cpus.append(now.ru_utime + now.ru_stime - cpu.ru_utime - cpu.ru_stime)
    told["status, s"] = {"best": round(min(walls), 2), "median": round(sorted(walls)[2], 2), "cpu": round(min(cpus), 2)}


def machine() -> dict[str, Any]:
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), ":?")
    return {
        "cores": os.cpu_count(), "cpu": cpu.split(":")[1].strip(), "load before": os.getloadavg(),
        "python": f"{platform.python_version()} at {os.path.realpath(sys.executable)}",
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
    }  # fmt: skip


def percentile(values: list[float], share: float) -> float:
    return round(1e3 * float(np.quantile(values, share)), 2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--callers", type=int, default=128, help="calls under way at a time, as in the actor")
    parser.add_argument("--json", type=Path, help="write the result here, too")
    asked = parser.parse_args()
    garbage.collect_seldom()
    told: dict[str, Any] = {"machine": machine(), "agents": asked.agents, "calls under way": asked.callers}
    with tempfile.TemporaryDirectory(prefix="kt-bench-", dir=Path.home()) as name:
        path = Path(name) / "ledger.sqlite"
        with Ledger(path, writer=True) as ledger:
            ledger.store([row_of(ev.Event(seq=1, time=time.time(), agent="", body=first_event(asked.agents)))])
        lead, agents = Lead(path), Agents(1)
        _FIXED.update(agents.usual())
        begun, cpu = time.perf_counter(), time.process_time()
        window = max(1000, asked.events // 20)
        seen = asyncio.run(play(lead, agents, asked.agents, asked.events, asked.callers, window))
        wall, cpu = time.perf_counter() - begun, time.process_time() - cpu
        lead.ledger.close()
        told |= {
            "events": lead.coordination.state.last_seq,
            "durable reports": seen.reported,
            "reports/s": round(seen.reported / wall),
            "reports per second of CPU, agents included": round(seen.reported / cpu),
            "report, ms": {"p50": percentile(seen.reports, 0.5), "p99": percentile(seen.reports, 0.99)},
            "ledger, MB": round(sum(p.stat().st_size for p in Path(name).iterdir()) / 1e6),
            "memory, MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
            "cost": growth(seen, asked.agents),
        }
        del lead
        restarts(path, told)
        status(Path(name), told)
    told["load after"] = os.getloadavg()
    for key, value in told.items():
        print(f"{key:46} {value}")
    if asked.json:
        asked.json.write_text(json.dumps(told, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

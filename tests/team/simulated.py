"""A simulated team around the real ``Coordination``: virtual devices, true speeds, realistic noise, and every
fault that messages or processes suffer. Time is virtual; the same seed plays the same campaign.
"""

import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from audit import Audit
from audit_team import BY_HAND

from protocol import events as ev
from protocol.briefing import briefing_of
from protocol.journal import Journal
from protocol.landings import Prepare, Step, pending
from protocol.ledger import Ledger
from protocol.messages import (
    Baseline,
    Briefing,
    Category,
    Compared,
    DeviceInfo,
    Duty,
    Estimate,
    Excuse,
    Experiment,
    HeavyLift,
    Insight,
    Measurement,
    Noise,
    Outcome,
    PassedOver,
    Plan,
    Position,
    Profile,
    ProfileReport,
    Recheck,
    RecheckReport,
    Remeasure,
    Research,
    ResearchReport,
    ResolveMerge,
    Rest,
    Restart,
    Role,
    Search,
    SearchReport,
    Source,
    Stop,
    Strategy,
    SweepItem,
    VerifyLanding,
    WorkloadCheck,
)
from protocol.money import allowance
from protocol.pairs import Pair
from protocol.policy import Policy
from protocol.sequential import calibrate
from protocol.steering import Request
from team.coordination import MAX_REFUSALS, Coordination

WEIGHTS = {"small": 1.0, "large": 2.0}
NOISE = Noise(restart_sd=0.001, restart_df=11, pair_sd=0.004, floor=0.005)
GAINS = (-0.3, -0.02, 0.0, 0.0, 0.004, 0.03, 0.06, 0.4)
CATEGORIES = ("loops", "memory", "threads", "numerics")
BAD = (Outcome.CRASHED, Outcome.INCORRECT, Outcome.BUILD_FAILED, Outcome.TAMPERED, Outcome.TIMEOUT)
Accident = Literal["none", "killed before the commit", "killed before the answer"]
"""What befalls the coordinator during the next call; Ray starts another one and repeats the call."""
T = TypeVar("T")
LIFTS = tuple(HeavyLift(technique=f"lift{i}", category=CATEGORIES[i]) for i in range(2))
SWEEP = (
    SweepItem(name="item0", title="small", techniques=("small0",)),
    *(SweepItem(name=f"item{i}", title="small", techniques=(f"small{i}",), categories=CATEGORIES[i : i + 1])
      for i in range(1, 4)),
)  # fmt: skip
STRATEGY = Strategy(
    heavy_lifts=dict.fromkeys(Position, LIFTS), sweep=SWEEP, field_evidence={"t1": "2 times", "lift0": "3 times"}
)
Temper = Literal["able", "empty", "stubborn", "crashing"]


@dataclass
class SimulatedAgent:
    """One agent's process: ``duty`` is what it works on, ``plan`` what was admitted for it."""

    name: str
    device: str
    temper: Temper = "able"
    incarnation: str = ""
    duty: Duty | None = None
    plan: Plan | None = None
    refusals: int = 0
    asks: int = 0
    waits: bool = False

    def die(self) -> None:
        self.incarnation, self.duty, self.plan, self.refusals, self.waits = "", None, None, 0, False


@dataclass
class Git:
    """Commits with their true log speed over the baseline; what is wrong with a commit, if anything; and main."""

    speed: dict[str, float] = field(default_factory=lambda: {"base": 0.0})
    wrong: dict[str, Outcome] = field(default_factory=dict)
    parent: dict[str, str] = field(default_factory=dict)
    main: str = "base"

    def commit(self, name: str, parent: str, gain: float) -> str:
        self.speed[name], self.parent[name] = self.speed[parent] + gain, parent
        return name


class Device:
    """How the simulated devices scatter: a noise model of ``scripts/noise_models.py``, calibrated as a campaign does.

    A measurement is a draw of log ratios (restart, pair) and of the order of each pair.
    """

    def __init__(self, name: str, model: Callable[..., Any], seed: int) -> None:
        self.name = name
        self._model = model
        self._dice = np.random.default_rng(seed)
        quiet = self.restarts(0.0, Policy().calibration_restarts)
        self.noise = calibrate(quiet, WEIGHTS, Policy())

    def restarts(self, gain: float, count: int) -> tuple[Restart, ...]:
        """Restarts of four pairs in which the candidate is truly faster by ``gain``."""
        draws = {name: self._model(self._dice, 1, count) for name in WEIGHTS}
        return tuple(
            Restart.of({name: self._pairs(draw.ratios[0, n] + gain, draw.first[0, n]) for name, draw in draws.items()})
            for n in range(count)
        )

    @staticmethod
    def _pairs(ratios: Any, first: Any) -> tuple[Pair, ...]:
        return tuple(
            Pair(candidate_first=bool(f), base_ns=1000.0 * exp(r), candidate_ns=1000.0)
            for r, f in zip(ratios.tolist(), first.tolist(), strict=True)
        )


class World:
    """The campaign, its agents, and the faults. Every public method is one thing that may happen at any time."""

    def __init__(self, seed: int, agents: int = 2, policy: Policy | None = None, device: Device | None = None) -> None:
        self.random = random.Random(seed)
        self.device = device
        self.now = 1_000.0
        shared = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(prefix="kt-simulated-", dir=shared if shared.is_dir() else None))
        self.git = Git()
        self.agents = {
            name: SimulatedAgent(name, f"gpu:{index}")
            for index, name in enumerate(f"{list(Role)[i % 2].value}-{i // 2 + 1}" for i in range(agents))
        }
        self.mail: list[tuple[str, ev.AnyBody]] = []
        self.held: list[tuple[str, str, ev.AnyBody]] = []
        self.accident: Accident = "none"
        self.zombies: list[tuple[str, str]] = []
        self.policy = policy or Policy(max_experiments=10, looks=(8, 16, 32), round_experiments=4)
        self.coordination = self._first_life()
        self.audit = Audit(self.folder / "ledger", self.policy, WEIGHTS, self.git.speed)
        self.check()

    def _first_life(self) -> Coordination:
        members = tuple(
            ev.Member(name=a.name, role=Role(a.name.split("-")[0]), mind="simulated", device=a.device)
            for a in self.agents.values()
        )
        start = ev.CampaignStarted(
            campaign="c", task="t", operator="t", language="cuda", numerics="reference", task_path=".",
            repository="/r", commit="base", workloads={name: {"n": 1} for name in WEIGHTS}, weights=WEIGHTS,
            editable=("k.cu",), policy=self.policy, members=members, seed=1, strategy=STRATEGY,
            categories=tuple(Category(name=n, role=list(Role)[i % 2]) for i, n in enumerate(CATEGORIES)),
        )  # fmt: skip
        self.ledger = Ledger(self.folder / "ledger", writer=True)
        self.ledger.append(self.now, [("", start)])
        self.journal = Journal(self.ledger)
        return Coordination(self.journal, lambda: self.now)

    def call(self, said: Callable[[Coordination], T]) -> T:
        """A call as Ray makes it: its answer comes after the commit, and it is repeated when the coordinator dies."""
        answer = said(self.coordination)
        accident, self.accident = self.accident, "none"
        if accident != "killed before the commit":
            self.journal.commit()
        if accident != "none":
            self._another_life()
            answer = said(self.coordination)
            self.journal.commit()
        return answer

    def _another_life(self) -> None:
        self.ledger.close()
        self.ledger = Ledger(self.folder / "ledger", writer=True)
        self.journal = Journal(self.ledger)
        self.coordination = Coordination(self.journal, lambda: self.now)

    def close(self) -> None:
        self.audit.close()
        self.ledger.close()
        shutil.rmtree(self.folder)

    def check(self) -> None:
        """Read what was appended since, and hold every invariant against it."""
        self.journal.commit()
        self.audit.read_on(self.coordination.state)

    # ------------------------------------------------------------ what happens

    def join(self, name: str) -> None:
        """A fresh process of the agent says that it lives; an older one, if there is one, becomes a zombie."""
        agent = self.agents[name]
        if agent.incarnation:
            self.zombies.append((name, agent.incarnation))
        agent.die()
        agent.incarnation = f"{name}/{self.random.getrandbits(40):x}"
        device = DeviceInfo(kind="cuda", id=agent.device, name="SIM")
        for _ in range(self._times()):
            self.call(lambda lead: lead.join(name, agent.incarnation, device, 1))

    def die(self, name: str, noticed: bool) -> None:
        """The process dies; the driver says so at once, or the next ``join`` shows it."""
        self.agents[name].die()
        for _ in range(self._times() if noticed else 0):
            self.call(lambda lead: lead.lost(name, "killed"))

    def step(self, name: str) -> None:
        """One step of the agent's loop: ask, have a plan admitted, or report. Each message may be sent twice."""
        agent = self.agents[name]
        if not agent.incarnation:
            return self.join(name)
        if agent.waits:
            return None
        if agent.duty is None:
            return self._ask(agent)
        if isinstance(agent.duty, Experiment) and agent.plan is None:
            return self._propose(agent, agent.duty)
        return self._report(agent, self._perform(agent, agent.duty))

    def replay(self) -> None:
        """A report that was sent before, by whoever, arrives again."""
        if self.mail:
            name, body = self.random.choice(self.mail)
            self.call(lambda lead: lead.report(name, body))

    def delay(self, name: str) -> None:
        """The agent finishes its duty, and its report is held up on the way; the agent waits for the answer."""
        agent = self.agents[name]
        if agent.duty is None or agent.waits or (isinstance(agent.duty, Experiment) and agent.plan is None):
            return
        self.held.append((name, agent.incarnation, self._perform(agent, agent.duty)))
        agent.waits = True

    def deliver(self) -> None:
        """One of the reports that were held up arrives, in whatever order; its agent may have died meanwhile."""
        if not self.held:
            return
        name, incarnation, body = self.held.pop(self.random.randrange(len(self.held)))
        self.mail.append((name, body))
        self.call(lambda lead: lead.report(name, body))
        agent = self.agents[name]
        if agent.incarnation == incarnation:
            agent.duty, agent.plan, agent.waits = None, None, False

    def report_too_late(self, name: str) -> None:
        """The agent finishes its duty and dies before its report arrives; the report arrives after the news."""
        agent = self.agents[name]
        if agent.duty is None or agent.waits or (isinstance(agent.duty, Experiment) and agent.plan is None):
            return
        body = self._perform(agent, agent.duty)
        self.die(name, noticed=True)
        self.call(lambda lead: lead.report(name, body))

    def zombie_asks(self) -> None:
        """A process that was replaced asks for a duty."""
        if self.zombies:
            name, incarnation = self.random.choice(self.zombies)
            ask = f"z{self.random.random()}"
            assert isinstance(self.call(lambda lead: lead.next_duty(name, incarnation, ask)), Stop)

    def restart_coordinator(self) -> None:
        """``kill -9`` of the coordinator: a new one folds the ledger and knows what the old one knew."""
        self.journal.commit()
        before = self.coordination.state
        self._another_life()
        assert self.coordination.state == before

    def resume(self) -> None:
        """Everything dies at once; later ``resume`` goes on."""
        for agent in self.agents.values():
            agent.die()
        self.now += self.random.choice((1.0, 10_000.0))
        self.restart_coordinator()
        self.call(lambda lead: lead.resume())

    def stop(self) -> None:
        self.call(lambda lead: lead.request_stop("the user said so"))

    def steer(self, kind: str) -> None:
        """A person asks for something; the request may be taken in twice."""
        wanted = self.random.choice(((), self.random.sample(CATEGORIES, self.random.randint(1, 3)), ("a-new-kind",)))
        about = {"agent": self.random.choice(list(self.agents)), "words": f"try {self.random.randrange(9)}"}
        told = {**about, "categories": tuple(wanted)} if kind == "direct" else {}
        request = Request.model_validate({"kind": kind, "why": BY_HAND, **told})
        for _ in range(self._times()):
            self.call(lambda lead: lead.steer(request))

    def snapshot(self) -> None:
        """The coordinator leaves a snapshot of its state, which the next life may begin with."""
        self.call(lambda lead: lead.remember(after=1))

    def tick(self, seconds: float = 1.0, crash: bool = False) -> None:
        """Time passes and the coordinator's loop runs once. ``crash``: it dies between git and the ledger."""
        self.now += seconds
        self.journal.commit()
        step = pending(self.coordination.state)
        done = (*step.bad, self._carry_out(step)) if step is not None else ()
        if crash:
            return self.restart_coordinator()
        if done:
            self.coordination.record("", *done)
        self.coordination.advance()
        self.journal.commit()

    def run_to_the_end(self, absent: frozenset[str] = frozenset(), limit: int = 3_000) -> str:
        """Nothing goes wrong any more: all but the absent agents work. Why the campaign ended."""
        self.steer("resume")
        for name in absent:
            self.die(name, noticed=True)
        for _ in range(limit):
            self.deliver()
            for name in [name for name in self.agents if name not in absent]:
                self.step(name)
            self.tick()
            self.check()
            if self.coordination.state.finished:
                break
        else:
            raise AssertionError(f"no end: {self.coordination.state.landings} {self.agents}")
        return self.coordination.state.finished

    # ------------------------------------------------------------ agents

    def _times(self) -> int:
        return 2 if self.random.random() < 0.1 else 1

    def _ask(self, agent: SimulatedAgent) -> None:
        agent.asks += 1
        ask = f"{agent.incarnation}/{agent.asks}"
        given = [
            self.call(lambda lead: lead.next_duty(agent.name, agent.incarnation, ask)) for _ in range(self._times())
        ]
        if not isinstance(given[0], Rest):
            assert given.count(given[0]) == len(given), "the same request got two duties"
        agent.duty = None if isinstance(given[0], Rest | Stop) else given[0]
        agent.plan, agent.refusals = None, 0

    def _propose(self, agent: SimulatedAgent, duty: Experiment) -> None:
        if agent.temper == "empty" or agent.refusals >= MAX_REFUSALS:
            briefing = briefing_of(self.coordination.state, agent.name, duty.base)
            return self._report(
                agent, ev.NothingProposed(experiment=duty.id, why="no idea", passed_over=self._passed(briefing))
            )
        plan = self._plan(agent, duty.base)
        cost = self._cost(MAX_REFUSALS + 1)
        said = [
            self.call(lambda lead: lead.admit(agent.name, duty.id, plan, (f"c-{duty.id}",), cost))
            for _ in range(self._times())
        ]
        if said[0]:
            agent.refusals += 1
        else:
            assert not any(said), "the same plan was admitted and refused"
            agent.plan = plan
        return None

    def _cost(self, parts: int = 1) -> float:
        """What a mind takes for one of at most so many answers to a duty: up to all that it may."""
        allowed = allowance(self.coordination.state)
        return (0.1 if allowed is None else allowed) / parts * self.random.choice((0.0, 0.5, 1.0))

    def _plan(self, agent: SimulatedAgent, base: str) -> Plan:
        words = dict.fromkeys(("bottleneck", "evidence", "change", "mechanism", "disproof", "fallback"), "words")
        fields = {"technique": "t0", "category": CATEGORIES[0], "expected_gain": 0.1, "cell": "balanced/early"}
        if agent.temper != "stubborn":
            briefing = briefing_of(self.coordination.state, agent.name, base)
            fields["category"] = self._category(briefing)
            fields["technique"] = f"t{self.random.randrange(6)}"
            fields["differs"] = self.random.choice(("", "another way"))
            if briefing.search and self.random.random() < 0.9:
                read = [source.locator for source in briefing.search.sources]
                fields |= {"cites": briefing.search.id, "source": self.random.choice(("", *read))}
            fields |= self._wanted(briefing)
        return Plan.model_validate({**words, **fields})

    def _category(self, briefing: Briefing) -> str:
        """Mostly one that its direction has and the law leaves open, now and then any."""
        allowed = briefing.allowed_categories if self.random.random() < 0.9 else CATEGORIES
        opened = [c for c in allowed if c not in briefing.closed_categories]
        return self.random.choice(opened or list(CATEGORIES))

    def _wanted(self, briefing: Briefing) -> dict[str, object]:
        """What the law wants next, most of the time: a heavy lift, an item of the sweep, or reasons against them."""
        if briefing.lifts and self.random.random() < 0.5:
            return {"technique": briefing.lifts[0].technique, "category": briefing.lifts[0].category}
        if briefing.sweep and self.random.random() < 0.7:
            first = briefing.sweep[0]
            lifts = tuple(one for one in self._passed(briefing) if one.name.startswith("lift"))
            return {"technique": first.techniques[0], "sweep": first.name, "passed_over": lifts}
        return {"passed_over": self._passed(briefing)}

    def _passed(self, briefing: Briefing) -> tuple[PassedOver, ...]:
        names = [*(lift.technique for lift in briefing.lifts), *(item.name for item in briefing.sweep)]
        if self.random.random() < 0.1:
            names = names[1:]
        return tuple(PassedOver(name=name, kind=self.random.choice(list(Excuse)), reason="so it is") for name in names)

    def _perform(self, agent: SimulatedAgent, duty: Duty) -> ev.AnyBody:
        if isinstance(duty, Experiment):
            commit = self._change(agent, duty)
            measured = self._measure(duty.base, commit)
            return ev.ExperimentReported(
                experiment=duty.id, commit=commit, parameters={}, screened=(), measurement=measured
            )
        if isinstance(duty, Baseline):
            noise = self.device.noise if self.device else NOISE
            return ev.BaselineMeasured(
                duty=duty.id, device=agent.device, noise=noise, baseline_ns=dict.fromkeys(WEIGHTS, 1000.0),
                null_kept=False, planted_found=True, measurement=self._measure("base", "base"),
                planted=Estimate(gain=0.02, low=0.01, high=0.03, pairs=8, restarts=2),
            )  # fmt: skip
        if isinstance(duty, Search):
            source = Source(title="paper", locator="doi:1")
            return ev.SearchReported(
                report=SearchReport(
                    id=duty.id,
                    queries=("q",),
                    sources=(source,),
                    technique="t",
                    category=self.random.choice((*CATEGORIES, "novel", f"novel-{duty.id}")),
                    why="w",
                    dollars=self._cost(),
                )
            )
        if isinstance(duty, Recheck):
            line = Compared(what="site", card="a loop", seen="a loop", holds=True)
            suspect = self.random.choice(("", "somebody else's alignment"))
            return ev.RecheckReported(
                report=RecheckReport(
                    id=duty.id, experiment=duty.experiment, technique=duty.technique, compared=(line,), suspect=suspect
                )
            )
        if isinstance(duty, Research):
            insight = Insight(what="all is flat", why="noise", next="structure")
            return ev.ResearchReported(report=ResearchReport(id=duty.id, insights=(insight,)))
        if isinstance(duty, Profile):
            return ev.ProfileReported(duty=duty.id, report=ProfileReport(commit=duty.commit, tool="simulated"))
        if isinstance(duty, ResolveMerge):
            return self._resolve(duty)
        return self._compare(agent, duty)

    def _resolve(self, duty: ResolveMerge) -> ev.MergeResolved:
        if self.random.random() < 0.4:
            return ev.MergeResolved(duty=duty.id, experiment=duty.experiment, why="no idea", dollars=self._cost())
        gain = self.random.choice((-0.2, 0.0, 0.05, 0.4))
        made = self.git.commit(f"r-{duty.id}-{self.random.getrandbits(32):x}", duty.main, gain)
        return ev.MergeResolved(duty=duty.id, experiment=duty.experiment, commit=made, why="both", dollars=self._cost())

    def _compare(self, agent: SimulatedAgent, duty: Duty) -> ev.AnyBody:
        if isinstance(duty, VerifyLanding):
            measured = self._measure(duty.base, duty.candidate)
            return ev.LandingMeasured(
                duty=duty.id, experiment=duty.experiment, device=agent.device, measurement=measured
            )
        assert isinstance(duty, Remeasure)
        return ev.MainMeasured(
            duty=duty.id, base=duty.base, commit=duty.candidate, device=agent.device, estimate=None, product=0.0,
            agrees=False, measurement=self._measure(duty.base, duty.candidate),
        )  # fmt: skip

    def _report(self, agent: SimulatedAgent, body: ev.AnyBody) -> None:
        self.mail.append((agent.name, body))
        for _ in range(self._times()):
            self.call(lambda lead: lead.report(agent.name, body))
        agent.duty, agent.plan = None, None

    def _change(self, agent: SimulatedAgent, duty: Experiment) -> str:
        commit = self.git.commit(f"c-{duty.id}", duty.base, self.random.choice(GAINS))
        if agent.temper == "crashing":
            self.git.wrong[commit] = Outcome.CRASHED
        elif self.random.random() < 0.25:
            self.git.wrong[commit] = self.random.choice(BAD)
        return commit

    # ------------------------------------------------------------ the device and the landing desk

    def _measure(self, base: str, candidate: str) -> Measurement:
        wrong = self.git.wrong.get(candidate)
        if wrong is not None:
            return Measurement(outcome=wrong, detail=f"{candidate} is {wrong}")
        gain = self.git.speed[candidate] - self.git.speed[base]
        fewer = self.random.random() < 0.3
        return Measurement(
            outcome=Outcome.MEASURED,
            restarts=self.device.restarts(gain, 8) if self.device else tuple(self._restart(gain) for _ in range(8)),
            checks=tuple(WorkloadCheck(workload=name, checks=2, worst=0.2) for name in WEIGHTS),
            simplicity={"tokens": (100, 80 if fewer else 120), "branches": (3, 3), "knobs": (1, 1)},
        )

    def _restart(self, gain: float) -> Restart:
        bias = self.random.gauss(0.0, NOISE.restart_sd)
        return Restart.of({name: tuple(self._pair(gain + bias) for _ in range(4)) for name in WEIGHTS})

    def _pair(self, gain: float) -> Pair:
        noisy = gain + self.random.gauss(0.0, NOISE.pair_sd)
        return Pair(candidate_first=self.random.random() < 0.5, base_ns=1000.0 * exp(noisy), candidate_ns=1000.0)

    def _carry_out(self, step: Step) -> ev.AnyBody:
        experiment = step.experiment
        if isinstance(step, Prepare):
            return self._prepare(step)
        proof = step.proof
        if proof is None:
            return ev.LandingRefused(experiment=experiment.id, why=step.why)
        assert self.git.main in (proof.commit, self.git.parent[proof.commit]), "main may only move forward"
        self.git.main = proof.commit
        return ev.Landed(
            experiment=experiment.id, commit=proof.commit, before=proof.before, gain=proof.gain, how=proof.how
        )

    def _prepare(self, step: Prepare) -> ev.AnyBody:
        """A merge may lose what its parts gained, or not come about at all; a tree as a whole is what it was."""
        experiment, speed = step.experiment, self.git.speed
        if step.how == "cherry-pick" and step.main != experiment.base and self.random.random() < 0.3:
            return ev.LandingConflicted(experiment=experiment.id, main=step.main, files=("k.cu",))
        gain = speed[experiment.commit] - speed[self.git.parent[experiment.commit]]
        if step.how == "whole tree":
            together = speed[experiment.commit] - speed[step.main]
        elif step.how == "resolved":
            together = speed[step.source] - speed[step.main]
        else:
            together = gain if self.random.random() < 0.7 else self.random.choice((-0.1, gain / 4))
        candidate = self.git.commit(f"m-{experiment.id}-{self.random.getrandbits(32):x}", step.main, together)
        return ev.LandingPrepared(
            experiment=experiment.id, candidate=candidate, main=step.main, how=step.how, against=step.against
        )

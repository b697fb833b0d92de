"""A campaign told event by event, without a ledger: what tests of the law start from."""

from math import log1p
from typing import Any

from protocol import events as ev
from protocol.duties import next_duty
from protocol.messages import (
    Baseline,
    Decision,
    DeviceInfo,
    Duty,
    Estimate,
    Experiment,
    Measurement,
    Noise,
    Outcome,
    Plan,
    Profile,
    ProfileReport,
    Restart,
    Role,
    Search,
    SearchReport,
    Source,
    Verdict,
    VerifyLanding,
    WorkloadCheck,
)
from protocol.pairs import Pair
from protocol.policy import Policy
from protocol.state import CampaignState, apply

A, B = "explorer-1", "exploiter-1"
WEIGHTS = {"small": 0.5, "large": 0.5}
NOISE = Noise(restart_sd=0.001, restart_df=11, pair_sd=0.004, floor=0.005)


def estimate(gain: float, half: float = 0.004) -> Estimate:
    return Estimate(gain=gain, low=gain - half, high=gain + half, pairs=32, restarts=8)


def decision(state: str, gain: float = 0.0, half: float = 0.004, **workloads: Estimate) -> Decision:
    each = workloads or {name: estimate(gain, half) for name in WEIGHTS}
    return Decision.model_validate(
        {"state": state, "reason": f"said {state}", "overall": estimate(gain, half), "workloads": each}
    )


def measured(gain: float = 0.0, outcome: Outcome = Outcome.MEASURED, **more: Any) -> Measurement:
    pair = Pair(candidate_first=False, base_ns=1000.0 * (1.0 + gain), candidate_ns=1000.0)
    checks = tuple(WorkloadCheck(workload=name, checks=3, worst=0.1) for name in WEIGHTS)
    fields: dict[str, Any] = {"restarts": (Restart.of(dict.fromkeys(WEIGHTS, (pair,) * 4)),) * 8, "checks": checks}
    return Measurement.model_validate({"outcome": outcome, **fields, **more})


def plan(technique: str = "unroll", category: str = "loops", **more: Any) -> Plan:
    words = dict.fromkeys(("bottleneck", "evidence", "change", "mechanism", "disproof", "fallback"), "words")
    fields = {"technique": technique, "category": category, "expected_gain": 0.1, "cell": "balanced/early"}
    return Plan.model_validate({**words, **fields, **more})


class Story:
    """Applies events as the coordinator would append them; ``state`` is theirs, ``events`` holds them all."""

    def __init__(self, policy: Policy | None = None, agents: tuple[str, ...] = (A, B)) -> None:
        self.state = CampaignState()
        self.events: list[ev.Event] = []
        self.now = 1000.0
        self.agents = agents
        members = tuple(
            ev.Member(name=name, role=Role(name.split("-")[0]), mind="catalog", device=f"cpu:{index}")
            for index, name in enumerate(agents)
        )
        start = ev.CampaignStarted(
            campaign="c", task="t", operator="t", language="cpp", numerics="reference", task_path=".",
            repository="/r", commit="base", workloads={name: {"n": 1} for name in WEIGHTS}, weights=WEIGHTS,
            editable=("k.cpp",), policy=policy or Policy(), members=members, seed=1,
        )  # fmt: skip
        self.say("", start)

    def say(self, agent: str, *bodies: ev.AnyBody) -> None:
        self.now += 1.0
        for body in bodies:
            event = ev.Event(seq=len(self.events) + 1, time=self.now, agent=agent, body=body)
            self.events.append(event)
            apply(self.state, event)

    def join(self, *agents: str) -> "Story":
        for name in agents or self.agents:
            device = DeviceInfo(kind="cpu", id=self.state.agents[name].member.device, name="CPU")
            self.say(name, ev.AgentJoined(incarnation=f"i{len(self.events)}", device=device, pid=1))
        return self

    def baselines(self, *agents: str) -> "Story":
        for name in agents or self.agents:
            self.say(name, self.baseline(self.ask(name, Baseline).id, self.state.agents[name].member.device))
        return self

    def baseline(self, duty: str, device: str) -> ev.BaselineMeasured:
        return ev.BaselineMeasured(
            duty=duty, device=device, noise=NOISE, baseline_ns=dict.fromkeys(WEIGHTS, 1000.0), null_kept=False,
            planted_found=True, planted=estimate(0.02), measurement=measured(),
        )  # fmt: skip

    def duty(self, agent: str) -> Duty:
        return next_duty(self.state, agent, self.now)

    def ask(self, agent: str, kind: type) -> Any:
        """The agent's next duty, which must be of this kind, handed out."""
        duty = self.duty(agent)
        assert isinstance(duty, kind), duty
        self.give(agent, duty)
        return duty

    def give(self, agent: str, duty: Duty) -> None:
        self.say(agent, ev.DutyGiven(ask=f"a{len(self.events)}", incarnation="i", duty=duty))

    def experiment(self, agent: str, verdict: Verdict, gain: float = 0.0, the: Plan | None = None) -> str:
        """One whole experiment of ``agent``, whatever duty it would have got; ``gain`` is a fraction. Its id."""
        duty = Experiment(id=f"x{self.state.duties + 1}", base=self.state.head_of(agent))
        self.give(agent, duty)
        self.say(agent, ev.PlanAdmitted(experiment=duty.id, plan=the or plan(), commits=(f"c-{duty.id}",)))
        self.judge(agent, duty.id, verdict, gain)
        return duty.id

    def judge(self, agent: str, ident: str, verdict: Verdict, gain: float = 0.0) -> None:
        word = decision("keep" if verdict.kept else "revert", log1p(gain))
        report = ev.ExperimentReported(
            experiment=ident, commit=f"c-{ident}", parameters={}, screened=(), measurement=measured(gain)
        )
        judged = ev.ExperimentJudged(experiment=ident, verdict=verdict, reason="r", decision=word)
        self.say(agent, *(() if verdict is Verdict.LOST else (report,)), judged)

    def search(self, agent: str) -> str:
        duty = self.ask(agent, Search)
        sources = tuple(Source(title="paper", locator=f"doi:{number}") for number in (1, 2))
        report = SearchReport(
            id=duty.id, queries=("q",), sources=sources, technique="swizzle", category="memory", why="new"
        )
        self.say(agent, ev.SearchReported(report=report))
        return duty.id

    def profile(self, agent: str) -> None:
        duty = self.ask(agent, Profile)
        self.say(agent, ev.ProfileReported(duty=duty.id, report=ProfileReport(commit=duty.commit, tool="perf")))

    def prepare(self, ident: str) -> None:
        prepared = ev.LandingPrepared(experiment=ident, candidate=f"m-{ident}", main=self.state.main, how="cherry-pick")
        self.say("", prepared)

    def land(self, ident: str, by: str, gain: float = 0.1) -> None:
        self.prepare(ident)
        duty = self.ask(by, VerifyLanding)
        body = ev.LandingMeasured(
            duty=duty.id, experiment=ident, device=self.state.agents[by].member.device, measurement=measured(gain),
            decision=decision("keep", gain),
        )  # fmt: skip
        self.say(by, body)
        self.say("", ev.Landed(experiment=ident, commit=duty.candidate, before=duty.main, gain=estimate(gain)))


def started(policy: Policy | None = None, agents: tuple[str, ...] = (A, B)) -> Story:
    """A campaign whose agents have joined and whose baselines are measured."""
    return Story(policy, agents).join().baselines()

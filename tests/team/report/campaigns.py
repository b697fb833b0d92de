"""Synthetic campaigns, written through the real ledger: a script that appends events, and a simulated team."""

import hashlib
import random
from math import exp, isnan
from pathlib import Path
from typing import Any

from protocol import events as ev
from protocol.ledger import Ledger
from protocol.messages import (
    Baseline,
    Build,
    Decision,
    DeviceInfo,
    Duty,
    Estimate,
    Experiment,
    Measurement,
    Noise,
    Outcome,
    Parameter,
    Plan,
    Position,
    ProfileReport,
    Restart,
    Role,
    SearchReport,
    Source,
    Verdict,
    VerifyLanding,
    WorkloadCheck,
)
from protocol.pairs import Pair
from protocol.policy import Policy
from protocol.state import CampaignState, apply
from team.report.reading import LEDGER

WORKLOADS = {
    "square-128": {"M": 128, "N": 128, "K": 128},
    "square-256": {"M": 256, "N": 256, "K": 256},
    "tall-384x64x192": {"M": 384, "N": 64, "K": 192},
    "odd-97x131x113": {"M": 97, "N": 131, "K": 113},
}
BASELINE_NS = {"square-128": 1.62e6, "square-256": 1.48e7, "tall-384x64x192": 3.91e6, "odd-97x131x113": 1.13e6}
T0 = 1_785_000_000.0
OUTCOMES = {
    Verdict.TAMPERED: Outcome.TAMPERED,
    Verdict.BUILD_FAILED: Outcome.BUILD_FAILED,
    Verdict.INCORRECT: Outcome.INCORRECT,
    Verdict.CRASHED: Outcome.CRASHED,
    Verdict.TIMEOUT: Outcome.TIMEOUT,
}
BUILD = Build(compiler="g++ 12.2.0", flags=("-O3", "-march=native"), seconds=1.4, artifact="0" * 64)


def commit_of(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()


def estimate(gain: float, half: float = 0.018) -> Estimate:
    return Estimate(gain=gain, low=gain - half, high=gain + half, pairs=16, restarts=4)


class Script:
    """Appends events of one campaign as a coordinator would, and keeps the state beside them."""

    def __init__(self, run_dir: Path, devices: tuple[str, ...] = ("cpu:0", "cpu:1"), task: str = "matmul_cpu") -> None:
        self.run_dir = run_dir
        self.ledger = Ledger(run_dir / LEDGER, writer=True)
        self.state = CampaignState()
        self.now = T0
        self.devices = devices
        self.task = task
        self.count = 0
        self.error = 0.13  # of its tolerance, in every check that is made from now on

    def say(self, agent: str, *bodies: ev.AnyBody, after: float = 1.0) -> None:
        self.now += after
        for event in self.ledger.append(self.now, [(agent, body) for body in bodies]):
            apply(self.state, event)

    def start(self, policy: Policy | None = None, name: str = "matmul_cpu-20260725-0f3a", **more: Any) -> None:
        roles = (Role.EXPLORER, Role.EXPLOITER)
        members = tuple(
            ev.Member(name=f"{roles[i % 2].value}-{i // 2 + 1}", role=roles[i % 2], mind="catalog", device=device)
            for i, device in enumerate(self.devices)
        )
        start = ev.CampaignStarted(
            campaign=name, task=self.task, operator="matmul", language="cpp", numerics="reference", task_path="matmul",
            repository="/home/you/kernels", commit=commit_of("baseline"), workloads=WORKLOADS,
            weights={name: 2.0 if name == "square-256" else 1.0 for name in WORKLOADS}, editable=("matmul.cpp",),
            policy=policy or Policy(), members=members, seed=7, **more,
        )  # fmt: skip
        self.say("", start)
        for member in members:
            self.say(member.name, ev.AgentJoined(incarnation="1", device=self.device(member.device), pid=4711))

    def device(self, name: str) -> DeviceInfo:
        if name.startswith("cpu"):
            return DeviceInfo(kind="cpu", id=name, name="AMD EPYC 9454P 48-Core Processor")
        return DeviceInfo(kind="cuda", id=name, name="NVIDIA H200")

    def duty(self, agent: str, duty: Duty) -> None:
        self.count += 1
        self.say(agent, ev.DutyGiven(ask=f"a{self.count}", incarnation="1", duty=duty))

    def baselines(self) -> None:
        for agent in self.state.agents.values():
            self.count += 1
            self.duty(agent.member.name, Baseline(id=f"b{self.count}", commit=self.state.main))
            noise = Noise(restart_sd=0.004, restart_df=11, pair_sd=0.021, floor=0.0093)
            body = ev.BaselineMeasured(
                duty=f"b{self.count - 1}", device=agent.member.device, noise=noise, baseline_ns=BASELINE_NS,
                null_kept=False, planted_found=True, planted=estimate(0.0197, 0.006),
                measurement=self.measured(agent.member.device, 0.0),
            )  # fmt: skip
            self.say(agent.member.name, body, after=9.0)

    def measured(self, device: str, gain: float) -> Measurement:
        candidate_ns = 1e6 if isnan(gain) else 1e6 * exp(-gain)
        pair = Pair(candidate_first=False, base_ns=1e6, candidate_ns=candidate_ns)
        restart = Restart.of(dict.fromkeys(WORKLOADS, (pair,) * 4))
        found = {"checks": 6, "worst": self.error, "outputs": {"C": self.error}}
        checks = tuple(WorkloadCheck(workload=name, **found) for name in WORKLOADS)
        return Measurement(
            outcome=Outcome.MEASURED, restarts=(restart,) * 4, checks=checks, base_build=BUILD, candidate_build=BUILD,
            device=self.device(device), seconds={"build": 2.9, "check": 0.4, "measure": 1.7},
        )  # fmt: skip

    def plan(self, technique: str = "tile-loops", category: str = "tiling", **more: str) -> Plan:
        fields = {
            "technique": technique, "category": category, "bottleneck": "memory traffic", "evidence": "perf stat",
            "change": f"Apply {technique} to the k loop", "mechanism": "fewer cache misses", "expected_gain": 0.3,
            "disproof": "the miss rate stays", "fallback": "pack B", "cell": "bandwidth/early", **more,
        }  # fmt: skip
        return Plan.model_validate(fields)

    def begin(self, agent: str, plan: Plan | None, parameters: dict[str, Parameter] | None = None) -> str:
        """Hand out an experiment and, with a plan, admit it; its id."""
        ident = f"x{self.count + 1}"
        self.duty(agent, Experiment(id=ident, base=self.state.head_of(agent)))
        if plan is not None:
            commits = (commit_of(ident),)
            self.say(agent, ev.PlanAdmitted(experiment=ident, plan=plan, commits=commits, dollars=0.0))
        return ident

    def end(
        self, ident: str, verdict: Verdict, gain: float = 0.0, half: float = 0.018, reason: str = "",
        parameters: dict[str, Parameter] | None = None,
    ) -> None:  # fmt: skip
        """Report and judge an experiment."""
        agent = self.state.experiments[ident].agent
        if verdict is Verdict.LOST:
            self.say(agent, ev.ExperimentJudged(experiment=ident, verdict=verdict, reason=reason or "agent died"))
            return
        device = self.state.agents[agent].member.device
        failed = OUTCOMES.get(verdict)
        measurement = self.measured(device, gain)
        if failed is not None:
            measurement = measurement.model_copy(update={"outcome": failed, "detail": reason, "restarts": ()})
        report = ev.ExperimentReported(
            experiment=ident, commit=commit_of(ident), parameters=parameters or {},
            screened=((parameters or {}, gain),), measurement=measurement,
        )  # fmt: skip
        decision = None if failed else self.decision(gain, half, verdict, reason)
        judged = ev.ExperimentJudged(experiment=ident, verdict=verdict, reason=reason, decision=decision)
        self.say(agent, report, judged, after=5.0)

    def decision(self, gain: float, half: float, verdict: Verdict, reason: str) -> Decision:
        shifts = (-0.05, 0.04, 0.01, -0.02)
        each = {name: estimate(gain + shift, 1.6 * half) for name, shift in zip(WORKLOADS, shifts, strict=True)}
        word = "keep" if verdict.kept else "unresolved" if verdict is Verdict.UNRESOLVED else "revert"
        return Decision(state=word, reason=reason, overall=estimate(gain, half), workloads=each)

    def land(self, ident: str, gain: float, by: str, half: float = 0.012) -> None:
        candidate = commit_of(f"landed {ident}")
        self.say("", ev.LandingPrepared(experiment=ident, candidate=candidate, main=self.state.main, how="cherry-pick"))
        duty = f"v{self.count + 1}"
        self.duty(by, VerifyLanding(id=duty, experiment=ident, candidate=candidate, main=self.state.main))
        device = self.state.agents[by].member.device
        decision = self.decision(gain, half, Verdict.KEEP, "verified")
        measurement = self.measured(device, gain)
        verified = ev.LandingMeasured(
            duty=duty, experiment=ident, device=device, measurement=measurement, decision=decision
        )
        self.say(by, verified, after=4.0)
        self.say("", ev.Landed(experiment=ident, commit=candidate, before=self.state.main, gain=estimate(gain, half)))

    def measure_main(self, by: str) -> None:
        product = sum(landed.gain.gain for landed in self.state.landed)
        device = self.state.agents[by].member.device
        shifts = (-0.2, 0.15, 0.05, -0.08)
        body = ev.MainMeasured(
            duty="m0", base=self.state.started.commit, commit=self.state.main, device=device,
            estimate=estimate(product - 0.01, 0.02), agrees=True, product=product,
            workloads={n: estimate(product + s, 0.03) for n, s in zip(WORKLOADS, shifts, strict=True)},
            measurement=self.measured(device, product),
        )  # fmt: skip
        self.say(by, body)

    def search(self, agent: str, technique: str) -> None:
        report = SearchReport(
            id=f"s{self.count}", queries=("blocked matmul register tile",), technique=technique, category="tiling",
            sources=(Source(title="Goto & van de Geijn 2008", locator="doi:10.1145/1356052.1356053"),),
            why="packing removes TLB misses that the profile shows",
        )  # fmt: skip
        self.say(agent, ev.SearchReported(report=report))

    def profile(self, agent: str) -> None:
        report = ProfileReport(
            commit=self.state.head_of(agent), tool="perf stat", position=Position.BANDWIDTH,
            metrics={"ipc": 1.31, "llc_miss_rate": 0.41}, remarks=("loop not vectorized: data ref analysis failed",),
            claim="counts of one run of one workload",
        )  # fmt: skip
        self.say(agent, ev.ProfileReported(duty="p0", report=report))


IDEAS: tuple[tuple[str, str, float, dict[str, Parameter]], ...] = (
    ("loop-interchange", "loop order", 1.05, {"order": "ikj"}),
    ("tile-loops", "tiling", 0.42, {"tile": 64}),
    ("restrict-pointers", "aliasing", 0.05, {}),
    ("unroll-contiguous", "unrolling", 0.11, {"factor": 4}),
    ("split-accumulators", "latency", 0.28, {"lanes": 8}),
    ("omp-simd", "vectorising", 0.18, {}),
    ("pack-b-panels", "data movement", 0.36, {"nc": 256}),
    ("assume-aligned", "aliasing", 0.02, {"bytes": 64}),
    ("register-block", "tiling", 0.31, {"mr": 4, "nr": 16}),
    ("hoist-invariants", "loop order", 0.014, {}),
    ("prefetch-rows", "data movement", -0.03, {"distance": 8}),
    ("tune-constants", "tuning", 0.03, {"TILE": 48}),
)
BAD = (Verdict.INCORRECT, Verdict.BUILD_FAILED, Verdict.CRASHED, Verdict.TIMEOUT, Verdict.TAMPERED)
WHY = {
    Verdict.INCORRECT: "odd-97x131x113: output C differs from the reference by 3.1 tolerances at [96, 130]",
    Verdict.BUILD_FAILED: "matmul.cpp:41:17: error: 'TILE' was not declared in this scope",
    Verdict.CRASHED: "signal 11 (segmentation fault) on odd-97x131x113",
    Verdict.TIMEOUT: "killed after 3.0x the baseline's evaluation time",
    Verdict.TAMPERED: "the runner's clock and the wall clock disagree by 38 %",
}


def campaign(run_dir: Path, experiments: int, seed: int = 1, keeps: bool = True, devices: int = 2,
             gpu: bool = False) -> Script:  # fmt: skip
    """A whole team's campaign with ``experiments`` experiments; with ``keeps=False`` nothing ever helps."""
    rng = random.Random(seed)
    names = tuple(f"GPU-{rng.getrandbits(32):08x}-2b3c-4d5e-6f70-8192a3b4c5d6" if gpu else f"cpu:{i}"
                  for i in range(devices))  # fmt: skip
    script = Script(run_dir, names, "rmsnorm_h200" if gpu else "matmul_cpu")
    script.start(Policy(max_experiments=experiments))
    script.baselines()
    agents = list(script.state.agents)
    for number in range(experiments):
        _one(script, rng, agents, number, keeps)
    if script.state.landed:
        script.measure_main(agents[-1])
    script.say("", ev.Finished(why=f"the budget of {experiments} experiments is spent"))
    return script


def _one(script: Script, rng: random.Random, agents: list[str], number: int, keeps: bool) -> None:
    agent = agents[number % len(agents)]
    technique, category, gain, parameters = IDEAS[number if number < len(IDEAS) else rng.randrange(len(IDEAS))]
    ident = script.begin(agent, script.plan(technique, category), parameters)
    draw = rng.random()
    good = keeps and (number in (0, 1) or draw < 1.6 / (1.6 + number / 6))
    if draw > 0.86 and number > 1:
        verdict = rng.choice(BAD)
        script.end(ident, verdict, reason=WHY[verdict], parameters=parameters)
    elif good and gain > 0.01:
        fade = 1.0 if number < len(IDEAS) else 0.25
        got = max(0.021, gain * fade * rng.uniform(0.7, 1.1))
        half = min(0.018, 0.3 * got)
        script.end(ident, Verdict.KEEP, got, half, reason="lower bound over 1 % after 16 pairs", parameters=parameters)
        if rng.random() < 0.9:
            script.land(ident, got - 0.004, agents[(number + 1) % len(agents)], half * 0.8)
        else:
            script.say("", ev.LandingRefused(experiment=ident, why="REVERT: not faster on the merged tree"))
    else:
        lost = rng.gauss(-0.04, 0.09)
        verdict = Verdict.UNRESOLVED if abs(lost) < 0.01 else Verdict.REVERT
        why = "undecided at 128 pairs" if verdict is Verdict.UNRESOLVED else "the gain cannot reach 1 % any more"
        script.end(ident, verdict, min(lost, 0.009), rng.uniform(0.006, 0.05), why, parameters)
    if number % 9 == 8:
        script.profile(agent)
        script.search(agent, "pack-b-panels")
        script.say("", ev.RoundEnded(number=number // 9 + 1, recap=(f"{agent}: {number} experiments",)))

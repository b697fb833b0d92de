"""A synthetic campaign on a GPU with a model, measured roofs, profiles with stalls, and ablated methods."""

from pathlib import Path

from campaigns import WORKLOADS, Script, estimate

from protocol import events as ev
from protocol.messages import AxisGaps, DeviceInfo, KernelProfile, Position, ProfileReport, Reading, Verdict
from protocol.methods import Ablation, Contribution, SassCheck, Status
from protocol.policy import Policy
from protocol.problem import Operand, Problem

PEAKS = {"copy_bytes_per_s": 4.1e12, "float32_flops_per_s": 3.9e14}
FIRST = {
    "long_scoreboard": 0.52, "short_scoreboard": 0.03, "wait": 0.11, "selected": 0.09, "not_selected": 0.06,
    "barrier": 0.08, "mio_throttle": 0.05, "lg_throttle": 0.04, "branch_resolving": 0.02,
}  # fmt: skip
LAST = {
    "long_scoreboard": 0.12, "short_scoreboard": 0.06, "wait": 0.21, "selected": 0.24, "not_selected": 0.15,
    "barrier": 0.04, "mio_throttle": 0.12, "math_pipe_throttle": 0.05, "branch_resolving": 0.01,
}  # fmt: skip


class ProfiledScript(Script):
    """A campaign whose device has measured roofs."""

    def device(self, name: str) -> DeviceInfo:
        return DeviceInfo(kind="cuda", id=name, name="NVIDIA H200", peaks=PEAKS)


def floors(dims: dict[str, int]) -> dict[str, float]:
    m, n, k = (16.0 * dims[name] for name in "MNK")  # as if the shapes were those of a GPU
    return {"flops": 2.0 * m * n * k, "bytes_min": 4.0 * (m * k + k * n + m * n)}


def problem(floor: bool = True) -> Problem:
    shapes = {"A": ("input", ("M", "K")), "B": ("input", ("K", "N")), "C": ("output", ("M", "N"))}
    operands = [
        Operand.model_validate({"name": name, "role": role, "dtype": "float32", "shape": shape})
        for name, (role, shape) in shapes.items()
    ]
    known = {name: floors(dims) for name, dims in WORKLOADS.items()} if floor else {}
    return Problem(
        operator="matmul", entry="solve(A, B, C)", numerics="reference", operands=tuple(operands), floors=known
    )


def report_of(commit: str, stalls: dict[str, float], took_ns: float, position: Position) -> ProfileReport:
    readings = [
        Reading(metric=f"stall_{name}", source="smsp", value=share, unit="share") for name, share in stalls.items()
    ]
    readings += [
        Reading(metric=name, source=name, value=share, unit="share")
        for name, share in (("sm_throughput", 0.61), ("dram_throughput", 0.18), ("occupancy", 0.44))
    ]
    kernel = KernelProfile(
        name="void matmul<float, 64, 64>(const float *, float *)", duration_ns=took_ns, readings=tuple(readings)
    )
    return ProfileReport(
        commit=commit, tool="ncu, full set", position=position, level="counters", workload="square-256",
        kernels=(kernel,), metrics=kernel.metrics, bundle="full",
        gaps=AxisGaps(compute=0.39, memory=0.82, latency=max(stalls.values())),
    )  # fmt: skip


def profiled_campaign(run_dir: Path, floor: bool = True) -> ProfiledScript:
    """Two GPUs, five landings, two profiles of main, three ablated methods."""
    script = ProfiledScript(run_dir, ("GPU-0a1b2c3d-1", "GPU-4e5f6a7b-2"), "matmul_h200")
    script.start(Policy(max_experiments=12), problem=problem(floor))
    script.baselines()
    agents = list(script.state.agents)
    ideas = (("tile-loops", 1.3), ("vector-loads", 0.5), ("double-buffer", 0.35), ("tf32-mma", 0.9), ("swizzle", 0.12))
    for at, (technique, gain) in enumerate(ideas):
        ident = script.begin(agents[at % 2], script.plan(technique))
        script.end(ident, Verdict.KEEP, gain, reason="lower bound over 1 %")
        script.land(ident, gain - 0.005, agents[(at + 1) % 2])
        if at == 0:
            before = report_of(script.state.main, FIRST, 3.1e6, Position.LATENCY)
            script.say(agents[0], ev.ProfileReported(duty="p1", report=before))
    last = report_of(script.state.main, LAST, 2.6e5, Position.COMPUTE)
    script.say(agents[1], ev.ProfileReported(duty="p2", report=last))
    found = (
        ("double-buffer", Contribution.CONTRIBUTED, estimate(0.31, 0.02), "main is slower without it beyond doubt"),
        ("vector-loads", Contribution.NOT_CONTRIBUTED, estimate(0.002, 0.008), "the gain cannot reach 1 % any more"),
        ("swizzle", Contribution.INCONCLUSIVE, None, "without it the kernel does not build"),
    )
    ids = {e.plan.technique: e.id for e in script.state.experiments.values() if e.plan}
    for method, contribution, gain, why in found:
        check = SassCheck(method=method, status=Status.PASS, why="LDGSTS stands in the kernel and did not before")
        body = ev.MethodAblated(
            experiment=ids[method],
            commit=script.state.main,
            ablation=Ablation(method=method, contribution=contribution, gain=gain, why=why),
            sass=check,
        )
        script.say(agents[0], body)
    script.measure_main(agents[1])
    return script

"""Decisions on the CPU examples as they stand, all their workloads at once: a part of bench_decisions.py.

A/A trials compare the example with itself; in planted trials the base is the same source with a loop behind each call
that is calibrated, in one process, to cost 2 % of that workload's time (the confirmed figure is in the result). A trial
of the judge is what a campaign does: fresh processes for every restart, fresh inputs, the law of the task. The simpler
protocols run in this process, on the cores that a kernel gets, on one set of inputs, and take the weighted geometric
mean over the workloads; nothing empties the caches between their launches.
"""

import ctypes
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import exp, expm1, log
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

import torch
from decisions import GAIN, Protocols, one_number

from protocol.sequential import calibrate, decide
from team.devices import cpu_device
from team.devices.cpu import CpuDevice, cpu_devices
from team.judge.alarm import refuse_unbelievable
from team.judge.artifact import Artifact
from team.judge.bench import quiet_torch
from team.judge.check import Checker
from team.judge.failures import Failed
from team.judge.ground import CpuGround
from team.judge.kernels import KernelShop
from team.judge.shim import LOOP, scalar_word, shim_recipe
from team.tasks.spec import Workload
from team.tasks.task import Task

EXAMPLES = Path(__file__).parent.parent / "examples"
SIZES = {name: EXAMPLES / name for name in ("softmax_cpu", "rmsnorm_cpu", "matmul_cpu")}
TRIED = 3.0  # launches that the first loop is to take: long, so that noise is small in what it costs
GUESSED_NS = 2.0  # of one round of the loop
ROUNDS = {"long": 12, "planted": 60}  # launches of each side: to time the loop, and to confirm what it costs
WARM_UP_S, REPEAT_S = 0.025, 0.1  # do_bench's own defaults
SPIN = """
namespace {
volatile double kept = 1.0;
void spin(long rounds) {
    double value = kept;
    for (long i = 0; i < rounds; i++) value = value * 0.999999 + 1e-6;
    kept = value;
}
}  // namespace
"""
Side = dict[str, Callable[[], None]]
"""A launch by workload."""


class InProcess:
    """Kernels of one task loaded into this process."""

    def __init__(self, task: Task, shim: Path) -> None:
        self._task = task
        self._loop = getattr(ctypes.CDLL(str(shim)), LOOP)
        self._loop.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
        self._held: list[Any] = []
        self._tensors = {one.name: self._allocated(one) for one in task.workloads}

    def load(self, kernel: Artifact, copy: Path) -> Side:
        """A kernel's launches; ``copy`` is where the loader finds it under a name of its own."""
        shutil.copyfile(kernel.path, copy)
        entry = ctypes.cast(ctypes.CDLL(str(copy)).solve, ctypes.c_void_p)
        return {one.name: self._launch(entry, one) for one in self._task.workloads}

    def _allocated(self, workload: Workload) -> dict[str, torch.Tensor]:
        made = {name: value.contiguous() for name, value in self._task.make_inputs(workload, 1).items()}
        for buffer in self._task.outputs:
            if buffer.name not in made:
                made[buffer.name] = torch.zeros(self._task.shape(buffer, workload), dtype=buffer.dtype)
        return made

    def _launch(self, entry: ctypes.c_void_p, workload: Workload) -> Callable[[], None]:
        tensors, numbers = self._tensors[workload.name], self._task.numbers(workload)
        words = [
            tensors[one.name].data_ptr() if one.pointer else scalar_word(one, numbers[one.name])
            for one in self._task.signature.parameters
        ]
        row = (ctypes.c_uint64 * len(words))(*words)
        return lambda: self._loop(entry, row, 1)


def planted_text(task: Task, text: str, rounds: dict[str, int]) -> str:
    """The source with a loop behind each call: ``rounds`` of it by workload."""
    found = re.search(r"extern\s+\"C\"\s+void\s+solve\s*\(([^)]*)\)\s*\{", text)
    assert found is not None
    names = [parameter.name for parameter in task.signature.parameters]
    lines = [f"    inner_solve({', '.join(names)});"]
    for workload in task.workloads:
        known = " && ".join(f"{name} == {value}" for name, value in workload.dims.items() if name in names)
        lines.append(f"    if ({known}) spin({rounds[workload.name]});")
    body = re.sub(r"\bsolve\b", "inner_solve", text)
    return f'{body}\n{SPIN}\nextern "C" void solve({found.group(1)}) {{\n' + "\n".join(lines) + "\n}\n"


def one_launch_s(launch: Callable[[], None]) -> float:
    """Seconds of one launch by the host's clock."""
    started = time.perf_counter()
    launch()
    return time.perf_counter() - started


def cpu_s(launch: Callable[[], None]) -> float:
    """Seconds of CPU time of one launch."""
    started = time.process_time()
    launch()
    return time.process_time() - started


def least(seconds: Iterable[float]) -> float:
    """The low decile: disturbances only add."""
    return quantiles(seconds, n=10)[0]


def by_clock(launch: Callable[[], None]) -> float:
    """Median of 100 launches, each timed by itself."""
    return median(one_launch_s(launch) for _ in range(100))


def in_sequence(launch: Callable[[], None]) -> float:
    """Mean of 50 launches in a row."""
    started = time.perf_counter()
    for _ in range(50):
        launch()
    return (time.perf_counter() - started) / 50


def like_do_bench(launch: Callable[[], None]) -> float:
    """Triton's loop: an estimate, warm-up and repetitions for a fixed time each, the median."""
    estimate = max(fmean(one_launch_s(launch) for _ in range(5)), 1e-7)
    for _ in range(max(1, int(WARM_UP_S / estimate))):
        launch()
    return median(one_launch_s(launch) for _ in range(max(1, int(REPEAT_S / estimate))))


class CpuDecisions:
    """The examples on one core set."""

    def __init__(self, device: CpuDevice, scratch: Path) -> None:
        self._device, self._scratch = device, scratch
        self._shop = KernelShop(device, scratch)
        self._ground = CpuGround(device, self._shop, scratch / "empty")
        self.hardware = device.info().model_dump(mode="json")

    def close(self) -> None:
        """Give back what is held."""
        self._ground.bench.close()
        self._shop.close()

    @contextmanager
    def prepared(self, name: str) -> Iterator[Protocols]:
        """One example: its planted twin calibrated, its noise known."""
        task = self._shop.task(SIZES[name])
        policy, weights = task.spec.policy, {one.name: one.weight for one in task.workloads}
        plain = self._shop.kernel(task, task.folder, "base").artifact
        here = InProcess(task, self._shop.host.build(shim_recipe(task.signature)).path)
        os.sched_setaffinity(0, self._device.kernel_cores)
        light = here.load(plain, self._scratch / f"{name}-plain.so")
        planted, heavy, gains = self._planted(task, here, light)
        self._device.pin()
        record = Checker(self._ground.bench, task, self._ground.inputs(task), policy).check("base", plain, None)
        launches = self._ground.first_launches(task, record)
        contest = self._ground.loop(task, plain, plain, record, launches)
        restarts = [contest.restart(policy.pairs_per_restart) for _ in range(policy.calibration_restarts)]
        noise = calibrate(restarts, weights, policy)
        facts: dict[str, Any] = {
            "ns per launch": dict(record.launch_ns),
            "confirmed planted gain": {workload: expm1(gain) for workload, gain in gains.items()},
            "noise": noise.model_dump(mode="json"),
            "alarms": 0,
        }

        def trial(asked: bool) -> tuple[bool, int]:
            loop = self._ground.loop(task, planted if asked else plain, plain, record, dict(launches))
            seen, pending = [], list(policy.looks)
            while pending:
                seen.append(loop.restart(policy.pairs_per_restart))
                try:
                    refuse_unbelievable(loop, lambda: None)
                except Failed:
                    facts["alarms"] += 1
                    return False, len(seen) * policy.pairs_per_restart
                if len(seen) * policy.pairs_per_restart < pending[0]:
                    continue
                pending = [look for look in pending if look > len(seen) * policy.pairs_per_restart]
                state = decide(seen, weights, noise, policy).state
                if state != "continue":
                    return state == "keep", len(seen) * policy.pairs_per_restart
            return False, policy.looks[-1]

        others = {"clock": by_clock, "do_bench": like_do_bench, "sequence": in_sequence}
        simple = {
            protocol: one_number(self._over_workloads(measure, weights), light, heavy, policy.threshold)
            for protocol, measure in others.items()
        }
        yield Protocols(facts, trial, simple)

    def _planted(self, task: Task, here: InProcess, light: Side) -> tuple[Artifact, Side, dict[str, float]]:
        """The twin with 2 % more work, its launches, and the confirmed log gains."""
        usual = {name: least(cpu_s(launch) for _ in range(ROUNDS["long"])) for name, launch in light.items()}
        rounds = {name: max(1, round(TRIED * 1e9 * usual[name] / GUESSED_NS)) for name in light}
        slow = here.load(self._twin(task, rounds, "long"), self._scratch / f"{task.spec.name}-long.so")
        for name, launch in slow.items():
            took = least(cpu_s(launch) for _ in range(ROUNDS["long"])) - usual[name]
            rounds[name] = max(1, round(rounds[name] * GAIN * usual[name] / took))
        kernel = self._twin(task, rounds, "planted")
        heavy = here.load(kernel, self._scratch / f"{task.spec.name}-planted.so")
        return kernel, heavy, {name: extra_work(light[name], heavy[name], ROUNDS["planted"]) for name in light}

    def _twin(self, task: Task, rounds: dict[str, int], step: str) -> Artifact:
        tree = self._scratch / "trees" / task.spec.name / step
        tree.mkdir(parents=True)
        for name in task.spec.editable_files:
            shutil.copyfile(task.folder / name, tree / name)
        source = tree / task.spec.source
        source.write_text(planted_text(task, source.read_text(), rounds))
        return self._shop.kernel(task, tree, "candidate").artifact

    def _over_workloads(
        self, measure: Callable[[Callable[[], None]], float], weights: dict[str, float]
    ) -> Callable[[Any], float]:
        """One number for all workloads, measured on the cores that a kernel gets."""

        def run(side: Side) -> float:
            os.sched_setaffinity(0, self._device.kernel_cores)
            try:
                logs = [weights[name] * log(measure(launch)) for name, launch in side.items()]
            finally:
                self._device.pin()
            return exp(sum(logs) / sum(weights.values()))

        return run


def extra_work(light: Callable[[], None], heavy: Callable[[], None], rounds: int) -> float:
    """Log of what the heavy launch costs over the light one: low deciles of CPU time, since disturbances only add."""
    times: dict[bool, list[float]] = {False: [], True: []}
    for number in range(2 * rounds):
        planted = number % 4 in (1, 2)
        times[planted].append(cpu_s(heavy if planted else light))
    return log(least(times[True]) / least(times[False]))


@contextmanager
def opened(scratch: Path) -> Iterator[CpuDecisions]:
    """One core set, as a campaign with two agents would give an agent."""
    quiet_torch()
    device = cpu_device(cpu_devices(1)[0].id)
    device.pin()
    decisions = CpuDecisions(device, scratch)
    try:
        yield decisions
    finally:
        decisions.close()

"""False keeps and power of the judge's decisions on CUDA kernels of 4 us to 1 ms, beside three simpler protocols.

usage: python scripts/bench_decisions.py [--seconds 100] [--out benchmarks/results]

One kernel, four sizes. A/A trials compare it with itself; planted trials compare it with itself plus extra work that
is calibrated, in one process, to cost 2 % more time (the confirmed figure is in the result). Trials of the judge are
what a campaign does, restart by restart (fresh slots, inputs and graphs; decided by ``protocol.sequential``), on a pool
of warm processes from which every restart draws two at random; two are replaced after every ``REFRESH`` trials.
The others keep when base / candidate >= 1 + threshold: (a) medians of 100 event-timed launches each, (b) medians of
``triton.testing.do_bench``, (c) 50 launches of A, then 50 of B, between two events each. Every protocol runs until its
share of the seconds is used up or 500 trials are done; 400 A/A and 100 planted.
"""

import argparse
import ctypes
import dataclasses
import json
import random
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch

from protocol.messages import Noise, Restart
from protocol.sequential import calibrate, decide
from team.devices import discover
from team.judge.arena import slot_size
from team.judge.cuda import contest as cuda
from team.judge.cuda.bench import ALIGNMENT, CudaStand
from team.judge.cuda.build import lent_signature
from team.judge.ground import CudaGround
from team.judge.kernels import KernelShop
from team.judge.pairs import Lane
from team.judge.shim import LOOP, shim_recipe
from team.tasks.spec import Workload
from team.tasks.task import Task

KERNEL = """\
#include <cuda_runtime.h>
__global__ void work(const float* x, float* y, int n, int extra, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n + extra) return;
    int j = i < n ? i : i - n;  // extra elements are done once more
    float v = x[j];
    for (int r = 0; r < rounds; r++) v = fmaf(v, 1.0001f, 1e-4f);
    y[j] = v;
}
extern "C" void solve(const float* x, float* y, int n, int extra, int rounds, cudaStream_t stream) {
    work<<<(n + extra + 127) / 128, 128, 0, stream>>>(x, y, n, extra, rounds);
}
"""
REFERENCE = """\
from math import expm1, log1p

GROWTH = 1.00010001659393310546875 - 1.0  # the float nearest to 1.0001

def reference(x, y, n, extra, rounds):
    grown = expm1(rounds * log1p(GROWTH))
    y.copy_(x * (grown + 1.0) + 1e-4 / GROWTH * grown)
"""
SIZES = {"4 us": (1 << 19, 4e3), "13 us": (3 << 20, 13e3), "130 us": (1 << 23, 130e3), "1 ms": (1 << 23, 1e6)}
GAIN = 0.02
TRIALS = {"aa": 400, "planted": 100}
POOL = 8
REFRESH = 50
SHARES = {"judge": 0.7, "events": 0.12, "do_bench": 0.08, "sequence": 0.1}
ARENA = 3 << 30


def write_task(folder: Path) -> Path:
    """The task of this benchmark."""
    folder.mkdir(parents=True)
    (folder / "work.cu").write_text(KERNEL)
    (folder / "reference.py").write_text(REFERENCE)
    head = 'name = "decisions"\ndevice = "cuda"\nsource = "work.cu"\n'
    head += '[arguments]\nx = { shape = ["n"] }\ny = { shape = ["n"] }\n'
    head += "[tolerance]\ndefault = { atol = 1e-2, rtol = 1e-2 }\n"
    rows = [
        f'[[workloads]]\nname = "{k}"\ndims = {{ n = {n}, extra = 0, rounds = 1 }}\n' for k, (n, _) in SIZES.items()
    ]
    (folder / "task.toml").write_text(head + "".join(rows))
    return folder


class Trials(cuda.CudaContest):
    """The judge's timing loop on processes that are already there; the base may be given extra work."""

    planted: Workload | None = None

    def _lane(self, base: CudaStand, candidate: CudaStand, workload: Workload) -> Lane:
        layout = self.bench.arrange(self.task, workload, self._slots(workload), self.source.dice)
        heavy = dataclasses.replace(layout, workload=self.planted or workload)
        ours = base.stage(cuda.TIMED_SET, heavy, layout.launches)
        return Lane(workload, layout, ours, candidate.stage(cuda.TIMED_SET, layout, layout.launches))

    def restart_on(self, base: CudaStand, candidate: CudaStand, workload: Workload) -> Restart:
        """One restart's pairs of one workload."""
        base.side, candidate.side = "base", "candidate"
        base.workload = candidate.workload = workload.name
        lane = self._lane(base, candidate, workload)
        self._turns(base, candidate, lane, candidate_first=False)
        orders = self._orders(self.policy.pairs_per_restart)
        return Restart(pairs={workload.name: tuple(self._pair(base, candidate, lane, first) for first in orders)})

    def ratio(self, stand: CudaStand, workload: Workload, heavy: Workload, rounds: int) -> float:
        """Log of the time with extra work over the time without, both in one process on the same slots."""
        layout = self.bench.arrange(self.task, workload, self._slots(workload), self.source.dice)
        stand.stage(2, dataclasses.replace(layout, workload=heavy), layout.launches)
        lease = stand.stage(1, layout, layout.launches)
        lease.fill(self.source.timed(workload, layout.launches))
        logs: list[float] = []
        for number in range(rounds):
            order = (1, 2) if number % 2 else (2, 1)
            times = {one: stand.go(one, 20.0).claimed_ns for one in order}
            logs.append(log(times[2] / times[1]))
        logs.sort()
        return fmean(logs[rounds // 4 : rounds - rounds // 4])


class Pool:
    """Warm processes, all with the same kernel."""

    def __init__(self, ground: CudaGround, task: Task, kernel: Any) -> None:
        self._open = lambda: ground.bench.stand("base", task, kernel, 0)
        self._bench = ground.bench
        self._held: list[tuple[ExitStack, CudaStand]] = []
        self.fill()

    @property
    def stands(self) -> list[CudaStand]:
        return [stand for _, stand in self._held]

    def fill(self) -> None:
        missing = POOL - len(self._held)
        self._bench.prepare(missing)
        self._bench.settle()
        for _ in range(missing):
            stack = ExitStack()
            self._held.append((stack, stack.enter_context(self._open())))

    def refresh(self, count: int) -> None:
        """Replace the ``count`` oldest processes."""
        for stack, _ in self._held[:count]:
            stack.close()
        del self._held[:count]
        self._bench.reap()
        self.fill()

    def close(self) -> None:
        for stack, _ in self._held:
            stack.close()
        self._bench.reap()


def with_dims(workload: Workload, **dims: int) -> Workload:
    """The same workload with other numbers."""
    return workload.model_copy(update={"dims": {**workload.dims, **dims}})


def tuned(
    trials: Trials, stand: CudaStand, workload: Workload, target_ns: float
) -> tuple[Workload, Workload, float, float]:
    """The workload at its target time, the same with 2 % more work, ns per launch, and the confirmed log gain."""

    def time_of(one: Workload, launches: int) -> float:
        layout = trials.bench.arrange(trials.task, one, launches, trials.source.dice)
        lease = stand.stage(1, layout, launches)
        lease.fill(trials.source.timed(one, launches))
        return median(stand.go(1, 20.0).claimed_ns for _ in range(7)) / launches

    few, many = time_of(with_dims(workload, rounds=1), 8), time_of(with_dims(workload, rounds=1001), 2)
    rounds = max(1, 1 + round(1000 * (target_ns - few) / (many - few)))
    plain = with_dims(workload, rounds=rounds)
    took = time_of(plain, 8)
    fits = ARENA // slot_size(trials.task, plain, ALIGNMENT) - 1
    wanted = max(1, min(fits, cuda.MAX_LAUNCHES, round(cuda.SAMPLE_NS / took)))
    trials.launches[workload.name] = wanted
    low, high = 0, round(0.12 * plain.dims["n"])
    for _ in range(9):  # time grows in steps with the number of blocks, so the extra work is bracketed
        middle = (low + high) // 2
        below = trials.ratio(stand, plain, with_dims(plain, extra=middle), 24) < log(1.0 + GAIN)
        low, high = (middle, high) if below else (low, middle)
    heavy = with_dims(plain, extra=high)
    return plain, heavy, took, trials.ratio(stand, plain, heavy, 80)


def judged(trials: Trials, pool: Pool, workload: Workload, noise: Noise | None) -> tuple[bool, int]:
    """One trial of the judge: whether the candidate is kept, and after how many pairs."""
    policy, weights = trials.policy, {workload.name: 1.0}
    restarts: list[Restart] = []
    pending = list(policy.looks)
    while pending:
        base, candidate = trials.source.dice.sample(pool.stands, 2)
        restarts.append(trials.restart_on(base, candidate, workload))
        pairs = len(restarts) * policy.pairs_per_restart
        if pairs < pending[0]:
            continue
        pending = [look for look in pending if look > pairs]
        state = decide(restarts, weights, noise, policy).state
        if state != "continue":
            return state == "keep", pairs
    return False, policy.looks[-1]


class Loaded:
    """The kernel in this very process, as the simpler protocols have it."""

    def __init__(self, path: Path, shim: Path, task: Task) -> None:
        self._entry = ctypes.cast(ctypes.CDLL(str(path)).solve, ctypes.c_void_p)
        self._loop = getattr(ctypes.CDLL(str(shim)), LOOP)
        self._loop.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
        self._task = task

    def caller(self, workload: Workload, x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
        """Launch once on torch's current stream."""
        dims = workload.dims
        stream = torch.cuda.current_stream().cuda_stream
        words = [x.data_ptr(), y.data_ptr(), dims["n"], dims["extra"], dims["rounds"], stream]
        row = (ctypes.c_uint64 * len(words))(*words)
        return lambda: self._loop(self._entry, row, 1)


def by_events(launch: Callable[[], None]) -> float:
    """Median of 100 launches, an event before and after each (ns)."""
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(100)]
    for start, stop in events:
        start.record()
        launch()
        stop.record()
    torch.cuda.synchronize()
    return median(start.elapsed_time(stop) for start, stop in events) * 1e6


def in_sequence(launch: Callable[[], None]) -> float:
    """Mean of 50 launches between two events (ns)."""
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(50):
        launch()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / 50 * 1e6


def by_do_bench(launch: Callable[[], None]) -> float:
    """Median as Triton measures it, with its default warm-up and repetitions (ns)."""
    from triton.testing import do_bench

    return float(do_bench(launch, return_mode="median")) * 1e6


def counted(trial: Callable[[bool], tuple[bool, int]], seconds: float, each: Callable[[int], None]) -> dict[str, Any]:
    """Run A/A and planted trials, mixed, until both are done or the time is up."""
    kept = {"aa": 0, "planted": 0}
    done = {"aa": 0, "planted": 0}
    pairs: dict[str, list[int]] = {"aa": [], "planted": []}
    started = time.perf_counter()
    dice = random.Random(7)
    while time.perf_counter() - started < seconds:
        open_kinds = [kind for kind in TRIALS if done[kind] < TRIALS[kind]]
        if not open_kinds:
            break
        kind = dice.choices(open_kinds, [TRIALS[one] - done[one] for one in open_kinds])[0]
        keep, used = trial(kind == "planted")
        kept[kind] += keep
        done[kind] += 1
        pairs[kind].append(used)
        each(sum(done.values()))
    wall = time.perf_counter() - started
    return {
        "aa trials": done["aa"],
        "false keeps": kept["aa"],
        "planted trials": done["planted"],
        "found": kept["planted"],
        "mean pairs aa": fmean(pairs["aa"] or [0]),
        "mean pairs planted": fmean(pairs["planted"] or [0]),
        "ms per trial": 1e3 * wall / max(1, sum(done.values())),
    }


def simple(measure: Callable[[Callable[[], None]], float], plain: Any, heavy: Any, threshold: float) -> Any:
    """A trial of a protocol that has one number for each side."""

    def trial(planted: bool) -> tuple[bool, int]:
        base = measure(heavy if planted else plain)
        return base / measure(plain) >= 1.0 + threshold, 1

    return trial


def one_size(name: str, trials: Trials, pool: Pool, loaded: Loaded, seconds: float) -> dict[str, Any]:
    """All protocols on one size."""
    workload = next(one for one in trials.task.workloads if one.name == name)
    plain, heavy, took, gain = tuned(trials, pool.stands[0], workload, SIZES[name][1])
    policy, weights = trials.policy, {name: 1.0}
    trials.planted = None
    restarts = [
        trials.restart_on(*trials.source.dice.sample(pool.stands, 2), plain) for _ in range(policy.calibration_restarts)
    ]
    noise = calibrate(restarts, weights, policy)
    result: dict[str, Any] = {
        "ns per launch": took,
        "dims": plain.dims,
        "extra elements": heavy.dims["extra"],
        "confirmed planted gain": exp(gain) - 1.0,
        "launches per sample": trials.launches[name],
        "noise": noise.model_dump(mode="json"),
    }
    print(f"{name}: {json.dumps(result)}", flush=True)

    def trial(planted: bool) -> tuple[bool, int]:
        trials.planted = heavy if planted else None
        return judged(trials, pool, plain, noise)

    def refresh(done: int) -> None:
        if done % REFRESH == 0:
            pool.refresh(2)

    result["judge"] = counted(trial, seconds * SHARES["judge"], refresh)
    print(f"{name} judge: {json.dumps(result['judge'])}", flush=True)
    x, y = torch.randn(plain.dims["n"], device="cuda"), torch.empty(plain.dims["n"], device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        launches = loaded.caller(plain, x, y), loaded.caller(heavy, x, y)
        for protocol, measure in (("events", by_events), ("do_bench", by_do_bench), ("sequence", in_sequence)):
            measure(launches[0])
            run = simple(measure, *launches, policy.threshold)
            result[protocol] = counted(run, seconds * SHARES[protocol], lambda done: None)
            print(f"{name} {protocol}: {json.dumps(result[protocol])}", flush=True)
    return result


def run(ground: CudaGround, shop: KernelShop, scratch: Path, seconds: float, out: Path) -> None:
    """All sizes; the result is written after each."""
    task = shop.task(write_task(scratch / "decisions"))
    kernel = shop.kernel(task, task.folder, "base").artifact
    shim = shop.host.build(shim_recipe(lent_signature(task.signature)))
    trials = Trials(
        ground.bench, task, ground.inputs(task), task.spec.policy, kernel, kernel, cuda.Record(), {}, task.workloads
    )
    trials.launches = {one.name: 8 for one in task.workloads}
    trials.record.launch_ns = {one.name: 5e7 for one in task.workloads}
    ground.bench.provide(ARENA)
    pool = Pool(ground, task, kernel)
    loaded = Loaded(kernel.path, shim.path, task)
    info = ground.bench.device.info().model_dump(mode="json")
    result: dict[str, Any] = {
        "hardware": info,
        "seconds per size": seconds,
        "pool": POOL,
        "refresh": REFRESH,
        "sizes": {},
    }
    try:
        for name in SIZES:
            result["sizes"][name] = one_size(name, trials, pool, loaded, seconds)
            out.mkdir(parents=True, exist_ok=True)
            (out / "decisions-cuda.json").write_text(json.dumps(result, indent=1))
    finally:
        pool.close()


def main() -> None:
    """Own the device, then run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=100.0, help="for all protocols of one size")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    device = discover("cuda", 1)[0]
    device.pin()
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        shop = KernelShop(device, scratch)  # type: ignore[arg-type]
        ground = CudaGround(device, shop, scratch / "empty")  # type: ignore[arg-type]
        run(ground, shop, scratch, options.seconds, options.out)
        ground.bench.close()


if __name__ == "__main__":
    main()

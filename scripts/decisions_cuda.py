"""Decisions on CUDA kernels of 4 us to 1 ms: the part of bench_decisions.py that needs a GPU.

One kernel, four sizes. A/A trials compare it with itself; planted trials compare it with itself plus extra work that
is calibrated, in one process, to cost 2 % more time (the confirmed figure is in the result). Trials of the judge are
what a campaign does, restart by restart (fresh slots, inputs and graphs; decided by ``protocol.sequential``), on a pool
of warm processes from which every restart draws two at random; two are replaced after every ``REFRESH`` trials.
"""

import ctypes
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch
from decisions import GAIN, Protocols, one_number

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
POOL = 8
REFRESH = 50
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
        return Restart.of({workload.name: tuple(self._pair(base, candidate, lane, first) for first in orders)})

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
        self._bench.settle(missing)
        for _ in range(missing):
            stack = ExitStack()
            self._held.append((stack, stack.enter_context(self._open())))

    def refresh(self, count: int) -> None:
        """Replace the ``count`` oldest processes."""
        for stack, _ in self._held[:count]:
            stack.close()
        del self._held[:count]
        self._bench.pool.reap()
        self.fill()

    def close(self) -> None:
        for stack, _ in self._held:
            stack.close()
        self._bench.pool.reap()


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

    return float(do_bench(launch, return_mode="median")) * 1e6  # type: ignore[arg-type]


class CudaDecisions:
    """Everything that stays the same from size to size, on one GPU."""

    unit = "size"

    def __init__(self, ground: CudaGround, shop: KernelShop, scratch: Path) -> None:
        task = shop.task(write_task(scratch / "decisions"))
        kernel = shop.kernel(task, task.folder, "base").artifact
        shim = shop.host.build(shim_recipe(lent_signature(task.signature)))
        self._trials = Trials(
            ground.bench, task, ground.inputs(task), task.spec.policy, kernel, kernel, cuda.Record(), {}, task.workloads
        )
        self._trials.launches = {one.name: 8 for one in task.workloads}
        self._trials.record.launch_ns = {one.name: 5e7 for one in task.workloads}
        ground.bench.provide(ARENA)
        self._pool = Pool(ground, task, kernel)
        self._loaded = Loaded(kernel.path, shim.path, task)
        self.hardware = ground.bench.device.info().model_dump(mode="json")

    def close(self) -> None:
        """End the processes."""
        self._pool.close()

    @contextmanager
    def prepared(self, name: str) -> Iterator[Protocols]:
        """One size: tuned, its planted work calibrated, its noise known."""
        trials, pool = self._trials, self._pool
        workload = next(one for one in trials.task.workloads if one.name == name)
        plain, heavy, took, gain = tuned(trials, pool.stands[0], workload, SIZES[name][1])
        policy = trials.policy
        trials.planted = None
        restarts = [
            trials.restart_on(*trials.source.dice.sample(pool.stands, 2), plain)
            for _ in range(policy.calibration_restarts)
        ]
        noise = calibrate(restarts, {name: 1.0}, policy)
        facts: dict[str, Any] = {
            "ns per launch": took,
            "dims": plain.dims,
            "extra elements": heavy.dims["extra"],
            "confirmed planted gain": exp(gain) - 1.0,
            "launches per sample": trials.launches[name],
            "noise": noise.model_dump(mode="json"),
            "pool": POOL,
            "refresh": REFRESH,
        }

        def trial(planted: bool) -> tuple[bool, int]:
            trials.planted = heavy if planted else None
            return judged(trials, pool, plain, noise)

        def refresh(done: int) -> None:
            if done % REFRESH == 0:
                pool.refresh(2)

        x, y = torch.randn(plain.dims["n"], device="cuda"), torch.empty(plain.dims["n"], device="cuda")
        torch.cuda.synchronize()
        aside = torch.cuda.Stream()
        with torch.cuda.stream(aside):
            launches = self._loaded.caller(plain, x, y), self._loaded.caller(heavy, x, y)
        others = {"events": by_events, "do_bench": by_do_bench, "sequence": in_sequence}
        simple = {
            name: one_number(_beside(aside, measure), *launches, policy.threshold) for name, measure in others.items()
        }
        yield Protocols(facts, trial, simple, refresh)


def _beside(stream: torch.cuda.Stream, measure: Callable[[Callable[[], None]], float]) -> Any:
    """``measure`` with ``stream`` as torch's current one."""

    def run(launch: Callable[[], None]) -> float:
        with torch.cuda.stream(stream):
            return measure(launch)

    return run


@contextmanager
def opened(scratch: Path) -> Iterator[CudaDecisions]:
    """The first visible GPU, this process's alone."""
    device = discover("cuda", 1)[0]
    device.pin()
    shop = KernelShop(device, scratch)  # type: ignore[arg-type]
    ground = CudaGround(device, shop, scratch / "empty")  # type: ignore[arg-type]
    decisions = CudaDecisions(ground, shop, scratch)
    try:
        yield decisions
    finally:
        decisions.close()
        ground.bench.close()
        shop.close()

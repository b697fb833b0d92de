"""The CUDA judge's own logic with real processes, on a machine without a GPU: a stand-in runner and a stand-in card."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from protocol.messages import DeviceInfo, Outcome
from protocol.policy import Policy
from team.devices.telemetry import Reading
from team.errors import UserError
from team.judge.alarm import refuse_unbelievable
from team.judge.arena import Arena
from team.judge.build import Builder, Recipe, kernel_flags
from team.judge.check import Checker, Record
from team.judge.cuda.bench import LEAST, CudaBench
from team.judge.cuda.contest import WALKED, CudaContest, first_launches, steady
from team.judge.cuda.inputs import CudaInputs
from team.judge.cuda.pool import Pool
from team.judge.cuda.process import CudaRunner
from team.judge.evidence import Evidence
from team.judge.failures import Failed, RunnerFaulted
from team.judge.kernels import Kernel
from team.judge.laps import Sifted
from team.judge.runner import process
from team.judge.sift import Sift
from team.judge.timeline import TIMELINE
from team.tasks.spec import Workload
from team.tasks.task import Task, load_task

HERE = Path(__file__).parent
RUNNER = HERE.parents[2] / "team" / "judge" / "runner"
HEAD = 'extern "C" void solve(const float* x, float* y, int n) {\n'
TWICE = HEAD + "    for (int i = 0; i < n; i++) y[i] = 2.0f * x[i];\n}\n"
LAZY = (
    HEAD
    + "    static int calls = 0;\n    if (calls++ < 20)\n        for (int i = 0; i < n; i++) y[i] = 2.0f * x[i];\n}\n"
)
REMEMBERS = (
    "#include <set>\n#include <utility>\n"
    + HEAD
    + "    static std::set<std::pair<float, float>> seen;\n"
    + "    bool known = !seen.insert({x[0], x[n - 1]}).second;\n"
    + "    for (int i = 0; i < n; i++) y[i] = known ? 0.0f : 2.0f * x[i];\n}\n"
)
"""Wrong on inputs that it has met before: whoever can tell them could have kept the answer."""
GREEDY = (
    "#include <cstdlib>\n#include <cstring>\nstatic char* volatile taken;\n"
    + HEAD
    + "    taken = static_cast<char*>(malloc(200 << 20));\n    memset(taken, 1, 200 << 20);\n"
    + "    for (;;) taken[0]++;\n}\n"
)
TOML = """\
name = "twice"
source = "twice.cpp"
[arguments]
x = { shape = ["n"] }
y = { shape = ["n"] }
[[workloads]]
name = "long"
dims = { n = 65536 }
[[workloads]]
name = "odd"
dims = { n = 1013 }
"""


class FileArena(Arena):
    """Lent by the path of its memory file, which another uid may not open: so the uid is kept, as with refused IPC."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.handle = f"/proc/{os.getpid()}/fd/{self.descriptor}".encode()


@dataclass(frozen=True)
class FakeDevice:
    id: str = "GPU-stand-in"
    nodes: tuple[str, ...] = ()
    l2_bytes: int = 1 << 20
    memory_bytes: int = 4 << 30


@dataclass
class FakeCard:
    device: FakeDevice = FakeDevice()
    lingering: bool = False
    readings: list[Reading] = field(default_factory=list[Reading])
    peaks: dict[str, float] = field(default_factory=dict[str, float])

    def info(self) -> DeviceInfo:
        return DeviceInfo(kind="cuda", id=self.device.id, name="stand-in", peaks=self.peaks)

    def lend(self, size: int) -> Arena:
        return FileArena(size)

    def look(self, ours: set[int]) -> Reading:
        return self.readings.pop(0) if self.readings else Reading(1980, 3201, 40, 0, ())

    def drain(self) -> None:
        pass

    def calm(self) -> None:
        pass

    def held_up(self) -> bool:
        return self.lingering

    def free_share(self) -> float:
        return 1.0

    def prove_alive(self) -> None:
        pass


@dataclass
class Ring:
    """A bench with its stand-ins and everything that a contest needs."""

    task: Task
    bench: CudaBench
    card: FakeCard
    builder: Builder

    def contest(self, base: str, candidate: str) -> CudaContest:
        sides = [
            self.builder.build(Recipe({"k.cpp": t}, "k.cpp", kernel_flags("strict", None))) for t in (base, candidate)
        ]
        source = CudaInputs(self.task, "cpu")
        record = Checker(self.bench, self.task, source, self.task.spec.policy).check("base", sides[0], None, False)
        launches = first_launches(self.bench, self.task.spec.policy, self.task, record)
        policy = self.task.spec.policy
        return CudaContest(self.bench, self.task, source, policy, *sides, record, launches, self.task.workloads)


def await_done(pool: Pool) -> None:
    """Wait until the pool has nothing left to do."""
    with pool._changed:
        assert pool._changed.wait_for(lambda: not pool._due() and not pool._stepping, timeout=60)


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ring]:
    place = tmp_path_factory.mktemp("ring")
    (place / "task.toml").write_text(TOML)
    (place / "twice.cpp").write_text(TWICE)
    (place / "reference.py").write_text("def reference(x, y):\n    y.copy_(2 * x)\n")
    builder, card = Builder(place / "cache", place / "work"), FakeCard()
    stand_in: Any = card
    bench = CudaBench(stand_in, builder, builder, place / "empty")
    files = {name: (RUNNER / name).read_text() for name in ("wire.h", "sandbox.h")}
    files["fake_runner.cpp"] = (HERE / "fake_runner.cpp").read_text()
    bench._program = builder.build(Recipe(files, "fake_runner.cpp", ("-O2", "-std=c++17")))
    yield Ring(load_task(place), bench, card, builder)
    bench.close()


def test_a_restart_measures_every_workload_on_lent_memory(ring: Ring) -> None:
    contest = ring.contest(TWICE, TWICE)
    restart = contest.restart(4)
    assert {name: len(pairs) for name, pairs in restart.pairs.items()} == {"long": 4, "odd": 4}
    assert all(sum(pair.candidate_first for pair in pairs) == 2 for pairs in restart.pairs.values())
    assert set(contest.tally.launching.values()) == {"graph"}
    assert set(contest.tally.regimes["stream"]) == {"long", "odd"}
    assert contest.tally.kernel_ns > 0


def test_those_that_served_are_frozen_and_taken_down_later(ring: Ring) -> None:
    ring.bench.pool.reap()
    ring.contest(TWICE, TWICE).restart(2)
    served = [runner for runner in ring.bench.pool.retired if runner.frozen]
    assert len(served) >= 2
    assert {runner.pid for runner in served} <= ring.bench.pool.pids()
    ring.bench.pool.reap()
    assert not ring.bench.pool.retired
    assert not any(runner.frozen for runner in served)


def test_between_requests_the_next_runners_are_started(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    ring.bench.prepare(4)
    ring.contest(TWICE, TWICE).restart(2)
    ring.bench.rest()
    await_done(ring.bench.pool)
    assert ring.bench.pool.spares == 4
    monkeypatch.setattr(ring.card, "free_share", lambda: 0.1)
    ring.contest(TWICE, TWICE).restart(2)
    ring.bench.settle()
    assert not ring.bench.pool.retired
    ring.bench.pool.drop_spares()
    ring.bench.prepare(4)
    await_done(ring.bench.pool)
    assert ring.bench.pool.spares == LEAST


def test_those_that_wait_open_a_larger_arena_when_one_is_needed(ring: Ring) -> None:
    contest = ring.contest(TWICE, TWICE)
    ring.bench.prepare(2)
    await_done(ring.bench.pool)
    waiting = {runner.pid for runner in ring.bench.pool._spares}
    size = ring.bench.provide(1) + 1
    assert ring.bench.provide(size) >= size
    assert waiting == {runner.pid for runner in ring.bench.pool._spares}
    assert all(runner._opened is ring.bench._arenas[0] for runner in ring.bench.pool._spares)
    assert set(contest.restart(2).pairs) == {"long", "odd"}


def test_launching_from_the_host_is_timed_in_the_first_restarts_only(ring: Ring) -> None:
    contest = ring.contest(TWICE, TWICE)
    for _ in range(WALKED + 2):
        contest.restart(1)
    assert all(len(seen) == WALKED for seen in contest._walks.values())


def test_a_kernel_that_stops_working_is_incorrect(ring: Ring) -> None:
    with pytest.raises(Failed) as failed:
        ring.contest(TWICE, LAZY).restart(4)
    assert (failed.value.side, failed.value.outcome) == ("candidate", Outcome.INCORRECT)


def test_no_inputs_of_a_sample_were_met_before(ring: Ring) -> None:
    """The second side woke on the first one's inputs, which were its sample's, with the first one's answers beside."""
    assert set(ring.contest(TWICE, REMEMBERS).restart(8).pairs) == {"long", "odd"}


@pytest.mark.parametrize(("launch_ns", "launches"), [(1e3, 1000), (2e4, 50), (4e4, 25), (5e4, 20), (2e7, 20)])
def test_a_planted_sample_is_a_millisecond_or_twenty_launches(launch_ns: float, launches: int) -> None:
    assert steady(launch_ns) == launches


def failing(times: int, act: Callable[..., None]) -> Callable[..., None]:
    """``act``, but the first ``times`` calls meet an exhausted card."""
    left = [times]

    def tried(*arguments: object) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise RunnerFaulted("cudaErrorMemoryAllocation, out of memory")
        act(*arguments)

    return tried


@pytest.mark.parametrize("act", ["await_ready", "open"])
def test_a_runner_that_found_no_memory_is_replaced_and_keeps_no_uid(
    act: str, ring: Ring, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring.contest(TWICE, TWICE).restart(1)
    ring.bench.settle(1)
    assert ring.bench.pool.retired
    monkeypatch.setattr(ring.bench, "_keep_uid", False)
    monkeypatch.setattr(CudaRunner, "open", lambda runner, arena: None)
    monkeypatch.setattr(CudaRunner, act, failing(1, getattr(CudaRunner, act)))
    runner = ring.bench.runner(ring.bench._arenas[0])
    assert not ring.bench._keep_uid
    assert not ring.bench.pool.retired
    ring.bench.pool.retire(runner)


def test_a_card_that_gives_no_context_is_a_sentence(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CudaRunner, "await_ready", failing(99, CudaRunner.await_ready))
    with pytest.raises(UserError, match="cannot use GPU GPU-stand-in: met the CUDA error cudaErrorMemory"):
        ring.bench.runner(ring.bench._arenas[0])


def test_memory_that_runs_short_is_taken_back_at_once(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring.card, "free_share", lambda: 0.1)
    ring.contest(TWICE, TWICE)
    assert not ring.bench.pool.retired


def test_a_kernel_that_eats_the_hosts_memory_is_killed(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "HOST_MEMORY", 100 << 20)
    with pytest.raises(Failed, match="GiB of the host's memory and was killed") as failed:
        ring.contest(TWICE, GREEDY).restart(1)
    assert (failed.value.side, failed.value.outcome) == ("candidate", Outcome.CRASHED)
    ring.contest(TWICE, TWICE).restart(1)


def test_what_runs_on_after_the_answer_is_tampering(ring: Ring) -> None:
    contest = ring.contest(TWICE, TWICE)
    ring.card.lingering = True
    try:
        with pytest.raises(Failed, match="runs on") as failed:
            contest.restart(4)
    finally:
        ring.card.lingering = False
    assert failed.value.outcome is Outcome.TAMPERED


def test_a_disturbed_block_is_thrown_away_and_counted(ring: Ring) -> None:
    contest = ring.contest(TWICE, TWICE)
    ring.card.readings = [Reading(1980, 3201, 40, 0, ()), Reading(900, 3201, 90, 0x40, ())]
    restart = contest.restart(2)
    assert contest.tally.discarded == 4
    assert all(len(pairs) == 2 for pairs in restart.pairs.values())


def test_faster_than_the_roofs_is_tampering(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    contest = ring.contest(TWICE, TWICE)
    monkeypatch.setattr(contest.task, "floor", lambda workload: {"bytes_min": 1e9})
    monkeypatch.setattr(ring.card, "peaks", {"copy_bytes_per_s": 1e9})
    contest.restart(2)
    with pytest.raises(Failed, match="roofline") as failed:
        refuse_unbelievable(contest, lambda: None)
    assert failed.value.outcome is Outcome.TAMPERED


def test_what_looked_impossible_once_is_forgotten(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    contest, again = ring.contest(TWICE, TWICE), list[int]()
    monkeypatch.setattr(contest, "restart", again.append)  # a busy machine's clocks are not this test's business
    contest.suspicion = "long", "a clause"
    refuse_unbelievable(contest, lambda: None)
    assert contest.complaint() == ("", "")
    assert again == [contest.policy.pairs_per_restart] * contest.policy.alarm_restarts


def test_the_law_of_samples_is_the_policys(ring: Ring) -> None:
    assert isinstance(ring.task.spec.policy, Policy)
    contest = ring.contest(TWICE, TWICE)
    contest.restart(2)
    assert all(1 <= count <= 1024 for count in contest.launches.values())


@dataclass
class StandInGround:
    """What a sift asks of a ground."""

    bench: CudaBench
    ring: Ring

    def inputs(self, task: Task) -> CudaInputs:
        return CudaInputs(task, "cpu")

    def first_launches(self, task: Task, *records: Record) -> dict[str, int]:
        return first_launches(self.bench, task.spec.policy, task, *records)

    def room(self, task: Task, workload: Workload) -> int:
        return 64


def test_variants_of_one_author_share_a_runner(ring: Ring) -> None:
    """Each launches its own code from its own sets; one that dies is left out of the next process, and only it."""
    slow = TWICE.replace("y[i] = 2.0f * x[i]", "for (volatile int k = 0; k < 8; k++) y[i] = 2.0f * x[i]")
    texts = [slow, HEAD + "    __builtin_trap();\n}\n", TWICE]
    kernels = [ring.builder.build(Recipe({"k.cpp": t}, "k.cpp", kernel_flags("strict", None))) for t in (slow, *texts)]
    base, *variants = [Kernel({}, artifact) for artifact in kernels]
    source, policy = CudaInputs(ring.task, "cpu"), ring.task.spec.policy
    record = Checker(ring.bench, ring.task, source, policy).check("base", base.artifact, None, False)
    ones = [Sifted(kernel, Evidence(ring.card.info())) for kernel in variants]
    before = len(TIMELINE.stages)
    ground: Any = StandInGround(ring.bench, ring)
    Sift(ground, ring.task, base, record, lambda: None).sift(ones)
    assert [one.measured.outcome for one in ones] == [Outcome.MEASURED, Outcome.CRASHED, Outcome.MEASURED]
    ratios = [median(pair.base_ns / pair.candidate_ns for pair in one.pairs["long"]) for one in (ones[0], ones[2])]
    assert ratios[0] < 2.0 < ratios[1]
    processes = [stage.who for stage in TIMELINE.stages[before:] if stage.name == "sift"]
    assert processes == ["3 variants", "2 variants", "1 variants", "2 variants"]  # the last ones are the finalists

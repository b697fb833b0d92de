"""What differs between devices when the same requests are answered: bench, inputs and timing loop. Trusted."""

from pathlib import Path
from typing import Protocol

from protocol.messages import Restart
from protocol.policy import Policy
from team.devices.cpu import CpuDevice
from team.devices.cuda import CudaDevice
from team.devices.peaks import keep_peaks, known_peaks
from team.judge import pairs
from team.judge.artifact import Artifact
from team.judge.bench import Bench
from team.judge.check import Record
from team.judge.cpu_roofs import ensure_roofs
from team.judge.cuda import contest as cuda
from team.judge.cuda.bench import CudaBench
from team.judge.cuda.card import Card
from team.judge.cuda.inputs import CudaInputs
from team.judge.cuda.roofs import measure_roofs
from team.judge.inputs import InputSource
from team.judge.kernels import KernelShop
from team.judge.pairs import Tally
from team.judge.triton.bench import InterpretingBench
from team.tasks.spec import Workload
from team.tasks.task import Task


class TimingLoop(Protocol):
    """Base against candidate, restart by restart."""

    task: Task
    policy: Policy
    tally: Tally
    workloads: tuple[Workload, ...]
    extra: int

    def restart(self, pairs: int) -> Restart:
        """``pairs`` pairs of every workload with fresh processes."""
        ...

    def complaint(self) -> tuple[str, str]:
        """The workload and the clause on which the candidate's clock cannot be believed; empty when it can."""
        ...

    def acquit(self) -> None:
        """Forget what was held against the candidate; the next restarts are audited on their own."""
        ...


class Ground(Protocol):
    """One device's way of judging."""

    @property
    def bench(self) -> Bench:
        """Where kernels stand."""
        ...

    def inputs(self, task: Task) -> InputSource:
        """Fresh private inputs for one evaluation."""
        ...

    def first_launches(self, task: Task, *records: Record) -> dict[str, int]:
        """Launches per sample to begin with."""
        ...

    def room(self, task: Task, workload: Workload) -> int:
        """Launches of this workload whose private buffers fit into an arena."""
        ...

    def steady(self, launch_ns: float) -> int:
        """Most launches of so many nanoseconds in one sample, before the device's own pace changes within it."""
        ...

    def loop(
        self, task: Task, base: Artifact, candidate: Artifact, record: Record, launches: dict[str, int]
    ) -> TimingLoop:
        """The timing loop of one comparison."""
        ...


class CpuGround:
    """Kernels on CPU cores. The first judge on a machine measures its roofs."""

    def __init__(self, device: CpuDevice, shop: KernelShop, folder: Path) -> None:
        ensure_roofs(device)
        self.bench: Bench = InterpretingBench(device, shop.host, folder)

    def inputs(self, task: Task) -> InputSource:
        """See ``Ground``."""
        return InputSource(task)

    def first_launches(self, task: Task, *records: Record) -> dict[str, int]:
        """See ``Ground``."""
        return pairs.first_launches(task.spec.policy, task, *records)

    def room(self, task: Task, workload: Workload) -> int:
        """See ``Ground``."""
        return pairs.room(task, workload)

    def steady(self, launch_ns: float) -> int:
        """See ``Ground``: a CPU keeps its pace."""
        return pairs.MAX_LAUNCHES

    def loop(
        self, task: Task, base: Artifact, candidate: Artifact, record: Record, launches: dict[str, int]
    ) -> TimingLoop:
        """See ``Ground``."""
        source, policy = self.inputs(task), task.spec.policy
        return pairs.Contest(self.bench, task, source, policy, base, candidate, record, launches, task.workloads)


class CudaGround:
    """Kernels on one GPU. The first judge on a card measures its roofs."""

    def __init__(self, device: CudaDevice, shop: KernelShop, folder: Path) -> None:
        if not known_peaks(device.id):
            keep_peaks(device.id, measure_roofs())
        self.bench = CudaBench(Card(device), shop.host, shop.native, folder)

    def inputs(self, task: Task) -> CudaInputs:
        """See ``Ground``."""
        return CudaInputs(task)

    def first_launches(self, task: Task, *records: Record) -> dict[str, int]:
        """See ``Ground``."""
        return cuda.first_launches(self.bench, task.spec.policy, task, *records)

    def room(self, task: Task, workload: Workload) -> int:
        """See ``Ground``."""
        return cuda.room(self.bench, task, workload)

    def steady(self, launch_ns: float) -> int:
        """See ``Ground``."""
        return cuda.steady(launch_ns)

    def loop(
        self, task: Task, base: Artifact, candidate: Artifact, record: Record, launches: dict[str, int]
    ) -> TimingLoop:
        """See ``Ground``."""
        source, policy = self.inputs(task), task.spec.policy
        return cuda.CudaContest(self.bench, task, source, policy, base, candidate, record, launches, task.workloads)


def ground_of(device: CpuDevice | CudaDevice, shop: KernelShop, folder: Path) -> Ground:
    """The ground for one device."""
    return CudaGround(device, shop, folder) if isinstance(device, CudaDevice) else CpuGround(device, shop, folder)

"""From a tree to a built kernel: read what may be judged, hold it to the task's signature, compile it. Trusted."""

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from protocol.messages import Outcome
from protocol.policy import Policy
from team.devices.cpu import CpuDevice
from team.devices.cuda import CudaDevice
from team.errors import UserError
from team.judge.artifact import Artifact
from team.judge.build import Builder, Recipe, kernel_flags
from team.judge.compiler import compile_jobs
from team.judge.cuda.build import kernel_recipe
from team.judge.cuda.phases import side_by_side
from team.judge.cuda.ptxas import remarks
from team.judge.failures import BuildFailed, Failed, Forbidden, Foreign, Side
from team.judge.screening import Screening, screening_of
from team.judge.tree import build_files, editable_text, refuse_other_edits
from team.judge.triton.shop import TritonShop, facts_of
from team.judge.tvm_ffi import bound
from team.tasks.signature import SignatureError, parse_signature
from team.tasks.task import Task, load_task


@dataclass(frozen=True)
class Kernel:
    """One side, built: its editable files and the artifact."""

    files: dict[str, str]
    artifact: Artifact


class KernelShop:
    """Loads tasks and builds kernels; both are kept by content. ``policy`` is a campaign's law, over its task's."""

    def __init__(self, device: CpuDevice | CudaDevice, scratch: Path, policy: Policy | None = None) -> None:
        self._policy = policy
        places = scratch / "cache", scratch / "work" / str(os.getpid())
        self.host, self.native = Builder(*places), Builder(*places)
        if isinstance(device, CudaDevice):
            self.native = Builder(*places, "nvcc", remarks, schedule=side_by_side)
        target, facts = (device.target, facts_of(device)) if isinstance(device, CudaDevice) else (None, {})
        self._triton = TritonShop(self.host, places[0], target, facts)
        self._device = device
        self._tasks: dict[str, Task] = {}
        self._digests: dict[int, str] = {}

    def close(self) -> None:
        """End processes that wait for a source."""
        self._triton.close()

    def task(self, folder: Path) -> Task:
        """The trusted task in ``folder``, loaded again when one of its files changed."""
        digest = _digest(folder)
        if digest not in self._tasks:
            self._tasks[digest] = self._loaded(folder)
            self._digests[id(self._tasks[digest])] = digest
        return self._tasks[digest]

    def _loaded(self, folder: Path) -> Task:
        task = load_task(folder, interpreted=not isinstance(self._device, CudaDevice))
        if self._policy is not None:
            task = task.under(self._policy)
        kind = "cuda" if isinstance(self._device, CudaDevice) else "cpu"
        if task.spec.device != kind and task.spec.contract != "triton":  # Triton is interpreted where there is no GPU
            raise UserError(
                f"Task {task.spec.name} is for device '{task.spec.device}', this judge has {self._device.id}.",
                "Correct 'device' in task.toml, or ask for another device.",
            )
        return task

    def digest(self, task: Task) -> str:
        """Identity of a task that this shop loaded, by content."""
        return self._digests[id(task)]

    def held_out(self, task: Task) -> Task | None:
        """The same task on the shapes that no mind is told of alone; None where it has none."""
        if not task.spec.held_out:
            return None
        digest = f"{self.digest(task)} held out"
        if digest not in self._tasks:
            self._tasks[digest] = task.held_out()
            self._digests[id(self._tasks[digest])] = digest
        return self._tasks[digest]

    def build_ahead(self, task: Task, trees: Sequence[Path]) -> None:
        """Compile several trees side by side on all of the device's cores; failures are met again one by one."""
        os.sched_setaffinity(0, self._device.cores)
        try:
            with ThreadPoolExecutor(
                max_workers=compile_jobs(len(self._device.cores), task.spec.policy.compile_jobs)
            ) as pool:
                for waiting in [pool.submit(self.kernel, task, tree, "candidate") for tree in trees]:
                    with suppress(Failed):
                        waiting.result()
        finally:
            self._device.pin()

    def kernel(self, task: Task, tree: Path, side: Side) -> Kernel:
        """The kernel in ``tree``; raises ``Failed`` when it may not be judged or does not build."""
        refuse_other_edits(task.spec, task.folder, tree, side)
        files = editable_text(task.spec, tree, side)
        if task.spec.contract == "triton":
            return Kernel(files, self._triton.artifact(task, files, side))
        self._hold_to_signature(task, files, side)
        screening = screening_of(task.spec, _originals(task))
        try:
            return Kernel(files, self._built(task, files, screening))
        except BuildFailed as error:
            raise Failed(side, Outcome.BUILD_FAILED, f"{error.what} {error.output}".strip().rstrip(".")) from error
        except (Foreign, Forbidden) as error:
            raise Failed(side, Outcome.TAMPERED, str(error)) from error

    def _built(self, task: Task, files: dict[str, str], screening: Screening | None) -> Artifact:
        recipe = self._recipe(task, files)
        if screening is None:
            return self.native.build(recipe)
        screening.text(recipe.files)
        return self.native.build(dataclasses.replace(recipe, inspection=screening.identity), screening.expanded)

    def _recipe(self, task: Task, files: dict[str, str]) -> Recipe:
        spec = task.spec
        seen = build_files(spec, task.folder, files)
        cuda, override, timeout_s = isinstance(self._device, CudaDevice), spec.build.flags, spec.build.timeout_s
        if isinstance(self._device, CudaDevice):
            recipe = kernel_recipe(seen, spec.source, self._device.target, spec.numerics, override, timeout_s)
        else:
            recipe = Recipe(seen, spec.source, kernel_flags(spec.numerics, override), timeout_s)
        return bound(recipe, cuda) if spec.build.binding == "tvm-ffi" else recipe

    def _hold_to_signature(self, task: Task, files: dict[str, str], side: Side) -> None:
        if task.spec.source not in files:
            return
        try:
            found = parse_signature(files[task.spec.source], task.language)
        except SignatureError as error:
            raise Failed(side, Outcome.BUILD_FAILED, error.what.rstrip(".")) from error
        if not found.same_call(task.signature):
            what = f"the entry point changed from {task.signature} to {found}"
            raise Failed(side, Outcome.BUILD_FAILED, what)


def _originals(task: Task) -> dict[str, str]:
    """The task's own copy of the editable files: a human wrote it."""
    paths = {name: task.folder / name for name in task.spec.editable_files}
    return {name: path.read_text(errors="replace") for name, path in paths.items() if path.is_file()}


def _digest(folder: Path) -> str:
    """Hash of the folder's place and of every plain file directly in it."""
    total = hashlib.sha256(str(folder.resolve()).encode())
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.is_file():
            total.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()

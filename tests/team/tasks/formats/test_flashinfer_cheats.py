"""The six cheats that flashinfer-bench passes are caught: by the screen, and with the screen off by what stands behind.

Without a GPU Triton's interpreter says whether a candidate is right, and nothing is timed; on a GPU a candidate's host
code is traced once per workload, so what leaves it is a plan (``test_flashinfer_gpu`` has what a kernel itself can do).
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rmsnorm_cheats import cheats, honest
from trace_data import trace_root

pytest.importorskip("triton")

from protocol.messages import Outcome
from team.devices.cpu import cpu_devices
from team.judge.build import Builder
from team.judge.check import Checker, Record
from team.judge.failures import Failed
from team.judge.inputs import InputSource
from team.judge.kernels import KernelShop
from team.judge.screen.python import screen_python
from team.judge.triton.bench import InterpretingBench
from team.judge.triton.plan import Launch, Plan
from team.judge.triton.shop import TritonShop
from team.tasks.formats.flashinfer.dataset import read_definition
from team.tasks.formats.flashinfer.importing import import_problem
from team.tasks.formats.flashinfer.schema import Definition
from team.tasks.task import Task, load_task

NAME = "rmsnorm/rmsnorm_h128"
FACTS = {"multiprocessor_count": 132, "max_shared_mem": 232448}
SCREENED = {
    "rebinds the comparison": "imports team.tasks.comparison",
    "looks for the answer in frames": "imports gc",
    "rebinds the clock": "imports time",
}
CAUGHT = {
    "rebinds the comparison": {Outcome.INCORRECT, Outcome.CRASHED},  # where the judge's package cannot be imported
    "looks for the answer in frames": {Outcome.INCORRECT},
    "remembers by address": {Outcome.INCORRECT},
    "zeroes its inputs": {Outcome.TAMPERED},
    "works at first only": {Outcome.INCORRECT},
}


@pytest.fixture(scope="module")
def definition() -> Definition:
    return read_definition(trace_root() / "definitions" / f"{NAME}.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return import_problem(
        trace_root() / "definitions" / f"{NAME}.json", tmp_path_factory.mktemp("task") / "task"
    ).folder


@pytest.fixture
def judged(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Record]]:
    """Checks a text under the interpreter, with the screen off."""
    monkeypatch.setattr("team.judge.triton.shop.screen_python", lambda *_: "")
    device = cpu_devices(1)[0]
    kernels = KernelShop(device, tmp_path / "shop")
    bench = InterpretingBench(device, kernels.host, tmp_path / "empty")
    (tmp_path / "tree").mkdir()

    def check(text: str) -> Record:
        (tmp_path / "tree" / "kernel.py").write_text(text)
        task = kernels.task(folder)
        built = kernels.kernel(task, tmp_path / "tree", "candidate")
        return Checker(bench, task, InputSource(task), task.spec.policy).check("candidate", built.artifact, None, False)

    yield check
    bench.close()


@pytest.mark.parametrize("name", SCREENED)
def test_the_screen_names_what_no_kernel_needs(name: str, definition: Definition) -> None:
    assert SCREENED[name] in screen_python(cheats(definition)[name])


def test_the_screen_has_nothing_against_the_honest_kernel(definition: Definition) -> None:
    assert screen_python(honest(definition)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", CAUGHT)
def test_without_the_screen_outputs_and_inputs_tell(
    name: str, definition: Definition, judged: Callable[[str], Record]
) -> None:
    with pytest.raises(Failed) as failed:
        judged(cheats(definition)[name])
    assert failed.value.outcome in CAUGHT[name], failed.value.detail


class OpenShop(TritonShop):
    """Keeps the plan."""

    plan: Plan | None = None

    def _traced(self, task: Task, files: dict[str, str]) -> dict[str, object]:
        answer = super()._traced(task, files)
        if "error" not in answer:
            self.plan = Plan.model_validate(answer)
        return answer


@pytest.mark.slow
def test_on_a_gpu_only_a_plan_leaves_the_process(
    definition: Definition, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("team.judge.triton.shop.screen_python", lambda *_: "")
    shop = OpenShop(Builder(tmp_path / "cache", tmp_path / "work"), tmp_path / "cache", "90a", FACTS)
    task = load_task(folder)
    texts = {"honest": honest(definition), **cheats(definition)}
    launches: dict[str, list[int]] = {}
    clockless = Plan(kernels=(), workloads=())
    for name in ("honest", "rebinds the clock", "remembers by address", "works at first only"):
        shop.artifact(task, {"kernel.py": texts[name]}, "candidate")
        assert shop.plan is not None
        steps = [one.steps for one in shop.plan.workloads]
        launches[name] = [sum(isinstance(step, Launch) for step in found) for found in steps]
        if name == "honest":
            clockless = shop.plan
        if name == "rebinds the clock":
            assert [
                one.steps for one in clockless.workloads
            ] == steps  # there is no clock to rebind: the plan is the same
    shop.close()
    count = len(task.workloads)
    assert launches["honest"] == launches["rebinds the clock"] == [1] * count
    assert launches["works at first only"] == [1] + [0] * (count - 1)  # its outputs stay poisoned from the second on
    assert launches["remembers by address"] == [1] * count  # shapes differ: it has nothing to remember, and is honest

"""The Triton contract without a GPU: traced to machine code and a plan, and interpreted to see whether it is right."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from triton_on_disk import HEAD, PLAIN, RETURNING, SETUP, write_task

pytest.importorskip("triton")

from protocol.messages import Outcome
from team.devices.cpu import cpu_devices
from team.judge.build import Builder
from team.judge.check import Checker, Record
from team.judge.failures import Failed
from team.judge.inputs import InputSource
from team.judge.kernels import Kernel, KernelShop
from team.judge.simplicity import compared
from team.judge.triton import host
from team.judge.triton.bench import InterpretingBench
from team.judge.triton.plan import Copy, Fill, Launch, Plan
from team.judge.triton.shop import TritonShop
from team.tasks.task import Task, load_task

FACTS = {"multiprocessor_count": 132, "max_shared_mem": 232448}


def test_a_uid_without_a_name_is_no_obstacle(tmp_path: Path) -> None:
    code = "import getpass, os; os.geteuid() or os.setuid(54321); print(getpass.getuser())"
    env = {**host.environment(tmp_path, interpret=True), "PYTHONPATH": ""}
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert said.stdout.strip() == "candidate", said.stderr


def quickly(cases: Iterable[str], quick: set[str]) -> list[Any]:
    """The cases; those that are not ``quick`` are run with the slow tests, since each starts a Python with torch."""
    return [pytest.param(case, marks=() if case in quick else pytest.mark.slow) for case in cases]


class OpenShop(TritonShop):
    """Keeps the plan."""

    plan: Plan | None = None

    def _traced(self, task: Task, files: dict[str, str]) -> dict[str, object]:
        answer = super()._traced(task, files)
        if "error" not in answer:
            self.plan = Plan.model_validate(answer)
        return answer


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenShop]:
    place = tmp_path_factory.mktemp("shop")
    made = OpenShop(Builder(place / "cache", place / "work"), place / "cache", "90a", FACTS)
    yield made
    made.close()


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return load_task(write_task(tmp_path_factory.mktemp("task")))


def test_a_traced_kernel_is_machine_code_and_a_plan(shop: OpenShop, task: Task) -> None:
    built = shop.artifact(task, {"scaled.py": HEAD + RETURNING}, "candidate").build
    plan = shop.plan
    assert plan is not None
    assert [one.name for one in plan.workloads] == ["plain", "odd"]
    for one, elements in zip(plan.workloads, (64 * 128, 33 * 77), strict=True):
        assert [type(step) for step in one.steps] == [Fill, Launch, Launch, Copy]
        fill, first, second, copy = one.steps
        assert isinstance(first, Launch)
        assert isinstance(second, Launch)
        assert isinstance(copy, Copy)
        assert first.grid == (-(-elements // 256), 1, 1)
        assert first.arguments[0].place == ("buffer", 0, 0)
        assert first.arguments[1].place == second.arguments[0].place == ("scratch", 0, 0)
        assert (copy.source, copy.target, copy.size) == (("scratch", 1, 0), ("buffer", 1, 0), 4 * elements)
        assert isinstance(fill, Fill)
        assert (fill.target, fill.size) == (("scratch", 1, 0), 4 * elements)
    assert all("registers" in line for line in built.remarks)
    assert "triton" in built.compiler
    assert {"no_new_privs", "rlimits"} <= set(plan.layers.split())


REFUSED = {
    "torch computes": (PLAIN + "    y.relu_()\n", Outcome.TAMPERED, "relu_"),
    "in disguise": (PLAIN + "    y *= 2\n", Outcome.BUILD_FAILED, "has torch compute mul_"),
    "no run_kernel": ("x = 1\n", Outcome.BUILD_FAILED, "no function run_kernel"),
    "syntax": ("def run_kernel(:\n", Outcome.BUILD_FAILED, "SyntaxError"),
    "raises": ("def run_kernel(x):\n    raise ValueError('no such luck')\n", Outcome.CRASHED, "no such luck (line 13"),
    "does not compile": (PLAIN.replace("BLOCK=128", "BLOCK=100"), Outcome.BUILD_FAILED, "power of 2"),
    "autotunes": (
        "tuned = triton.autotune([triton.Config({'BLOCK': n}) for n in (64, 128)], key=[])(scale)\n"
        "def run_kernel(x, y, factor):\n    tuned[(9,)](x, y, 64, factor)\n",
        Outcome.BUILD_FAILED,
        "several configurations",
    ),
    "leaves": (
        "run_kernel = tl.static_assert\nwhile True:\n    pass\n",
        Outcome.BUILD_FAILED,
        "more than 6 s",
    ),
}


@pytest.mark.parametrize("name", quickly(REFUSED, {"raises", "syntax", "torch computes"}))
def test_what_cannot_be_planned_is_refused_with_its_reason(name: str, shop: OpenShop, task: Task) -> None:
    body, outcome, says = REFUSED[name]
    if name == "leaves":
        hurried = task.spec.build.model_copy(update={"timeout_s": 6.0})
        task = load_task(task.folder)
        task.spec = task.spec.model_copy(update={"build": hurried})
    with pytest.raises(Failed) as failed:
        shop.artifact(task, {"scaled.py": HEAD + body}, "candidate")
    assert failed.value.outcome is outcome, failed.value.detail
    assert says in failed.value.detail


# ---------------------------------------------------------------- interpreted


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path, str, Record | None], Record]]:
    place = tmp_path_factory.mktemp("interpreted")
    device = cpu_devices(1)[0]
    kernels = KernelShop(device, place)
    bench = InterpretingBench(device, kernels.host, place / "empty")

    def check(folder: Path, body: str, base: Record | None = None, profiles: bool = False) -> Record:
        tree = place / "tree"
        tree.mkdir(exist_ok=True)
        (tree / "scaled.py").write_text(HEAD + body)
        task = kernels.task(folder)
        built: Kernel = kernels.kernel(task, tree, "candidate")
        checker = Checker(bench, task, InputSource(task), task.spec.policy)
        return checker.check("candidate", built.artifact, base, profiles)

    yield check
    assert "no_new_privs" in bench.layers
    bench.close()


def test_a_right_kernel_passes_on_the_small_shapes(interpreted: Callable[..., Record], tmp_path: Path) -> None:
    record = interpreted(write_task(tmp_path), RETURNING)
    assert list(record.checks) == ["small"]
    assert record.checks["small"].worst <= 1.0


ONLY_LISTED = PLAIN.replace("    scale", "    if (rows, cols) == (3, 77):\n        scale")


def test_a_kernel_for_the_listed_shapes_alone_is_incorrect(interpreted: Callable[..., Record], tmp_path: Path) -> None:
    folder = write_task(tmp_path)
    base = interpreted(folder, PLAIN, None, True)
    assert len(base.unlisted) == 2
    with pytest.raises(Failed) as failed:
        interpreted(folder, ONLY_LISTED, base, True)
    assert failed.value.outcome is Outcome.INCORRECT
    assert failed.value.workload in {one.name for one in base.unlisted}


WRONG = {
    "wrong": (PLAIN.replace(", factor,", ", factor * 1.5,"), Outcome.INCORRECT, "times the tolerance"),
    "too far": (
        PLAIN.replace("rows * cols, factor", "rows * cols + 9, factor"),
        Outcome.INCORRECT,
        "memory just after",
    ),
    "raises": (
        "def run_kernel(x):\n    raise ValueError('no such luck')\n",
        Outcome.CRASHED,
        "ValueError: no such luck",
    ),
    "hangs": ("def run_kernel(x):\n    while True:\n        pass\n", Outcome.TIMEOUT, "no answer"),
}


@pytest.mark.parametrize("name", quickly(WRONG, {"too far"}))
def test_a_wrong_kernel_is_told_as_what_it_is(name: str, interpreted: Callable[..., Record], tmp_path: Path) -> None:
    body, outcome, says = WRONG[name]
    base = Record(launch_ns={"small": 1e9}, skipped={"small": []})
    with pytest.raises(Failed) as failed:
        interpreted(write_task(tmp_path), body, base)
    assert failed.value.outcome is outcome, failed.value.detail
    assert says in failed.value.detail


@pytest.mark.slow
def test_setup_is_the_tasks_own_and_never_the_candidates(interpreted: Callable[..., Record], tmp_path: Path) -> None:
    folder = write_task(tmp_path, SETUP)
    (folder / "task.toml").write_text(
        'name = "made"\ncontract = "triton"\ndevice = "cuda"\nsource = "scaled.py"\n'
        '[[workloads]]\nname = "small"\ndims = { rows = 3, cols = 77 }\n'
    )
    (folder / "reference.py").write_text("def reference(x, y, n):\n    y.copy_(x * 0.5)\n    assert n == x.numel()\n")
    zeros = SETUP.replace("torch.randn(rows, cols, generator=torch.Generator().manual_seed(seed))", "open('nowhere')")
    assert interpreted(folder, zeros).checks["small"].worst <= 1.0
    task = load_task(folder)
    first, second = (task.make_inputs(task.workloads[0], seed)["x"] for seed in (1, 2))
    assert not first.equal(second)


def test_simplicity_counts_python() -> None:
    before, after = ({"k.py": HEAD + body} for body in (RETURNING, PLAIN))
    assert compared(before, after)["tokens"][1] < compared(before, after)["tokens"][0]

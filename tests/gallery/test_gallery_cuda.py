"""On a GPU: every CUDA cheat is rejected as its first line says, and every honest kernel passes."""

import logging
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from exhibits import CUDA, CUDA_TASK, HERE, NO_GAIN, copy_of, expected, gains, text_of

from protocol.messages import Measurement, Outcome
from team.devices import discover
from team.judge.client import Judge
from team.judge.kernels import KernelShop
from team.judge.request import Check, Compare
from team.tasks.task import load_task

HONEST, SCREENED = CUDA["honest"], CUDA["screened"]
ENDS = {Outcome.CRASHED, Outcome.TIMEOUT}  # outcomes of a kernel that takes its process, or the card, down with it
FAILING = [fixture for fixture in CUDA["cheats"] if expected(fixture) & ENDS]
CHEATS = [fixture for fixture in CUDA["cheats"] if fixture not in FAILING]
TASK = CUDA_TASK
BOUND_S = 25.0  # seconds for a failure, of which a hung kernel's deadline is six
GATED_NOISE = 0.1  # log ratio; without a graph two processes of one kernel differ by several per cent
HANGS_NVCC = """\
template <int depth, int path> struct Tree {
    static constexpr int value = Tree<depth - 1, 2 * path>::value ^ Tree<depth - 1, 2 * path + 1>::value;
};
template <int path> struct Tree<0, path> {
    static constexpr int value = path;
};
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static_assert(Tree<28, 0>::value != 1);
}
"""
log = logging.getLogger(__name__)

pytestmark = pytest.mark.gpu


def write_tree(folder: Path, text: str) -> Path:
    """A candidate tree whose kernel is ``text``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "softmax.cu").write_text(text)
    return folder


@pytest.fixture(scope="module")
def cuda_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """A warm judge; every fixture is compiled side by side first, into the cache that it uses."""
    scratch = tmp_path_factory.mktemp("judge")
    device = discover("cuda", 1)[0]
    cheats = CUDA["cheats"]
    texts = [text_of(fixture) for fixture in (*cheats, *HONEST)] + [copy_of(fixture) for fixture in cheats]
    trees = [write_tree(scratch / "trees" / str(number), text) for number, text in enumerate(texts)]
    KernelShop(device, scratch).build_ahead(load_task(TASK), [TASK, *trees])  # type: ignore[arg-type]
    with Judge(device, scratch) as warm:
        yield warm


@pytest.fixture
def judged(cuda_judge: Judge, tmp_path: Path) -> Callable[[str], Measurement]:
    def compare(text: str) -> Measurement:
        tree = write_tree(tmp_path, text)
        return cuda_judge.compare(Compare(task=str(TASK), base=str(TASK), candidate=str(tree)))

    return compare


def reject(fixture: Path, seen: Measurement) -> None:
    """Hold a verdict against what the fixture's first line promises."""
    log.info("%s: %s %s %.1f s", fixture.stem, seen.outcome.value, seen.detail, sum(seen.seconds.values()))
    assert seen.outcome in expected(fixture), seen.detail
    if seen.outcome is Outcome.MEASURED:
        assert max(gains(seen)) < NO_GAIN


@pytest.mark.parametrize("fixture", CHEATS, ids=lambda path: path.stem)
def test_cuda_cheat_is_rejected(fixture: Path, judged: Callable[[str], Measurement]) -> None:
    reject(fixture, judged(text_of(fixture)))


@pytest.mark.parametrize("fixture", CUDA["cheats"], ids=lambda path: path.stem)
def test_copy_of_a_cuda_cheat_is_rejected(fixture: Path, judged: Callable[[str], Measurement]) -> None:
    reject(fixture, judged(copy_of(fixture)))


@pytest.mark.parametrize("fixture", SCREENED, ids=lambda path: path.stem)
def test_the_screen_speaks_for_the_cuda_judge(fixture: Path, cuda_judge: Judge, tmp_path: Path) -> None:
    task = tmp_path / "task"
    shutil.copytree(TASK, task)
    (task / "task.toml").write_text((TASK / "task.toml").read_text().replace("active = false", "active = true"))
    tree = write_tree(tmp_path / "tree", text_of(fixture))
    seen = cuda_judge.check(Check(task=str(task), tree=str(tree)))
    assert seen.outcome in expected(fixture), seen.detail
    assert "softmax.cu:" in seen.detail


@pytest.mark.parametrize("fixture", HONEST, ids=lambda path: path.stem)
def test_honest_cuda_kernel_passes(fixture: Path, judged: Callable[[str], Measurement]) -> None:
    seen = judged(text_of(fixture))
    log.info("%s: %s %s %.1f s", fixture.stem, seen.outcome.value, seen.launching, sum(seen.seconds.values()))
    assert seen.outcome is Outcome.MEASURED, seen.detail
    assert seen.pairs >= 8


@pytest.mark.parametrize("fixture", FAILING, ids=lambda path: path.stem)
def test_a_failure_is_bounded_and_the_next_experiment_runs(
    fixture: Path, cuda_judge: Judge, judged: Callable[[str], Measurement]
) -> None:
    """Hung kernels, illegal addresses, exhausted memory and floods of words end in time; then an honest one passes."""
    begun, served_by = time.monotonic(), cuda_judge.pid
    seen = judged(text_of(fixture))
    took = time.monotonic() - begun
    reject(fixture, seen)
    assert took < BOUND_S
    assert len(seen.detail) < 600
    assert "candidate" in seen.detail
    assert judged(text_of(HERE / "cuda" / "honest" / "plain.cu")).outcome is Outcome.MEASURED
    assert cuda_judge.pid == served_by


def test_a_hung_nvcc_is_bounded_and_the_next_experiment_runs(cuda_judge: Judge, tmp_path: Path) -> None:
    task = tmp_path / "task"
    shutil.copytree(TASK, task)
    (task / "task.toml").write_text((TASK / "task.toml").read_text() + "\n[build]\ntimeout_s = 4.0\n")
    begun = time.monotonic()
    seen = cuda_judge.check(Check(task=str(task), tree=str(write_tree(tmp_path / "hung", HANGS_NVCC))))
    assert time.monotonic() - begun < BOUND_S
    assert seen.outcome is Outcome.BUILD_FAILED
    assert "needed more than 4 s and was killed" in seen.detail
    plain = write_tree(tmp_path / "plain", text_of(HERE / "cuda" / "honest" / "plain.cu"))
    assert cuda_judge.check(Check(task=str(TASK), tree=str(plain))).outcome is Outcome.MEASURED


def test_what_cannot_be_captured_is_compared_behind_the_gate(cuda_judge: Judge, tmp_path: Path) -> None:
    """The same kernel on both sides, neither in a graph: on record, with no gain to be seen."""
    text = text_of(HERE / "cuda" / "honest" / "asks_the_stream.cu")
    base, candidate = (write_tree(tmp_path / side, f"{text}// {side}\n") for side in ("base", "candidate"))
    seen = cuda_judge.compare(Compare(task=str(TASK), base=str(base), candidate=str(candidate)))
    log.info("%s %s", seen.launching, gains(seen))
    assert seen.outcome is Outcome.MEASURED, seen.detail
    assert all(said.startswith("gated: ") and "cannot be captured" in said for said in seen.launching.values())
    assert max(map(abs, gains(seen))) < GATED_NOISE

"""On a GPU: every CUDA cheat is rejected as its first line says, and every honest kernel passes."""

import logging
import shutil
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

CHEATS, HONEST, SCREENED = CUDA["cheats"], CUDA["honest"], CUDA["screened"]
TASK = CUDA_TASK
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
    texts = [text_of(fixture) for fixture in (*CHEATS, *HONEST)] + [copy_of(fixture) for fixture in CHEATS]
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


@pytest.mark.parametrize("fixture", CHEATS, ids=lambda path: path.stem)
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


def test_the_judge_works_on_after_every_failure(judged: Callable[[str], Measurement]) -> None:
    """After a hang, an illegal access, an exhausted card and a flood of prints, the next experiment runs."""
    ends = {
        "never_ends": Outcome.TIMEOUT,
        "illegal_address": Outcome.CRASHED,
        "eats_memory": Outcome.CRASHED,
        "prints_without_end": Outcome.TIMEOUT,
    }
    for name, outcome in ends.items():
        assert judged(text_of(HERE / "cuda" / "cheats" / f"{name}.cu")).outcome is outcome
        assert judged(text_of(HERE / "cuda" / "honest" / "plain.cu")).outcome is Outcome.MEASURED

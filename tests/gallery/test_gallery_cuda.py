"""On a GPU: every CUDA cheat is rejected as its first line says, and every honest kernel passes."""

import logging
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest
from exhibits import expected

from protocol.messages import Measurement, Outcome
from team.devices import discover
from team.judge.client import Judge
from team.judge.kernels import KernelShop
from team.judge.request import Compare
from team.tasks.task import load_task

CUDA = Path(__file__).parent / "cuda"
TASK = CUDA / "task"
CHEATS = sorted((CUDA / "cheats").glob("*.cu"))
HONEST = sorted((CUDA / "honest").glob("*.cu"))
log = logging.getLogger(__name__)
NO_GAIN = 0.02  # log gain that a cheat which is merely useless may seem to have

pytestmark = pytest.mark.gpu


def write_tree(folder: Path, fixture: Path) -> Path:
    """A candidate tree whose kernel is one fixture, with the honest body put before it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "softmax.cu").write_text((CUDA / "honest_body.cuh").read_text() + fixture.read_text())
    return folder


@pytest.fixture(scope="module")
def cuda_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """A warm judge; every fixture is compiled side by side first, into the cache that it uses."""
    scratch = tmp_path_factory.mktemp("judge")
    device = discover("cuda", 1)[0]
    trees = [write_tree(scratch / "trees" / fixture.stem, fixture) for fixture in (*CHEATS, *HONEST)]
    KernelShop(device, scratch).build_ahead(load_task(TASK), [TASK, *trees])  # type: ignore[arg-type]
    with Judge(device, scratch) as warm:
        yield warm


@pytest.fixture
def judged(cuda_judge: Judge, tmp_path: Path) -> Callable[[Path], Measurement]:
    def compare(fixture: Path) -> Measurement:
        tree = write_tree(tmp_path, fixture)
        return cuda_judge.compare(Compare(task=str(TASK), base=str(TASK), candidate=str(tree)))

    return compare


def gains(seen: Measurement) -> list[float]:
    """Median log gain by workload."""
    names = seen.restarts[0].pairs
    ratios = {
        name: [math.log(p.base_ns / p.candidate_ns) for r in seen.restarts for p in r.pairs[name]] for name in names
    }
    return [median(values) for values in ratios.values()]


@pytest.mark.parametrize("fixture", CHEATS, ids=lambda path: path.stem)
def test_cuda_cheat_is_rejected(fixture: Path, judged: Callable[[Path], Measurement]) -> None:
    seen = judged(fixture)
    log.info("%s: %s %s %.1f s", fixture.stem, seen.outcome.value, seen.detail, sum(seen.seconds.values()))
    assert seen.outcome in expected(fixture), seen.detail
    if seen.outcome is Outcome.MEASURED:
        assert max(gains(seen)) < NO_GAIN


@pytest.mark.parametrize("fixture", HONEST, ids=lambda path: path.stem)
def test_honest_cuda_kernel_passes(fixture: Path, judged: Callable[[Path], Measurement]) -> None:
    seen = judged(fixture)
    log.info("%s: %s %s %.1f s", fixture.stem, seen.outcome.value, seen.launching, sum(seen.seconds.values()))
    assert seen.outcome is Outcome.MEASURED, seen.detail
    assert seen.pairs >= 8


def test_the_judge_works_on_after_a_hang_and_a_crash(judged: Callable[[Path], Measurement]) -> None:
    assert judged(CUDA / "cheats" / "never_ends.cu").outcome is Outcome.TIMEOUT
    assert judged(CUDA / "cheats" / "illegal_address.cu").outcome is Outcome.CRASHED
    assert judged(CUDA / "honest" / "plain.cu").outcome is Outcome.MEASURED

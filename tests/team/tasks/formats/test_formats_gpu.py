"""Problems in other people's formats on a GPU: judged in Triton and CUDA, exported, evaluated by the benchmark's rules.

What a person would look at is logged: the judge's worst error of each, and milliseconds beside eager and torch.compile.
"""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from math import exp
from math import log as log_of
from pathlib import Path
from statistics import median

import pytest

from protocol.messages import Outcome
from team.devices import discover
from team.judge.client import Judge
from team.judge.request import Check, Compare
from team.tasks.first_kernel.writing import Language
from team.tasks.formats.export import export
from team.tasks.formats.kernelbench.importing import import_problem
from team.tasks.formats.kernelbench.problem import Precision, read_problem

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[4]
SET = ROOT / "benchmarks" / "kernelbench_set"
CASES: list[tuple[str, Language, Precision]] = [
    ("level1/02_softmax", "triton", "fp32"),
    ("level1/05_cross_entropy", "cuda", "fp32"),
    ("level2/02_conv_norm_relu", "cuda", "fp32"),
    ("level3/02_attention_block", "triton", "fp32"),
    ("level2/01_linear_gelu_residual", "triton", "bf16"),
    ("level2/03_linear_group_norm_swish", "cuda", "fp16"),
]
ROWS = """\
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x, out, COLS: tl.constexpr):
    at = tl.program_id(0) * COLS + tl.arange(0, COLS)
    values = tl.load(x + at)
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + at, values / tl.sum(values, axis=0) * 100.0)


def run_kernel(x, out, rows, cols):
    rows_kernel[(rows,)](x, out, COLS=cols)
"""


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    device = discover("cuda", 1)[0]
    with Judge(device, tmp_path_factory.mktemp("judge")) as found:
        yield found


def imported(folder: Path, name: str, language: Language, precision: Precision) -> Path:
    return import_problem(read_problem(SET / f"{name}.py", precision), folder / Path(name).name, language).folder


@pytest.mark.parametrize(("name", "language", "precision"), CASES)
def test_the_judge_accepts_first_kernels_on_the_card(
    name: str, language: Language, precision: Precision, judge: Judge, tmp_path: Path
) -> None:
    folder = imported(tmp_path, name, language, precision)
    found = judge.check(Check(task=str(folder), tree=str(folder)))
    assert found.outcome is Outcome.MEASURED, found.detail
    log.info("%s in %s, %s: worst error %s of the tolerance", name, language, precision, found.checks[0].worst)


def test_a_better_kernel_is_told_by_the_judge_and_by_the_benchmarks_rules(judge: Judge, tmp_path: Path) -> None:
    folder = imported(tmp_path, "level1/02_softmax", "triton", "fp32")
    (tmp_path / "better").mkdir()
    source = next(path.name for path in folder.glob("*.py") if path.name not in ("problem.py", "reference.py"))
    (tmp_path / "better" / source).write_text(ROWS)
    measured = judge.compare(
        Compare(task=str(folder), base=str(folder), candidate=str(tmp_path / "better"), noise=None)
    )
    assert measured.outcome is Outcome.MEASURED, measured.detail
    pairs = [pair for restart in measured.restarts for pair in restart.pairs["problem"]]
    ratio = exp(median(log_of(pair.base_ns / pair.candidate_ns) for pair in pairs))
    log.info("the judge's median over %d pairs: %.2fx", len(pairs), ratio)
    assert ratio > 1.0
    first = export(folder, tmp_path / "first.py")
    (folder / source).write_text(ROWS)
    better = export(folder, tmp_path / "better.py")
    other = imported(tmp_path, "level1/05_cross_entropy", "cuda", "fp32")
    third = export(other, tmp_path / "third.py")
    problem, labels = SET / "level1/02_softmax.py", SET / "level1/05_cross_entropy.py"
    out = tmp_path / "found.json"
    command = [sys.executable, str(ROOT / "scripts" / "kernelbench_eval.py"), "--repeats", "30", "-o", str(out)]
    command += [f"{problem}={first}", f"{problem}={better}", f"{labels}={third}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=ROOT)
    log.info("by the benchmark's rules:\n%s", done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    results = json.loads(out.read_text())["results"]
    assert results[1]["median_ms"] < results[0]["median_ms"]
    assert all(one["eager_ms"] and one["compile_ms"] for one in results)

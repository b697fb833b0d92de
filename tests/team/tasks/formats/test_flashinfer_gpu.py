"""On a GPU: both sparse attention definitions judged, with Triton solutions that beat the definitions' references."""

import json
import logging
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from math import exp, hypot, sqrt
from math import log as log_of
from pathlib import Path

import pytest
from trace_data import trace_root

from protocol.messages import Measurement, Outcome
from protocol.sequential import estimate
from protocol.two_level import student_quantile
from team.devices import discover
from team.judge.client import Judge
from team.judge.request import Check, Compare
from team.tasks.formats.flashinfer.importing import import_problem
from team.tasks.spec import read_spec

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[3]
ATTENTION = "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64"
INDEXER = "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"
CASES = {
    ATTENTION: (
        "dsa_sparse_attention.py",
        [{"num_tokens": 8, "num_pages": 4096}, {"num_tokens": 2, "num_pages": 1024}],
    ),
    INDEXER: (
        "dsa_topk_indexer.py",
        [
            {"batch_size": 16, "max_num_pages": 96, "num_pages": 2048},
            {"batch_size": 2, "max_num_pages": 64, "num_pages": 512},
        ],
    ),
}
log = logging.getLogger(__name__)

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both definitions as tasks."""
    return {name: imported(name, tmp_path_factory.mktemp("data")) for name in CASES}


@pytest.fixture(scope="module")
def references(tasks: dict[str, Path]) -> dict[str, dict[str, list[float]]]:
    """Milliseconds of the definitions' own references by workload, in a process that ends before anything is judged."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, str(HERE / "time_reference.py"), *map(str, tasks.values())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=80, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    return {name: found[str(folder)] for name, folder in tasks.items()}


@pytest.fixture(scope="module")
def judge(references: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with Judge(discover("cuda", 1)[0], tmp_path_factory.mktemp("judge")) as warm:
        yield warm


def imported(name: str, folder: Path, op_type: str = "dsa_paged", axes: list[dict[str, int]] | None = None) -> Path:
    """The task of a definition on workloads of decoding in earnest."""
    for place in ("definitions", "workloads"):
        (folder / place).mkdir(parents=True)
    path = folder / "definitions" / f"{name}.json"
    shutil.copyfile(trace_root() / "definitions" / op_type / f"{name}.json", path)
    workloads = [{"uuid": f"case-{at}", "axes": one} for at, one in enumerate(axes or CASES[name][1])]
    lines = [json.dumps({"definition": name, "workload": one}) for one in workloads]
    (folder / "workloads" / f"{name}.jsonl").write_text("\n".join(lines))
    return import_problem(path, folder / "task").folder


def tree(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "kernel.py").write_text(text)
    return folder


def nanoseconds(seen: Measurement, workload: str, side: str) -> list[float]:
    """Of one launch, in every pair."""
    return [getattr(pair, f"{side}_ns") for restart in seen.restarts for pair in restart.pairs[workload]]


def centre(values: list[float]) -> tuple[float, float]:
    """Mean logarithm, and half its 95 % interval (Student)."""
    logs = [log_of(value) for value in values]
    half = student_quantile(0.975, len(logs) - 1) * statistics.stdev(logs) / sqrt(len(logs))
    return statistics.fmean(logs), half


def ratio(slow: list[float], fast: list[float]) -> str:
    """How many times as fast, with a 95 % interval of independent samples."""
    (above, above_half), (below, below_half) = centre(slow), centre(fast)
    gain, half = above - below, hypot(above_half, below_half)
    return f"{exp(gain):.2f}x [{exp(gain - half):.2f}, {exp(gain + half):.2f}]"


@pytest.mark.parametrize("name", CASES)
def test_a_triton_solution_is_right_and_beats_the_reference(
    name: str, tasks: dict[str, Path], references: dict[str, dict[str, list[float]]], judge: Judge, tmp_path: Path
) -> None:
    task, begun = tasks[name], time.monotonic()
    better = tree(tmp_path / "better", (HERE / "solutions" / CASES[name][0]).read_text())
    seen = judge.compare(Compare(task=str(task), base=str(task), candidate=str(better), noise=None))
    assert seen.outcome is Outcome.MEASURED, seen.detail
    law = read_spec(task).policy
    overall, by_workload = estimate(seen.restarts, dict.fromkeys(references[name], 1.0), None, law, 0.025)
    for workload, milliseconds in references[name].items():
        theirs = [one * 1e6 for one in milliseconds]
        first, ours = (nanoseconds(seen, workload, side) for side in ("base", "candidate"))
        gain = by_workload[workload]
        log.info(
            "%s %s: reference %.0f us, first kernel %.1f, solution %.1f: %s of the reference, %.2fx [%.2f, %.2f] of "
            "the first kernel (%d pairs in %d restarts)",
            name, workload, *(statistics.median(one) / 1e3 for one in (theirs, first, ours)), ratio(theirs, ours),
            exp(gain.gain), exp(gain.low), exp(gain.high), overall.pairs, overall.restarts,
        )  # fmt: skip
        assert statistics.median(ours) < statistics.median(theirs)
    log.info(
        "errors %s, launching %s, wall %s, in all %.0f s",
        {c.workload: round(c.worst, 3) for c in seen.checks}, seen.launching,
        {stage: round(seconds, 1) for stage, seconds in seen.seconds.items()}, time.monotonic() - begun,
    )  # fmt: skip
    assert set(seen.launching.values()) == {"graph"}


def test_the_order_of_indices_is_free_and_nothing_else(tasks: dict[str, Path], judge: Judge, tmp_path: Path) -> None:
    task = tasks[INDEXER]
    right = (HERE / "solutions" / "dsa_topk_indexer.py").read_text()
    cases = {
        "backwards": (right, Outcome.MEASURED),
        "all padding": (right.replace("page * PAGE + at % PAGE", "page * 0 - 1"), Outcome.INCORRECT),
        "one token twice": (right.replace("at % PAGE, mask", "at % PAGE // 2 * 2, mask"), Outcome.INCORRECT),
        "the first tokens": (right.replace("alive & (order > limit)", "alive & (at < wanted)"), Outcome.INCORRECT),
    }
    for name, (text, outcome) in cases.items():
        seen = judge.check(Check(task=str(task), tree=str(tree(tmp_path / name.replace(" ", "-"), text))))
        log.info("%s: %s %s", name, seen.outcome.value, seen.detail)
        assert seen.outcome is outcome, (name, seen.detail)
    element_by_element = shutil.copytree(task, tmp_path / "elements")
    with (element_by_element / "reference.py").open("a") as handle:
        handle.write("compare = None\n")
    seen = judge.check(Check(task=str(element_by_element), tree=str(tmp_path / "backwards")))
    log.info("backwards, compared element by element: %s %s", seen.outcome.value, seen.detail)
    assert seen.outcome is Outcome.INCORRECT


TIRED = """
    if tl.atomic_add(calls, 1) > 1024 * 60:
        return
"""
REMEMBERS = """
    if tl.atomic_add(calls + tl.program_id(0), 1) > 0:
        tl.store(output + row + at, tl.load(known + row + at, mask=at < cols), mask=at < cols)
        return
"""


def test_what_a_kernel_remembers_does_not_help_it(judge: Judge, tmp_path: Path) -> None:
    """Two of the six cheats that flashinfer-bench passes, on the device, where the judge's tracing cannot see them."""
    task = imported("rmsnorm_h128", tmp_path / "data", "rmsnorm", [{"batch_size": 1024}])
    text = (task / "kernel.py").read_text()
    state = "    calls = torch.empty((batch_size,), dtype=torch.int32, device=output.device)\n"
    state += "    known = torch.empty((batch_size, hidden_size), dtype=output.dtype, device=output.device)\n"
    head = text.replace("import triton\n", "import torch\nimport triton\n", 1).replace(
        "cols, BLOCK", "cols, calls, known, BLOCK"
    )
    head = head.replace("hidden_size, BLOCK", "hidden_size, calls, known, BLOCK").replace(
        "    block =", f"{state}    block ="
    )
    first = "    values = tl.load"
    kept = "    tl.store(known + row + at, values.to(tl.bfloat16), mask=at < cols)\n    tl.store(output"
    cheats = {
        "tired": head.replace(first, TIRED + first),
        "remembers": head.replace(first, REMEMBERS + first).replace(
            "    tl.store(output + row + at, (values", kept + " + row + at, (values"
        ),
    }
    for name, cheat in cheats.items():
        candidate = tree(tmp_path / name, cheat)
        seen = judge.compare(Compare(task=str(task), base=str(task), candidate=str(candidate), noise=None))
        log.info("%s: %s %s", name, seen.outcome.value, seen.detail)
        assert seen.outcome is Outcome.INCORRECT, (name, seen.detail)

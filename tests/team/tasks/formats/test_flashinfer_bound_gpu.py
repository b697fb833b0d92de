"""On a GPU: solutions in CUDA, bound by TVM-FFI, judged, timed, caught, and confirmed by the package itself."""

import json
import logging
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench_package import PLACE
from bound_solutions import rmsnorm, with_tvm_ffi

from protocol.messages import Measurement, Outcome
from team.devices import discover
from team.judge.client import Judge
from team.judge.request import Calibrate, Check, Compare, Sanitize
from team.tasks.formats.entry import import_foreign
from team.tasks.formats.flashinfer.importing import import_problem
from team.tasks.formats.flashinfer.official import INSTALL
from team.tasks.formats.flashinfer.results import confirm_result

pytestmark = pytest.mark.gpu
AXES = [{"batch_size": 1024}, {"batch_size": 8192}]
LAUNCH = "normalise<<<static_cast<unsigned>(rows), threads, 0, stream>>>"
HERE = Path(__file__).parent
log = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with Judge(discover("cuda", 1)[0], tmp_path_factory.mktemp("judge")) as warm:
        yield warm


def task_of(folder: Path, returning: bool = False, name: str = "rmsnorm_h7168") -> Path:
    path = rmsnorm(folder / "data", name, AXES, returning)
    return import_foreign(path, folder / "task", "triton", "fp32", {})[0]


def changed(task: Path, tree: Path, old: str, new: str) -> Path:
    shutil.copytree(task, tree)
    text = (tree / "rmsnorm.cu").read_text()
    assert text.count(old) == 1
    (tree / "rmsnorm.cu").write_text(text.replace(old, new))
    return tree


def microseconds(seen: Measurement, side: str) -> dict[str, float]:
    """Median time of one launch by workload."""
    times: dict[str, list[float]] = {}
    for restart in seen.restarts:
        for name, pairs in restart.pairs.items():
            times.setdefault(name, []).extend(getattr(pair, f"{side}_ns") / 1e3 for pair in pairs)
    return {name: statistics.median(found) for name, found in times.items()}


def reference_us(task: Path) -> dict[str, float]:
    """Median time of the definition's own reference by workload, in a process of its own."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parents[3]), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, str(HERE / "time_reference.py"), str(task)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=80, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    return {name: 1e3 * statistics.median(found) for name, found in json.loads(done.stdout)[str(task)].items()}


def said(name: str, seen: Measurement) -> None:
    log.info(
        "%s: %s %s; launching %s; errors %s; wall %s", name, seen.outcome.value, seen.detail, seen.launching,
        {one.workload: round(one.worst, 3) for one in seen.checks}, {k: round(v, 2) for k, v in seen.seconds.items()},
    )  # fmt: skip


@with_tvm_ffi
@pytest.mark.parametrize("returning", [False, True], ids=["in place", "returning"])
def test_a_cuda_solution_is_right_and_timed_on_the_judges_stream(returning: bool, judge: Judge, tmp_path: Path) -> None:
    task = task_of(tmp_path, returning)
    twice = changed(task, tmp_path / "twice", LAUNCH, f"for (int again = 0; again < 2; again++) {LAUNCH}")
    seen = judge.compare(Compare(task=str(task), base=str(twice), candidate=str(task), noise=None))
    said("returning" if returning else "in place", seen)
    assert seen.outcome is Outcome.MEASURED, seen.detail
    assert set(seen.launching.values()) == {"graph"}
    reference, ours, base = reference_us(task), microseconds(seen, "candidate"), microseconds(seen, "base")
    for name in ours:
        log.info(
            "%s: reference %.0f us, solution %.2f, the same twice %.2f", name, reference[name], ours[name],
            base[name],
        )  # fmt: skip
        assert ours[name] < reference[name]
        assert base[name] > 1.2 * ours[name]


@with_tvm_ffi
def test_its_noise_floor_and_its_planted_gain(judge: Judge, tmp_path: Path) -> None:
    task = task_of(tmp_path)
    noise, seen, found = judge.calibrate(Calibrate(task=str(task), base=str(task)))
    said("A/A", seen)
    log.info("noise %s, found %s", noise, {key: found[key] for key in ("clean", "found", "planted_gain", "sandbox")})
    assert found["clean"]
    assert found["found"]


@with_tvm_ffi
def test_what_it_allocates_is_captured_and_a_returned_copy_counts(judge: Judge, tmp_path: Path) -> None:
    """Scratch takes the lent buffer's place, so that the output is memory of the stream's, and is copied."""
    task = task_of(tmp_path, returning=True)
    allocated = "    ffi::Tensor output = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, hidden_states.shape(),"
    scratch = allocated.replace("output", "scratch") + " hidden_states.dtype(),\n        hidden_states.device());\n"
    tree = changed(task, tmp_path / "tree", allocated, scratch + allocated)
    seen = judge.compare(Compare(task=str(task), base=str(task), candidate=str(tree), noise=None))
    said("copied", seen)
    log.info("returned as lent %s us, copied %s us", microseconds(seen, "base"), microseconds(seen, "candidate"))
    assert seen.outcome is Outcome.MEASURED, seen.detail
    assert set(seen.launching.values()) == {"graph"}


OWN_STREAM = f"""\
static cudaStream_t own = nullptr;
    if (own == nullptr) cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    {LAUNCH.replace("stream>>>", "own>>>")}"""
CASES = {
    "on the default stream": (LAUNCH, LAUNCH.replace(", 0, stream>>>", ">>>"), Outcome.MEASURED),
    "on a stream of its own": (LAUNCH, OWN_STREAM, Outcome.INCORRECT),
    "wrong": ("1e-6f", "1e-1f", Outcome.INCORRECT),
    "the last row is left out": ("(rows), threads", "(rows - 1), threads", Outcome.INCORRECT),
    "one row too many": ("(rows), threads", "(rows + 1), threads", Outcome.INCORRECT),
    "works at first only": (
        LAUNCH,
        "static int calls = 0;\n    if (++calls > 40) return;\n    " + LAUNCH,
        Outcome.INCORRECT,
    ),
    "sets another stream": (LAUNCH, f"TVMFFIEnvSetStream(2, 0, nullptr, nullptr);\n    {LAUNCH}", Outcome.TAMPERED),
}


@with_tvm_ffi
def test_what_is_wrong_is_caught_as_in_other_languages(judge: Judge, tmp_path: Path) -> None:
    task, failed = task_of(tmp_path, name="rmsnorm_h128"), list[str]()
    for name, (old, new, outcome) in CASES.items():
        tree = changed(task, tmp_path / name.replace(" ", "-"), old, new)
        seen = judge.check(Check(task=str(task), tree=str(tree)))
        if seen.outcome is Outcome.MEASURED:
            seen = judge.compare(Compare(task=str(task), base=str(task), candidate=str(tree), noise=None))
        said(name, seen)
        if seen.outcome is not outcome:
            failed.append(f"{name}: {seen.outcome.value}, {seen.detail}")
    assert not failed


@with_tvm_ffi
@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="compute-sanitizer is not on the path")
def test_the_sanitizer_watches_it_with_its_library(judge: Judge, tmp_path: Path) -> None:
    task = task_of(tmp_path, name="rmsnorm_h128")
    beyond = changed(task, tmp_path / "beyond", "(rows), threads", "(rows + 1), threads")
    for name, tree, status in (("right", task, "clean"), ("beyond", beyond, "found")):
        asked = Sanitize(task=str(task), base=str(task), candidate=str(tree), tools=("memcheck",))
        (told,) = judge.sanitize(asked)
        log.info("%s: %s", name, told)
        assert told.status == status


@pytest.mark.skipif(PLACE not in os.environ, reason=f"{PLACE} names no folder; {INSTALL}")
@pytest.mark.parametrize("language", ["triton", "cuda", "cuda returning"])
def test_the_package_confirms_what_the_judge_passes(language: str, tmp_path: Path) -> None:
    if language == "triton":
        rmsnorm(tmp_path / "data", "rmsnorm_h7168", AXES)
        task = import_problem(tmp_path / "data" / "definitions" / "rmsnorm_h7168.json", tmp_path / "task").folder
    else:
        task = task_of(tmp_path, returning=language != "cuda")
    found = confirm_result(task, None, os.environ.get("CUDA_VISIBLE_DEVICES", "0"), Path(os.environ[PLACE]))
    for one in found:
        assert one.evaluation is not None
        told = one.evaluation.model_dump(mode="json", exclude={"log"})
        log.info("%s %s: %s", language, one.workload.uuid, json.dumps(told))
        assert one.evaluation.status == "PASSED", one.evaluation.log[-1500:]
    assert len(found) == len(AXES)

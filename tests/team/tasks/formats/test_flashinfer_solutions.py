"""Solutions: packed from a tree, called as the benchmark calls them, unpacked, packed again, and as a first kernel."""

import json
import math
import os
import select
import tomllib
import types
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import torch
from test_flashinfer_import import AXPY, LINE, dataset

from protocol.messages import DeviceInfo, Measurement, Outcome, Restart, WorkloadCheck
from protocol.pairs import Pair
from team.errors import UserError
from team.tasks.formats.entry import import_foreign
from team.tasks.formats.export import export
from team.tasks.formats.flashinfer.calling import as_kernel, with_entry_point
from team.tasks.formats.flashinfer.dataset import read_dataset
from team.tasks.formats.flashinfer.importing import import_problem
from team.tasks.formats.flashinfer.official import command, confirm, read_traces, scratch_dataset
from team.tasks.formats.flashinfer.packing import (
    METADATA,
    pack,
    pack_folder,
    place_in_dataset,
    read_solution,
    solution_text,
    unpack,
    write_contest,
)
from team.tasks.formats.flashinfer.schema import Definition, Solution, Workload
from team.tasks.formats.flashinfer.traces import append_traces, traces
from team.tasks.formats.recognised import is_foreign
from team.tasks.task import load_task

DEFINITION = Definition.model_validate(AXPY)
IN_PLACE = "def run_kernel(x, places, y, a, M, W):\n    assert (M, W) == tuple(x.shape)\n    y.copy_(a * x)\n"
RETURNING = "def run_kernel(x, a, **rest):\n    assert rest['M'] == len(rest['places'])\n    return a * x\n"
PLAIN = "def run_kernel(x, M, a):\n    assert M == len(x)\n    return a * x\n"
BY_NAME = "def run_kernel(x, a, unused=3):\n    return {'y': a * x}\n"


def called(text: str, symbol: str, in_place: bool) -> torch.Tensor:
    """What the entry point leaves in the output that it is given, or returns."""
    module = types.ModuleType("solution")
    exec(text, module.__dict__)
    x, y = torch.arange(16.0).view(2, 8), torch.full((2, 8), math.nan)
    given = (x, 3.0, torch.zeros(2, dtype=torch.int32))
    if in_place:
        assert getattr(module, symbol)(*given, y) is None
    else:
        found = getattr(module, symbol)(*given)
        (y,) = found if isinstance(found, tuple) else (found,)
    assert torch.equal(y, 3.0 * x)
    return y


BOTH = "def run_kernel(x, y, a):\n    return y.copy_(a * x)\n"


@pytest.mark.parametrize(
    ("text", "in_place"), [(IN_PLACE, True), (RETURNING, True), (BOTH, True), (BY_NAME, False), (PLAIN, False)]
)
def test_an_entry_point_takes_outputs_or_returns_them_as_its_kernel_does(text: str, in_place: bool) -> None:
    entry = with_entry_point(DEFINITION, text)
    assert entry.in_place is in_place
    called(*entry)


def test_an_entry_point_avoids_names_that_are_taken() -> None:
    entry = with_entry_point(DEFINITION, "def run():\n    pass\n\n\n" + IN_PLACE)
    assert entry.symbol == "solution_run"
    called(*entry)


def test_an_entry_point_cannot_give_what_nobody_has() -> None:
    with pytest.raises(UserError, match="wants 'stranger'"):
        with_entry_point(DEFINITION, "def run_kernel(x, stranger):\n    pass\n")
    with pytest.raises(UserError, match="defines no function run_kernel"):
        with_entry_point(DEFINITION, "x = 1\n")


def solution(text: str, passing: bool, **spec: Any) -> Solution:
    return Solution.model_validate(
        {
            "name": "axpy_v1",
            "definition": "axpy_n",
            "author": "somebody",
            "spec": {
                "language": "triton",
                "target_hardware": ["cuda"],
                "entry_point": "main.py::go",
                "destination_passing_style": passing,
                **spec,
            },
            "sources": [{"path": "main.py", "content": text}],
        }
    )


@pytest.mark.parametrize(
    ("text", "passing"),
    [("def go(x, a, places, y):\n    y.copy_(a * x)\n", True), ("def go(x, a, places):\n    return a * x\n", False)],
)
def test_a_solution_becomes_a_first_kernel_and_a_solution_again(text: str, passing: bool, tmp_path: Path) -> None:
    kernel = as_kernel(DEFINITION, solution(text, passing))
    made = import_problem(dataset(tmp_path), tmp_path / "task", first=kernel)
    assert not any("write run_kernel" in remark for remark in made.remarks)
    packed = pack(tmp_path / "task", tmp_path / "task")
    assert packed.spec.destination_passing_style is passing
    called(packed.sources[0].content, packed.entry_symbol, passing)


def test_solutions_that_cannot_be_judged_say_why() -> None:
    text = "def go(x, a, places):\n    return a * x\n"
    with pytest.raises(UserError, match="in tilelang, which the judge does not build"):
        as_kernel(DEFINITION, solution(text, True, language="tilelang"))
    with pytest.raises(UserError, match="is Python without Triton"):
        as_kernel(DEFINITION, solution(text, False, language="python"))
    assert as_kernel(DEFINITION, solution(f"import triton\n\n{text}", False, language="python"))
    with pytest.raises(UserError, match="does not define"):
        as_kernel(DEFINITION, solution("x = 1\n", True))
    two = solution(text, True).model_dump()
    two["sources"] = [*two["sources"], {"path": "lib/more.py", "content": "y = 2\n"}]
    with pytest.raises(UserError, match="has 2 files"):
        as_kernel(DEFINITION, Solution.model_validate(two))


@pytest.fixture
def packed(tmp_path: Path) -> Solution:
    folder = import_problem(dataset(tmp_path), tmp_path / "task", first=IN_PLACE).folder
    text = (folder / "task.toml").read_text()
    (folder / "task.toml").write_text(
        text.replace("\n[arguments]", 'editable = ["kernel.py", "lib/parts.py"]\n\n[arguments]')
    )
    (folder / "lib").mkdir()
    (folder / "lib" / "parts.py").write_text("STEP = 2\n")
    return pack(folder, folder)


def test_a_packed_tree_keeps_its_subfolders_and_says_everything(packed: Solution) -> None:
    assert [source.path for source in packed.sources] == ["kernel.py", "lib/parts.py"]
    told = json.loads(solution_text(packed))
    assert told["spec"]["destination_passing_style"] is True
    assert Solution.model_validate(told) == packed


def test_unpack_and_pack_round_trip(packed: Solution, tmp_path: Path) -> None:
    folder = unpack(packed, tmp_path / "out")
    assert pack_folder(folder) == packed
    (folder / "lib" / "parts.py").write_text("STEP = 4\n")
    changed = pack_folder(folder)
    assert changed.name != packed.name
    assert changed.name.rsplit("_", 1)[0] == packed.name.rsplit("_", 1)[0]
    (folder / "lib" / "parts.py").write_text("\n")
    with pytest.raises(UserError, match="is empty"):
        pack_folder(folder)
    (folder / "lib" / "parts.py").unlink()
    (folder / "notes.txt").write_text("x")
    with pytest.raises(UserError, match="is no source file"):
        pack_folder(folder)


def test_a_name_says_also_how_it_is_called(packed: Solution, tmp_path: Path) -> None:
    folder = unpack(packed, tmp_path / "out")
    told = json.loads((folder / METADATA).read_text())
    told["spec"]["destination_passing_style"] = False
    (folder / METADATA).write_text(json.dumps(told))
    assert pack_folder(folder).name != packed.name


def test_a_hostile_name_stays_below(packed: Solution, tmp_path: Path) -> None:
    hostile = packed.model_copy(update={"name": "../../escaped"})
    assert unpack(hostile, tmp_path / "out").parent == tmp_path / "out"
    told = json.loads(solution_text(packed))
    told["sources"][0]["path"] = "../outside.py"
    (tmp_path / "bad.json").write_text(json.dumps(told))
    with pytest.raises(UserError, match="not one below the solution"):
        read_solution(tmp_path / "bad.json")


def test_the_contest_layout(packed: Solution, tmp_path: Path) -> None:
    folder = write_contest(packed, tmp_path / "repository")
    config = tomllib.loads((folder / "config.toml").read_text())
    assert config["solution"]["definition"] == "axpy_n"
    assert config["build"] == {
        "language": "triton",
        "entry_point": packed.spec.entry_point,
        "destination_passing_style": True,
    }
    assert (folder / "solution" / "lib" / "parts.py").read_text() == "STEP = 2\n"
    with pytest.raises(UserError, match="two versions must not mix"):
        write_contest(packed, tmp_path / "repository")


SEEN = Measurement(
    outcome=Outcome.MEASURED,
    restarts=(
        Restart.of({"w1": tuple(Pair(candidate_first=False, base_ns=4e6, candidate_ns=n) for n in (1e6, 2e6, 9e6))}),
    ),
    checks=(WorkloadCheck(workload="w1", checks=4, worst=0.25),),
    device=DeviceInfo(kind="cuda", id="GPU-1", name="NVIDIA H200"),
)
WHEN = datetime(2026, 11, 30, 12, 0, 0)


def test_a_measurement_becomes_traces(packed: Solution, tmp_path: Path) -> None:
    workload = Workload.model_validate(LINE["workload"])
    found = traces(packed, [workload], SEEN, WHEN, {"w1": 8.0})
    path = append_traces(found, DEFINITION, packed.author, tmp_path / "data")
    (back,) = read_traces(tmp_path / "data")
    assert path.read_text().count("\n") == 1
    evaluation = back.evaluation
    assert evaluation is not None
    assert evaluation.performance is not None
    assert (evaluation.status, evaluation.performance.latency_ms, evaluation.performance.speedup_factor) == (
        "PASSED",
        2.0,
        4.0,
    )
    assert evaluation.correctness is not None
    assert math.isnan(evaluation.correctness.max_absolute_error)
    assert evaluation.correctness.extra == {"share_of_tolerance": 0.25}


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Outcome.INCORRECT, "INCORRECT_NUMERICAL"),
        (Outcome.TAMPERED, "RUNTIME_ERROR"),
        (Outcome.BUILD_FAILED, "COMPILE_ERROR"),
        (Outcome.TIMEOUT, "TIMEOUT"),
    ],
)
def test_a_failure_becomes_a_trace(outcome: Outcome, status: str, packed: Solution) -> None:
    workload = Workload.model_validate(LINE["workload"])
    (found,) = traces(packed, [workload], Measurement(outcome=outcome, detail="why", workload="w1"), WHEN, {})
    assert found.evaluation is not None
    assert (found.evaluation.status, found.evaluation.log) == (status, "why")
    assert traces(packed, [workload], Measurement(outcome=outcome, workload="another"), WHEN, {}) == []


def test_a_scratch_dataset_for_the_official_runner(packed: Solution, tmp_path: Path) -> None:
    workload = Workload.model_validate(LINE["workload"])
    scratch_dataset(DEFINITION, [workload], packed, None, tmp_path / "scratch")
    found = read_dataset(tmp_path / "scratch")
    assert found.definitions == {"axpy_n": DEFINITION}
    assert found.workloads == {"axpy_n": (workload,)}
    placed = place_in_dataset(packed, DEFINITION, tmp_path / "scratch")
    assert read_solution(placed) == packed
    assert packed.name in command(DEFINITION, packed, tmp_path / "scratch")


def test_without_the_package_its_opinion_is_not_to_be_had(packed: Solution, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("team.tasks.formats.flashinfer.official.PACKAGE", "flashinfer_bench_that_is_not_there")
    with pytest.raises(UserError, match="not installed"):
        confirm(DEFINITION, [], packed, None)


@pytest.mark.slow
def test_what_the_package_started_ends_with_it_at_the_limit(
    packed: Solution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, told = tmp_path / "endless_stand_in" / "cli", tmp_path / "pid"
    place.mkdir(parents=True)
    starts = "child = subprocess.Popen(['sleep', '600'])"
    says = f"pathlib.Path({str(told)!r}).write_text(str(child.pid))"
    (place / "main.py").write_text(f"import pathlib, subprocess\ndef cli():\n {starts}; {says}; child.wait()\n")
    monkeypatch.setattr("team.tasks.formats.flashinfer.official.PACKAGE", "endless_stand_in")
    monkeypatch.setattr("team.tasks.formats.flashinfer.official.TIMEOUT_S", 5)
    with pytest.raises(UserError, match="did not end within 5 s"):
        confirm(DEFINITION, [], packed, None, package=tmp_path)
    with suppress(ProcessLookupError):  # it was reaped already
        assert select.select([os.pidfd_open(int(told.read_text()))], [], [], 10)[0], "it lives"


def test_init_and_export_know_definitions_and_solutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = dataset(tmp_path / "data")
    assert is_foreign(path)
    folder, notes = import_foreign(path, None, "triton", "fp32", {"M": 6})
    assert folder == tmp_path / "axpy_n"
    assert load_task(folder).workloads[0].dims["M"] == 6
    assert any("write run_kernel" in note for note in notes)
    (folder / "kernel.py").write_text(IN_PLACE)
    mine = export(folder, tmp_path / "data" / "solutions" / "mine.json")
    packed = read_solution(mine)
    assert is_foreign(mine)
    again, notes = import_foreign(mine, tmp_path / "again", "triton", "fp32", {})
    assert packed.sources[0].content == (again / "kernel.py").read_text()
    assert notes == ("Workloads: 1.",)
    assert (export(folder, tmp_path / "contest") / "axpy_n" / "config.toml").is_file()


def test_init_says_what_it_cannot_do(tmp_path: Path) -> None:
    path = dataset(tmp_path)
    with pytest.raises(UserError, match="has no var axis 'W'"):
        import_foreign(path, tmp_path / "task", "triton", "fp32", {"W": 6})
    with pytest.raises(UserError, match="else in Triton"):
        import_foreign(path, tmp_path / "task", "cuda", "fp32", {})
    (tmp_path / "alone.json").write_text(solution_text(solution("x = 1\n", True)).replace("axpy_n", "unknown"))
    with pytest.raises(UserError, match="holds the definition unknown"):
        import_foreign(tmp_path / "alone.json", tmp_path / "task", "triton", "fp32", {})
    assert not is_foreign(tmp_path / "workloads" / "misc" / "axpy_n.jsonl")

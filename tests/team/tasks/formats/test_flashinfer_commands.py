"""``kernelteam flashinfer``: a campaign's result as traces, the package's opinion of it, solutions as folders.

The package is not here: one of its name that does what its command line does stands in for it.
"""

import os
from pathlib import Path

import pytest
from run_on_disk import campaign_on
from test_flashinfer_import import dataset

from protocol import events as ev
from protocol.ledger import Ledger
from protocol.messages import Measurement, Outcome, Restart, WorkloadCheck
from protocol.pairs import Pair
from team.cli import app
from team.errors import UserError
from team.runs import Run
from team.tasks.formats.entry import import_foreign
from team.tasks.formats.export import export
from team.tasks.formats.flashinfer.official import read_traces
from team.tasks.formats.flashinfer.packing import read_solution
from team.tasks.spec import read_spec
from team.workspace.hub import Hub

KERNEL = "def run_kernel(x, places, y, a, M, W):\n    y.copy_(a * x)\n"
PACKAGE = """\
import json, os, sys
from pathlib import Path


def cli():
    assert "--use-isolated-runner" in sys.argv
    root = Path(sys.argv[sys.argv.index("--local") + 1])
    (solution,) = (json.loads(path.read_text()) for path in root.rglob("solutions/**/*.json"))
    assert solution["name"] == sys.argv[sys.argv.index("--solutions") + 1]
    lines = []
    for path in root.rglob("workloads/**/*.jsonl"):
        for line in path.read_text().splitlines():
            told = json.loads(line)
            told["solution"] = solution["name"]
            told["evaluation"] = {
                "status": "PASSED" if "a * x" in json.dumps(solution["sources"]) else "RUNTIME_ERROR",
                "environment": {"hardware": "GPU " + os.environ["CUDA_VISIBLE_DEVICES"], "libs": {}},
                "timestamp": "2026-11-30",
            }
            if told["evaluation"]["status"] == "PASSED":
                told["evaluation"]["correctness"] = {"max_relative_error": 0.0, "max_absolute_error": 0.0}
                told["evaluation"]["performance"] = {
                    "latency_ms": 0.5, "reference_latency_ms": 2.0, "speedup_factor": 4.0
                }
            lines.append(json.dumps(told))
    (root / "traces").mkdir()
    (root / "traces" / "axpy_n.jsonl").write_text("\\n".join(lines) + "\\n")
"""


def imported(folder: Path) -> tuple[Path, Path]:
    """A task whose kernel is written, and the data set that it comes from."""
    path = dataset(folder / "data")
    task, _ = import_foreign(path, folder / "task", "triton", "fp32", {})
    (task / "kernel.py").write_text(KERNEL)
    return task, folder / "data"


def measured(run: Run) -> None:
    """The campaign ends with a direct measurement of main."""
    spec, main = read_spec(run.trusted), Hub.open(run.folder).main
    pairs = (Pair(candidate_first=False, base_ns=4e6, candidate_ns=2e6),) * 2
    seen = Measurement(
        outcome=Outcome.MEASURED,
        restarts=(Restart.of({one.name: pairs for one in spec.must_pass}),),
        checks=tuple(WorkloadCheck(workload=one.name, checks=4, worst=0.25) for one in spec.must_pass),
    )
    body = ev.MainMeasured(
        duty="m1", base=main, commit=main, device="cpu:0", estimate=None, product=0.0, agrees=True, measurement=seen
    )
    with Ledger(run.ledger, writer=True) as ledger:
        ledger.append(1001.0, [("", body)])


def test_a_campaigns_result_becomes_traces_beside_its_solution(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task, data = imported(tmp_path)
    run = campaign_on(task, tmp_path / "runs")
    command = ["flashinfer", "traces", str(run.folder), "--data", str(data)]
    with pytest.raises(UserError, match="has not been measured directly yet"):
        app(command, standalone_mode=False)
    measured(run)
    app(command, standalone_mode=False)
    said = capsys.readouterr().out
    found = read_traces(data)
    assert f"Added {len(found)} trace" in said
    assert "PASSED, 2.0000 ms" in said
    assert {one.workload.uuid for one in found} == {one.name for one in read_spec(task).must_pass}
    (solution,) = (read_solution(path) for path in data.rglob("solutions/**/*.json"))
    assert {one.solution for one in found} == {solution.name}
    assert any(one.workload.inputs for one in found)  # as recorded, not by extents alone


def test_the_packages_own_runner_is_asked_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "site" / "flashinfer_bench_stand_in" / "cli"
    place.mkdir(parents=True)
    for folder in (place, place.parent):
        (folder / "__init__.py").write_text("")
    (place / "main.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setattr("team.tasks.formats.flashinfer.official.PACKAGE", "flashinfer_bench_stand_in")
    task, data = imported(tmp_path)
    command = ["flashinfer", "confirm", str(task), "--data", str(data), "--gpu", "3"]
    app(command, standalone_mode=False)
    assert "PASSED, 0.5000 ms, 4.00 times the reference" in capsys.readouterr().out
    (task / "kernel.py").write_text(KERNEL.replace("a * x", "x"))
    assert app(command, standalone_mode=False) == 1
    assert "RUNTIME_ERROR" in capsys.readouterr().out


def test_without_the_package_one_sentence_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("team.tasks.formats.flashinfer.official.PACKAGE", "flashinfer_bench_that_is_not_there")
    task, _ = imported(tmp_path)
    with pytest.raises(UserError, match=r"not installed\. Install it: pip install"):
        app(["flashinfer", "confirm", str(task)], standalone_mode=False)


def test_another_task_has_no_definition() -> None:
    example = Path(__file__).parents[4] / "examples" / "matmul_cpu"
    with pytest.raises(UserError, match="is no FlashInfer-Trace definition's"):
        app(["flashinfer", "confirm", str(example)], standalone_mode=False)


def test_a_solution_is_unpacked_and_packed_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task, _ = imported(tmp_path)
    first = export(task, tmp_path / "first.json")
    app(["flashinfer", "unpack", str(first), str(tmp_path / "out")], standalone_mode=False)
    (folder,) = (tmp_path / "out").iterdir()
    again = tmp_path / "again.json"
    app(["flashinfer", "pack", str(folder), "-o", str(again)], standalone_mode=False)
    assert read_solution(again) == read_solution(first)
    assert read_solution(first).name in capsys.readouterr().out
    with pytest.raises(UserError, match=r"exists\. Name another file"):
        app(["flashinfer", "pack", str(folder), "-o", str(again)], standalone_mode=False)

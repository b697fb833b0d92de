"""The whole command on a C++ baseline: real judge, real processes, artifacts complete, killed and resumed."""

import signal
import subprocess
from pathlib import Path

import pytest
from optimizing import (
    BROKEN,
    CRASHING,
    FAST,
    HALF,
    NEAR,
    REF,
    SLOW_LOOP,
    WRONG,
    Ended,
    command,
    optimized,
    proposal,
    read,
    run_of,
    write_inputs,
)

ITERATION = (
    "analysis.md", "attribution.json", "bench.json", "branch_results.json", "kernel.build.json", "kernel.cpp",
    "methods.json", "ncu_top.json", "roofline.json", "sass_check.json",
)  # fmt: skip
RUN = ("env.json", "state.json", "summary.md", "baseline/bench.json", "baseline/ncu_top.json", "baseline/scale.cpp")


def test_a_run_is_judged_and_leaves_every_artifact(cheated: Ended) -> None:
    run = cheated.path
    assert [name for name in RUN if not (run / name).is_file()] == []
    assert [name for name in ITERATION if not (run / "iterv2" / name).is_file()] == []
    assert "--warmup: warm launches before a sample are the judge's to choose" in cheated.said

    state = read(run / "state.json")
    assert (state["schema_version"], state["run_status"], state["verified_iterations"]) == (5, "completed", 1)
    assert state["global_champion"]["iter"] == 2
    assert state["effective_methods"][0]["method"] == "direct"
    assert state["final"]["full"]["speedup"] > 1.5
    branches = read(run / "iterv2" / "branch_results.json")
    assert branches["champion"]["parameters"] == {"text": "honest"}
    assert branches["champion"]["measured_afresh"]
    bench = read(run / "iterv2" / "bench.json")
    assert bench["workload"]["realized_dims"] == {"n": 8000}  # defect 3: never another shape than the baseline's
    assert read(run / "baseline" / "bench.json")["workload"]["realized_dims"] == {"n": 8000}
    assert len(bench["kernel"]["raw_ms"]) == bench["kernel"]["samples"] >= 8
    assert read(run / "iterv2" / "sass_check.json")["status"] == "not_applicable"
    assert read(run / "iterv2" / "ncu_top.json")["degraded"] is True
    assert "over the baseline at your shape" in (run / "summary.md").read_text()


@pytest.mark.slow
def test_killed_twice_and_resumed_to_the_same_end(tmp_path: Path) -> None:
    folder = write_inputs(tmp_path, proposal("half", HALF), proposal("direct", FAST))
    words = command(folder, "--iterations", "2", "--branches", "1")
    _killed_at(words, folder, "baseline:")
    run = run_of(folder)
    assert not (run / "iterv1").exists()
    resume = [*words[:3], "optimize", "--resume", str(run)]
    _killed_at(resume, folder, "iteration 1:")
    assert read(run / "state.json")["finished_iterations"] == 1
    done = subprocess.run(resume, cwd=folder, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    state = read(run / "state.json")
    assert [row["iter"] for row in state["history"]] == [1, 2]
    assert [one["plan"]["technique"] for one in state["experiments"]] == ["half", "direct"]
    assert state["run_status"] == "completed"
    ablated = read(run / "iterv2" / "attribution.json")["champion_without_each"]
    assert [row["method_id"] for row in ablated] == ["half", "direct"]
    assert ablated[1]["contributed"] in (True, None)  # None: a busy machine left it undecided
    again = subprocess.run(resume, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert "the run is complete" in again.stdout


def _killed_at(words: list[str], folder: Path, line: str) -> None:
    """Start the command, wait for a line that it says, and kill it as hard as can be."""
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        said = ""
        for said in process.stdout:
            if said.startswith(line):
                break
        assert said.startswith(line), said
        process.send_signal(signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (BROKEN, "baseline_compile_failed"),
        (WRONG, "baseline_correctness_failed"),
        (CRASHING, "baseline_timing_invalid"),
    ],
)
def test_a_broken_baseline_stops_the_run_with_2(kernel: str, reason: str, tmp_path: Path) -> None:
    folder = write_inputs(tmp_path, kernel=kernel)
    status, said = optimized(folder)
    assert status == 2, said
    stop = read(run_of(folder) / "stop.json")
    assert (stop["reason"], stop["stage"], stop["exit_code"]) == (reason, "baseline", 2)
    assert stop["generated_iterations"] == 0
    assert not list(run_of(folder).glob("iterv*"))


@pytest.mark.slow
def test_a_run_without_any_valid_branch_ends_with_2(tmp_path: Path) -> None:
    folder = write_inputs(tmp_path, proposal("wrong", WRONG), proposal("broken", BROKEN))
    status, said = optimized(folder, "--iterations", "2")
    stop = read(run_of(folder) / "stop.json")
    assert (status, stop["reason"]) == (2, "iteration_no_valid_branch"), said
    assert stop["iteration_status"] == "failed_validation"


@pytest.mark.slow
def test_strict_numerics_are_held_to_the_bit_and_a_sibling_takes_over(tmp_path: Path) -> None:
    folder = write_inputs(tmp_path, proposal("near", NEAR, FAST))
    status, said = optimized(folder, "--iterations", "1", "--branches", "2", "--numerics-mode", "strict")
    assert status == 0, said
    rows = read(run_of(folder) / "iterv1" / "branch_results.json")["branches"]
    tried = [row for row in rows if row["measured_afresh"]]
    assert rows[1]["passed"]
    assert all("in bits" in row["error"] for row in tried if not row["passed"])
    assert (run_of(folder) / "iterv1" / "kernel.cpp").read_text() == FAST


@pytest.mark.slow
def test_the_built_in_mind_does_it_without_a_script(tmp_path: Path) -> None:
    folder = write_inputs(tmp_path, kernel=SLOW_LOOP, ref=REF)
    status, said = optimized(folder, "--iterations", "2", "--mind", "catalog")
    assert status in (0, 2), said
    assert (run_of(folder) / "summary.md").is_file()

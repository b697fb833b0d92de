"""One whole campaign through the command line, and everything that a user does with it afterwards."""

import json

import pytest
from campaign_bench import Bench, git

from protocol.messages import Verdict


def test_a_campaign_from_start_to_submission(bench: Bench) -> None:
    before = git(bench.task, "for-each-ref") + git(bench.task, "status", "--porcelain")
    done = bench.call("run", str(bench.task), "--yes", "--experiments", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "explorer-1" in done.stdout
    assert "kernelteam submit" in done.stdout
    assert bench.gone()
    assert git(bench.task, "for-each-ref") + git(bench.task, "status", "--porcelain") == before

    state = bench.state()
    assert state.landed, done.stdout
    assert state.main_measured[-1].commit == state.main
    assert state.main_measured[-1].estimate is not None
    assert state.main_measured[-1].estimate.low > 0.0
    assert {e.direction for e in state.judged} <= state.directions.keys(), "every experiment has its direction"
    hub = bench.run / "hub.git"
    noted = git(hub, "ls-tree", "-r", "--name-only", "notes").split()
    assert {"kernels/row_energy/notes/perf_log.md", "kernels/row_energy/team_notes/summary.md"} <= set(noted)
    assert state.noted is not None
    assert state.noted.finished, "the last word of the campaign is in the notes"
    changed = git(hub, "log", "--format=", "--name-only", f"{state.started.commit}..main").split()
    assert set(changed) == {"kernels/row_energy/row_energy.cpp"}, "kernel commits carry kernel changes alone"
    assert "team-baseline-r1" in git(hub, "tag")
    devices = {agent.device.id for agent in state.agents.values() if agent.device}
    assert len(devices) == len(state.agents)
    assert [row["number"] for row in bench.log()] == list(range(1, len(state.experiments) + 1))
    for experiment in state.judged:
        if experiment.verdict is Verdict.KEEP:
            assert experiment.overall is not None
            assert experiment.overall.low > 0.0

    status = json.loads(bench.call("status", "--json").stdout)
    assert status["state"] == "finished"
    assert bench.call("status").returncode == 0
    assert "<svg" in (bench.run / "report.html").read_text()

    said = bench.call("submit", "--tag", "fast")
    assert "autodev/fast" in said.stdout, said.stderr
    assert git(bench.task, "rev-parse", "autodev/fast^").strip() == state.main
    assert git(bench.task, "status", "--porcelain") == ""
    _check_submission(bench)
    trailers = git(bench.task, "log", "-1", "--format=%(trailers)", "autodev/fast^")
    assert "Technique:" in trailers
    assert "Speedup:" in trailers


def _check_submission(bench: Bench) -> None:
    """Five runs in a clean clone, a tag, the kernel's file, and a note that says it all."""
    (submission,) = bench.state().submissions
    assert len(submission.runs) == 5
    assert submission.over == "autodev/fast"
    assert git(bench.task, "rev-parse", "submission-fast-v1") == git(bench.task, "rev-parse", "autodev/fast")
    artifact = bench.run / "submissions" / "submission-fast-v1"
    assert (artifact / "row_energy.cpp").read_text() == git(
        bench.task, "show", "autodev/fast:kernels/row_energy/row_energy.cpp"
    )
    note = git(bench.task, "show", "autodev/fast:kernels/row_energy/notes/submission_fast.md")
    assert note == (artifact / "submission_fast.md").read_text()
    for heading in ("average of 5 full evaluations", "Headline techniques", "What did not work", "What remains"):
        assert heading in note


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("task.toml", 'name = "x"\nsource = "row_energy.cpp"\nworkload = 3\n', "unknown key 'workload'"),
        ("task.toml", "name = [", "not valid TOML"),
        ("reference.py", "def reference(**kwargs):\n    raise RuntimeError('boom')\n", "boom"),
        ("reference.py", "def reference(x, y, rows, cols):\n    y.fill_(7)\n", "incorrect"),
        ("row_energy.cpp", 'extern "C" void solve(wibble* x) {}\n', "wibble"),
        (
            "row_energy.cpp",
            'extern "C" void solve(const float* x, float* y, int rows, int cols) { return 1; }\n',
            "build",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(bench: Bench, name: str, text: str, says: str) -> None:
    (bench.task / name).write_text(text)
    git(bench.task, "commit", "-q", "-a", "-m", "worse")
    done = bench.call("run", str(bench.task), "--yes")
    assert done.returncode == 2, done.stdout + done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not bench.home.exists() or not list(bench.home.glob("runs/*"))
    assert bench.gone()


def test_no_repository_no_task_no_compiler(bench: Bench, tmp_path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no task.toml" in bench.call("run", str(empty), "--yes").stderr
    for path in bench.task.iterdir():
        (empty / path.name).write_bytes(path.read_bytes())
    assert "not in a git repository" in bench.call("run", str(empty), "--yes").stderr
    assert "mind 'genius'" in bench.call("run", str(bench.task), "--yes", "--agents", "explorer:genius").stderr
    assert "no campaign" in bench.call("status").stderr
    for command in (("resume",), ("stop",), ("log",), ("report",), ("submit",)):
        assert bench.call(*command).returncode == 2

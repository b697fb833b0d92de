"""One whole campaign through the command line, and everything that a user does with it afterwards.

Its explorer is a shell script, its exploiter the built-in mind.
"""

import json
from pathlib import Path

import pytest
from campaign_bench import LIGHT_LAW, Bench, git
from shell_mind import DOLLARS, TECHNIQUE, member

from protocol.messages import Verdict
from team.errors import UserError
from team.judge.client import Judge
from team.scope import scope_of

SUBMISSION_RUNS = 2


def test_a_campaign_from_start_to_submission(bench: Bench) -> None:
    before = git(bench.task, "for-each-ref") + git(bench.task, "status", "--porcelain")
    campaign = bench.home.parent / "campaign.toml"
    team = member("explorer", bench.home.parent) + '[[agents]]\nrole = "exploiter"\nmind = "catalog"\n'
    campaign.write_text(f"{LIGHT_LAW}submission_runs = {SUBMISSION_RUNS}\n{team}")
    done = bench.call("run", str(bench.task), "--yes", "--experiments", "3", "--campaign", str(campaign))
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

    ideas = {agent: [one for one in state.judged if one.agent == agent] for agent in state.agents}
    assert all(ideas.values()), "both minds had one that was judged"
    script = ideas["explorer-1"][0]
    assert script.plan is not None
    assert (script.plan.technique, script.verdict) == (TECHNIQUE, Verdict.KEEP), done.stdout
    assert state.dollars >= DOLLARS, "what the script's answers say that they cost"

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
    """The law's runs in a clean clone, a tag, the kernel's file, and a note that says it all."""
    (submission,) = bench.state().submissions
    assert len(submission.runs) == SUBMISSION_RUNS
    assert submission.over == "autodev/fast"
    assert git(bench.task, "rev-parse", "submission-fast-v1") == git(bench.task, "rev-parse", "autodev/fast")
    artifact = bench.run / "submissions" / "submission-fast-v1"
    assert (artifact / "row_energy.cpp").read_text() == git(
        bench.task, "show", "autodev/fast:kernels/row_energy/row_energy.cpp"
    )
    note = git(bench.task, "show", "autodev/fast:kernels/row_energy/notes/submission_fast.md")
    assert note == (artifact / "submission_fast.md").read_text()
    for heading in (
        f"average of {SUBMISSION_RUNS} full evaluations",
        "Headline techniques",
        "What did not work",
        "What remains",
    ):
        assert heading in note


class Lent:
    """The warm judge in place of a new one for each scope."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def __call__(self, device: object, scratch: Path) -> "Lent":
        return self

    def __enter__(self) -> Judge:
        return self._judge

    def __exit__(self, *error: object) -> None:
        """It stays warm."""


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("task.toml", 'name = "x"\nsource = "row_energy.cpp"\nworkload = 3\n', "unknown key 'workload'"),
        ("task.toml", "name = [", "not valid TOML"),
        ("reference.py", "def reference(**kwargs):\n    raise RuntimeError('boom')\n", "boom"),
        ("reference.py", "def reference(x, y, rows, cols):\n    y.fill_(7)\n", "incorrect"),
        ("row_energy.cpp", 'extern "C" void solve(wibble* x) {}\n', "wibble"),
    ],
)
def test_bad_input_is_one_sentence(
    bench: Bench, judge: Judge, monkeypatch: pytest.MonkeyPatch, name: str, text: str, says: str
) -> None:
    monkeypatch.setenv("KERNELTEAM_HOME", str(bench.home))
    monkeypatch.setattr("team.scope.Judge", Lent(judge))
    (bench.task / name).write_text(text)
    git(bench.task, "commit", "-q", "-a", "-m", "worse")
    with pytest.raises(UserError, match=says):
        scope_of(bench.task, None, None, None, None, 0)
    assert not list(bench.home.glob("runs/*"))


def test_a_kernel_that_does_not_build_ends_the_command_and_leaves_nothing(bench: Bench) -> None:
    wrong = 'extern "C" void solve(const float* x, float* y, int rows, int cols) { return 1; }\n'
    (bench.task / "row_energy.cpp").write_text(wrong)
    git(bench.task, "commit", "-q", "-a", "-m", "worse")
    done = bench.call("run", str(bench.task), "--yes")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "build" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(bench.home.glob("runs/*"))
    assert bench.gone()


def test_no_repository_and_no_such_mind(bench: Bench, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for path in bench.task.iterdir():
        (bare / path.name).write_bytes(path.read_bytes())
    with pytest.raises(UserError, match="not in a git repository"):
        scope_of(bare, None, None, None, None, 0)
    with pytest.raises(UserError, match="mind 'genius'"):
        scope_of(bench.task, "explorer:genius", None, None, None, 0)

"""Phase C step by step: refused early and clearly, repeated after a kill, brought once, pushed only when asked for.

Real git and a real ledger; the clean room alone is a stand-in, whose evaluations are scripted.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from math import log
from pathlib import Path
from typing import Any

import pytest

from protocol import events as ev
from protocol.ledger import Ledger
from protocol.messages import Decision, Estimate, Experiment, Measurement, Noise, Outcome, Plan, Role, Verdict
from protocol.policy import Policy
from protocol.state import fold
from team import submission
from team.errors import UserError
from team.evaluation import Unfit
from team.runs import Run
from team.submission import submit_run
from team.workspace.hub import Hub

NOISE = Noise(restart_sd=0.001, restart_df=11, pair_sd=0.004, floor=0.005)
WORDS = dict.fromkeys(("bottleneck", "evidence", "change", "mechanism", "disproof", "fallback", "cell"), "words")


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def estimate(gain: float) -> Estimate:
    return Estimate(gain=gain, low=gain - 0.01, high=gain + 0.01, pairs=16, restarts=4)


class Room:
    """Stands in for the clean room: every evaluation takes the next of ``gains``, or raises it."""

    device = "cpu:0"

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.gains: list[float | BaseException] = []
        self.evaluations = 0

    def noise(self) -> Noise:
        return NOISE

    def evaluate(self, noise: Noise) -> tuple[Measurement, Decision]:
        self.evaluations += 1
        gain = self.gains.pop(0) if self.gains else log(1.5)
        if isinstance(gain, BaseException):
            raise gain
        said = Decision(state="keep", reason="", overall=estimate(gain), workloads={"w": estimate(gain)})
        return Measurement(outcome=Outcome.MEASURED), said


class Bench:
    """A campaign that landed one commit, in the state in which its run ended."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "user"
        self.user.mkdir()
        git(self.user, "init", "-q", "-b", "trunk")
        for name, text in (("task.toml", "name = 'x'\n"), ("kernel.cpp", "slow\n"), ("README", "hello\n")):
            (self.user / name).write_text(text)
        git(self.user, "add", ".")
        git(self.user, "commit", "-q", "-m", "a task")
        self.run = Run(folder / "runs" / "c")
        self.hub = Hub.create(self.run.folder, self.user)
        self._ledger(self._start())
        self.room = Room(folder / "tree")
        self.land("fast\n", "x1")

    def _start(self) -> ev.CampaignStarted:
        member = ev.Member(name="explorer-1", role=Role.EXPLORER, mind="noop", device="cpu:0")
        return ev.CampaignStarted(
            campaign="c", task="x", operator="x", language="cpp", numerics="reference", task_path=".",
            repository=str(self.user), commit=self.hub.main, workloads={"w": {"n": 1}}, weights={"w": 1.0},
            editable=("kernel.cpp",), policy=Policy(), members=(member,), seed=0,
        )  # fmt: skip

    def land(self, text: str, ident: str) -> None:
        """One experiment that reached main."""
        before = self.hub.main
        commit = self.hub.commit(before, {"kernel.cpp": text}, "faster", {"Experiment": ident}, ("kernel.cpp",))
        self.hub.git.run("update-ref", "refs/heads/main", commit)
        plan = Plan.model_validate({**WORDS, "technique": "tile", "category": "loops", "expected_gain": 0.1})
        said = Decision(state="keep", reason="", overall=estimate(0.4), workloads={"w": estimate(0.4)})
        measured = Measurement(outcome=Outcome.MEASURED)
        duty = ev.DutyGiven(ask=ident, incarnation="i", duty=Experiment(id=ident, base=before))
        self._ledger(
            duty,
            ev.PlanAdmitted(experiment=ident, plan=plan, commits=(commit,)),
            ev.ExperimentReported(experiment=ident, commit=commit, parameters={}, screened=(), measurement=measured),
            ev.ExperimentJudged(experiment=ident, verdict=Verdict.KEEP, reason="faster", decision=said),
            ev.Landed(experiment=ident, commit=commit, before=before, gain=estimate(0.4)),
        )
        tree = self.room.tree
        tree.mkdir(exist_ok=True)
        (tree / "kernel.cpp").write_text(text)

    def _ledger(self, *bodies: ev.AnyBody) -> None:
        with Ledger(self.run.ledger, writer=True) as ledger:
            ledger.append(1000.0, [("explorer-1", body) for body in bodies])

    def kinds(self) -> list[str]:
        with Ledger(self.run.ledger) as ledger:
            return [event.body.kind for event in ledger.events() if event.body.kind.startswith(("subm", "push"))]

    def state(self):
        with Ledger(self.run.ledger) as ledger:
            return fold(ledger.events())

    def submit(self, **more: Any) -> str:
        return submit_run(self.run, "fast", more.pop("into", ""), say=lambda _: None, **more)

    def refs(self) -> str:
        return git(self.user, "for-each-ref")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path)

    @contextmanager
    def stand_in(run: Run, hub: Hub, state: object) -> Iterator[Room]:
        yield made.room

    monkeypatch.setattr(submission, "clean_room", stand_in)
    return made


def test_five_runs_then_branch_tag_note_and_files(bench: Bench) -> None:
    said = bench.submit()
    assert bench.kinds() == ["submission_started", *["submission_measured"] * 5, "submitted"]
    assert "submission-fast-v1" in said
    assert git(bench.user, "rev-parse", "autodev/fast^") == bench.hub.main
    assert git(bench.user, "rev-parse", "submission-fast-v1") == git(bench.user, "rev-parse", "autodev/fast")
    brought = git(bench.user, "diff", "--name-only", "autodev/fast^", "autodev/fast").split()
    notes = {"notes/perf_log.md", "plan/plan_v2.md", "results/all_eval_v2.txt", "team_notes/summary.md"}
    assert {"notes/submission_fast.md", *notes} <= set(brought)
    assert "kernel.cpp" not in brought
    assert "tile" in git(bench.user, "show", "autodev/fast:plan/plan_v2.md")
    assert "**1.500x**" in git(bench.user, "show", "autodev/fast:notes/submission_fast.md")
    done = bench.state().submitted
    assert done is not None
    assert sorted(done.hashes) == ["kernel.cpp", "submission_fast.md"]
    assert (Path(done.artifact) / "kernel.cpp").read_text() == "fast\n"
    assert git(bench.user, "status", "--porcelain") == ""


def test_notes_that_cannot_stand_beside_the_kernel_are_one_sentence(bench: Bench) -> None:
    (bench.user / "team_notes").symlink_to("elsewhere")
    git(bench.user, "add", "team_notes")
    tree = git(bench.user, "write-tree")
    spoilt = bench.hub.git.text("commit-tree", "-p", bench.hub.main, "-m", "a link", _borrowed(bench, tree))
    bench.hub.git.run("update-ref", "refs/heads/main", spoilt)
    bench.land("faster\n", "x2")
    with pytest.raises(UserError, match=r"'team_notes/any' goes through 'team_notes'"):
        bench.submit()
    assert git(bench.user, "branch", "--list", "autodev/*") == ""


def _borrowed(bench: Bench, tree: str) -> str:
    """A tree of the user's repository in the hub."""
    made = git(bench.user, "commit-tree", "-m", "borrowed", tree)
    bench.hub.git.run("fetch", "-q", str(bench.user), made)
    return tree


def test_a_killed_submission_goes_on_with_the_runs_that_it_has(bench: Bench) -> None:
    before = bench.refs()
    bench.room.gains = [0.1, 0.2, KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        bench.submit()
    assert bench.refs() == before
    bench.room.evaluations = 0
    bench.submit()
    assert bench.room.evaluations == 3
    (one,) = bench.state().submissions
    assert [run.run for run in one.runs] == [1, 2, 3, 4, 5]
    assert git(bench.user, "tag") == "submission-fast-v1"


@pytest.mark.parametrize("step", ["submit", "_hashes"])
def test_one_that_is_killed_while_it_is_brought_is_brought_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def dies(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(submission, step, dies)
        with pytest.raises(KeyboardInterrupt):
            bench.submit()
    bench.room.evaluations = 0
    bench.submit()
    assert bench.room.evaluations == 0
    assert git(bench.user, "tag") == "submission-fast-v1"
    assert git(bench.user, "rev-list", "--count", "trunk..autodev/fast") == "2"


def test_the_next_version_moves_the_branch_forward(bench: Bench) -> None:
    bench.submit()
    first = git(bench.user, "rev-parse", "autodev/fast")
    bench.land("faster\n", "x2")
    bench.submit()
    assert git(bench.user, "tag").split() == ["submission-fast-v1", "submission-fast-v2"]
    assert git(bench.user, "merge-base", first, "autodev/fast") == first
    assert git(bench.user, "rev-parse", "autodev/fast^") == bench.hub.main
    assert git(bench.user, "show", "autodev/fast:kernel.cpp") == "faster"
    bench.submit()
    assert git(bench.user, "rev-parse", "submission-fast-v3") == git(bench.user, "rev-parse", "autodev/fast")


def test_an_incorrect_result_is_not_submitted_and_the_workload_is_named(bench: Bench) -> None:
    before = bench.refs()
    bench.room.gains = [0.1, Unfit("incorrect on workload 'w': element 3 is off", "w")]
    with pytest.raises(UserError, match=r"incorrect on workload 'w'.*Nothing was submitted"):
        bench.submit()
    assert bench.refs() == before
    assert bench.kinds() == ["submission_started", "submission_measured", "submission_refused"]
    assert bench.state().submitted is None
    bench.submit()
    assert git(bench.user, "tag") == "submission-fast-v2"


def test_a_result_that_is_slower_in_the_clean_clone_is_not_submitted(bench: Bench) -> None:
    bench.room.gains = [-0.1] * 5
    with pytest.raises(UserError, match=r"0\.905x"):
        bench.submit()
    assert git(bench.user, "branch", "--list", "autodev/*") == ""


@pytest.mark.parametrize(
    ("spoil", "more", "says"),
    [
        (lambda b: (b.user / "README").write_text("edited\n"), {"into": "trunk"}, "not committed"),
        (lambda b: None, {"into": "absent"}, "no branch"),
        (lambda b: None, {"to_remote": True}, "no target"),
        (lambda b: git(b.user, "branch", "autodev/fast", git(b.user, "commit-tree", "-m", "x", "trunk^{tree}")),
         {}, "holds something else"),
        (lambda b: b.user.rename(b.user.with_name("moved")), {}, "is gone"),
    ],
)  # fmt: skip
def test_what_is_in_the_way_is_said_before_anything_is_measured(bench: Bench, spoil: Any, more: Any, says: str) -> None:
    spoil(bench)
    with pytest.raises(UserError, match=says):
        bench.submit(**more)
    assert bench.room.evaluations == 0
    assert bench.kinds() == []


def test_it_is_pushed_only_when_that_is_asked_for(bench: Bench, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", str(remote))
    git(bench.user, "remote", "add", "origin", str(remote))
    bench.submit()
    assert git(remote, "for-each-ref") == ""
    assert "Pushed to origin" in bench.submit(to_remote=True)
    for name in ("autodev/fast", "submission-fast-v2"):
        assert git(remote, "rev-parse", name) == git(bench.user, "rev-parse", name)
    assert bench.kinds()[-2:] == ["submitted", "pushed"]
    remote.rename(tmp_path / "gone.git")
    with pytest.raises(UserError, match="Push it by hand"):
        bench.submit(to_remote=True)


def test_into_a_branch(bench: Bench) -> None:
    assert "moved forward" in bench.submit(into="trunk")
    assert (bench.user / "kernel.cpp").read_text() == "fast\n"
    assert (bench.user / "notes" / "submission_fast.md").is_file()
    assert (bench.user / "team_notes" / "summary.md").is_file()

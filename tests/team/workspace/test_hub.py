"""The hub against real repositories: what it takes, what it refuses, and that the user's checkout stays as it was."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from repositories import KERNEL, fingerprint, git, make_repository

from protocol.messages import Estimate
from protocol.record import Proof
from team.errors import UserError
from team.workspace.command import GitFailed
from team.workspace.hub import Hub, NotForward


def proof(hub: Hub, commit: str) -> Proof:
    """What a verification of ``commit`` against main would prove."""
    gain = Estimate(gain=0.1, low=0.05, high=0.15, pairs=8, restarts=2)
    return Proof("x1", commit, hub.main, "cherry-pick", gain, ("v1",))


EDIT = {"kernel.cpp": "void solve() { /* faster */ }\n"}


def test_clone_stands_at_head_and_leaves_the_user_alone(any_task: Path, tmp_path: Path) -> None:
    root = tmp_path / "user repo"
    (root / "notes.txt").write_text("not committed, not in the way of a task elsewhere\n")
    before = fingerprint(root)
    hub = Hub.create(tmp_path / "run", any_task)
    tree = hub.worktree("explorer-0")
    made = tree.commit(EDIT, "faster", {"Experiment": "e7"}, ("kernel.cpp",))
    hub.fast_forward(proof(hub, made))
    assert fingerprint(root) == before
    assert hub.baseline == git(root, "rev-parse", "HEAD")
    assert (tree.task_folder / "kernel.cpp").read_text() == EDIT["kernel.cpp"]
    assert hub.read(["kernel.cpp", "none.cpp"], hub.main) == EDIT
    assert Hub.open(tmp_path / "run") == hub
    assert hub.origin == root.resolve()
    assert sorted(
        path.name for path in hub.export(made, tmp_path / "out").iterdir() if path.name != "README"
    ) == sorted({path.name for path in any_task.iterdir()} - {".git", "README", "notes.txt"})


def test_detached_head_and_linked_worktree(task: Path, tmp_path: Path) -> None:
    root = tmp_path / "user"
    git(root, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    git(tmp_path / "linked", "commit", "--quiet", "--allow-empty", "-m", "nobody points here")
    hub = Hub.create(tmp_path / "run", tmp_path / "linked" / "kernels" / "matmul")
    assert hub.main == git(tmp_path / "linked", "rev-parse", "HEAD")
    assert hub.task == "kernels/matmul"


def test_shallow_clone(task: Path, tmp_path: Path) -> None:
    root = tmp_path / "user"
    git(root, "commit", "--quiet", "--allow-empty", "-m", "second")
    git(tmp_path, "clone", "--quiet", "--depth=1", root.as_uri(), "shallow")
    hub = Hub.create(tmp_path / "run", tmp_path / "shallow" / "kernels" / "matmul")
    assert hub.main == git(root, "rev-parse", "HEAD")
    assert len(hub.log("main")) == 1


def test_the_callers_git_variables_are_ignored(task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = make_repository(tmp_path / "other", "t")
    monkeypatch.setenv("GIT_DIR", str(other.parent / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody Else")
    hub = Hub.create(tmp_path / "run", task)
    hub.worktree("a").commit(EDIT, "x", {}, ("kernel.cpp",))
    assert hub.log("agent/a")[0].author == "Kernel Team"


def _refusal(run: Path, folder: Path, *needed: str) -> str:
    with pytest.raises(UserError) as refused:
        Hub.create(run, folder, needed or ("task.toml",))
    assert not run.exists()
    assert refused.value.remedy
    return str(refused.value)


def test_refusals_name_the_thing_and_leave_nothing(task: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    plain = tmp_path / "plain"
    plain.mkdir()
    assert "not in a git repository" in _refusal(run, plain)
    assert "no folder" in _refusal(run, tmp_path / "absent")
    git(plain, "init", "--quiet")
    assert "no commit yet" in _refusal(run, plain)
    (task / "data.py").write_text("")
    assert "does not know these files of the task: data.py" in _refusal(run, task, "task.toml", "data.py")
    (task / "kernel.cpp").write_text("// edited\n")
    assert "not committed: kernels/matmul/kernel.cpp" in _refusal(run, task)


def test_a_second_campaign_in_the_same_folder_is_refused(hub: Hub, task: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="already a campaign"):
        Hub.create(tmp_path / "run", task)
    assert hub.main
    with pytest.raises(UserError, match="no campaign"):
        Hub.open(tmp_path)


def test_main_moves_forward_only(hub: Hub, kernel_commit: Callable[..., str]) -> None:
    one = kernel_commit("1\n")
    rival = kernel_commit("2\n")
    step = proof(hub, one)
    hub.fast_forward(step)
    hub.fast_forward(step)
    for unproven in (proof(hub, rival), proof(hub, hub.baseline), replace(step, commit=rival)):
        with pytest.raises(NotForward):
            hub.fast_forward(unproven)
    assert hub.main == one


def test_main_moves_from_where_it_was_verified_only(hub: Hub, kernel_commit: Callable[..., str]) -> None:
    one = kernel_commit("1\n")
    two = kernel_commit("2\n", one)
    with pytest.raises(NotForward, match="not verified as its successor"):
        hub.fast_forward(replace(proof(hub, two), before=one))
    assert hub.main == hub.baseline


def test_tags_never_move(hub: Hub, kernel_commit: Callable[..., str]) -> None:
    one = kernel_commit("1\n")
    hub.tag("team-baseline-r1", one)
    hub.tag("team-baseline-r1", one)
    with pytest.raises(GitFailed):
        hub.tag("team-baseline-r1", hub.baseline)
    assert hub.tags() == {"team-baseline-r1": one}


def test_log_carries_trailers(hub: Hub, kernel_commit: Callable[..., str]) -> None:
    one = kernel_commit("1\n", message="Tile the loops\n\nBecause: of caches, not this.")
    two = kernel_commit("2\n", parent=one)
    entries = hub.log(two, since=hub.main)
    assert [entry.commit for entry in entries] == [two, one]
    assert entries[1].subject == "Tile the loops"
    assert entries[1].trailers["Experiment"] == "e1"
    assert entries[0].parents == (one,)
    assert hub.changed(hub.main, two) == ("kernels/matmul/kernel.cpp",)
    assert "+2" in hub.diff(one, two)
    assert hub.lines(one, two) == (1, 1)


def test_export_is_made_once_and_holds_bytes_as_committed(hub: Hub, task: Path, tmp_path: Path) -> None:
    text = "a\r\nb\n$Id$ äöü\n"
    made = hub.commit(hub.main, {"kernel.cpp": text, ".gitattributes": "* text eol=crlf ident export-ignore\n"},
                      "bytes", {}, ("kernel.cpp", ".gitattributes"))  # fmt: skip
    first = hub.export(made, tmp_path / "out")
    (first / "mark").write_text("")
    assert hub.export(made, tmp_path / "out") == first
    assert (first / "mark").exists()
    assert (first / "kernel.cpp").read_bytes() == text.encode()
    assert [path.name for path in (tmp_path / "out").iterdir()] == [made]


def test_merge_tree_commit_takes_the_kernel_and_leaves_the_notes(hub: Hub, kernel_commit: Callable[..., str]) -> None:
    agent = kernel_commit("agent\n")
    landed = hub.commit(kernel_commit("rival\n"), {"notes/perf_log.md": "log\n"}, "n", {}, ("notes/perf_log.md",))
    merged = hub.merge_tree_commit(agent, landed, "whole tree", {"Experiment": "e1"}, ("kernel.cpp", "gone.h"))
    assert hub.read(["kernel.cpp", "notes/perf_log.md"], merged) == {
        "kernel.cpp": "agent\n",
        "notes/perf_log.md": "log\n",
    }
    assert hub.is_ancestor(landed, merged)


def test_bundles_carry_commits_to_a_node_without_the_hub(
    hub: Hub, kernel_commit: Callable[..., str], tmp_path: Path
) -> None:
    far = Hub.receive(tmp_path / "far", hub.task, hub.main, hub.bundle([hub.main], []))
    assert (far.main, far.baseline, far.origin) == (hub.main, hub.baseline, None)
    one = far.worktree("b").commit(EDIT, "far", {}, ("kernel.cpp",))
    data = far.bundle([one], [far.main, "0" * 40])
    assert len(data) < 2000
    assert hub.unbundle(data) == (one,)
    assert hub.read(["kernel.cpp"], one) == EDIT
    assert far.bundle([one], [one]) == b""
    assert hub.unbundle(b"") == ()
    beyond = kernel_commit("3\n", parent=kernel_commit("2\n"))
    with pytest.raises(GitFailed):
        far.unbundle(hub.bundle([beyond], [hub.resolve(f"{beyond}^")]))


def test_a_dead_process_lock_in_the_hub_is_removed(hub: Hub) -> None:
    lock = hub.path / "config.lock"
    lock.write_text("")
    os.utime(lock, (0, 0))
    assert [str(lock) in sentence for sentence in hub.repair()] == [True]
    assert not lock.exists()
    assert hub.repair() == ()


def test_kernel_text_is_what_the_fixture_says(hub: Hub) -> None:
    assert hub.read(["kernel.cpp"], "main") == {"kernel.cpp": KERNEL}

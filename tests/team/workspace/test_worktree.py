"""Worktrees under stress: in parallel, deleted, locked, in the middle of something; and commits that are refused."""

import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from one_of_sixteen import one_agent
from repositories import KERNEL, git

from team.workspace.command import Git
from team.workspace.hub import Hub
from team.workspace.objects import Objects, Refused
from team.workspace.worktree import Conflict


@pytest.mark.parametrize("times", [1, pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
def test_sixteen_agents_come_and_go_in_parallel(hub: Hub, times: int) -> None:
    with multiprocessing.get_context("spawn").Pool(16) as pool:
        heads = pool.starmap(one_agent, [(str(hub.run_dir), number, times) for number in range(16)])
    assert len(set(heads)) == 16
    assert all(len(hub.log(head, since=hub.main)) == times for head in heads)
    assert hub.git.text("worktree", "list", "--porcelain").count("worktree ") == 1
    assert not list(hub.path.rglob("*.lock"))


def test_commit_and_reset(hub: Hub) -> None:
    tree = hub.worktree("a")
    base = tree.head()
    made = tree.commit({"kernel.cpp": "// new\n"}, "Subject\n\nBody.", {"Speedup": "1.2\nx"}, ("kernel.cpp",))
    assert tree.head() == made == hub.resolve("agent/a")
    assert git(tree.folder, "status", "--porcelain") == ""
    assert hub.log(made)[0].trailers == {"Speedup": "1.2 x"}
    (tree.task_folder / "junk.o").write_text("")
    (tree.task_folder / "kernel.cpp").write_text("// scribbled\n")
    assert tree.reset(base) == ()
    assert (tree.task_folder / "kernel.cpp").read_text() == KERNEL
    assert not (tree.task_folder / "junk.o").exists()
    assert hub.resolve("agent/a") == base


def test_an_experiment_that_changes_nothing_is_still_a_commit(hub: Hub) -> None:
    tree = hub.worktree("a")
    made = tree.commit({"kernel.cpp": KERNEL}, "A/A", {"Experiment": "e1"}, ("kernel.cpp",))
    assert hub.changed(hub.main, made) == ()
    assert made != hub.main


def test_new_editable_files_and_modes(hub: Hub, task: Path) -> None:
    made = hub.commit(hub.main, {"include/tile.h": "// h\n"}, "x", {}, ("include/tile.h",))
    assert hub.git.text("ls-tree", made, "kernels/matmul/include/tile.h").startswith("100644")
    assert hub.changed(hub.main, made) == ("kernels/matmul/include/tile.h",)


def test_refused_commits(hub: Hub, task: Path, tmp_path: Path) -> None:
    os.symlink("/etc", task / "link")
    os.symlink("kernel.cpp", task / "alias.cpp")
    git(tmp_path / "user", "add", ".")
    git(tmp_path / "user", "commit", "--quiet", "-m", "links")
    hub = Hub.create(tmp_path / "run2", task)
    tree = hub.worktree("a")
    everything = ("link/passwd", "alias.cpp", "../x", "/etc/x", ".git/hooks/x", "a//b", "kernel.cpp", "link")
    for path, why in {
        "reference.py": "not an editable",
        "link/passwd": "goes through",
        "link": "not a regular file",
        "alias.cpp": "not a regular file",
        "../x": "plain path",
        "/etc/x": "plain path",
        ".git/hooks/x": "plain path",
        "a//b": "plain path",
    }.items():
        with pytest.raises(Refused, match=why):
            tree.commit({path: "x"}, "x", {}, everything)
    with pytest.raises(Refused, match="cap"):
        tree.commit({"kernel.cpp": "x" * (1 << 20) + "y"}, "x", {}, everything)
    assert tree.head() == hub.main


@given(st.text(alphabet="./\\ab g\n\0", max_size=8) | st.text(max_size=30))
@example(".")
@example("a/.git/b")
def test_no_path_leaves_the_task_folder(path: str) -> None:
    try:
        found = Objects(Git(Path("/")), "tasks/x").inside(path)
    except Refused:
        return
    resolved = os.path.normpath(found)
    assert resolved == found
    assert resolved.startswith("tasks/x/")


def test_cherry_pick_lands_or_names_the_conflict(hub: Hub, kernel_commit: Callable[..., str]) -> None:
    lines = KERNEL.splitlines(keepends=True)
    top = kernel_commit("".join(["// top\n", *lines]))
    end = kernel_commit("".join([*lines, "// end\n"]))
    rival = kernel_commit("".join(["// rival\n", *lines]))
    landing = hub.landing()
    landing.reset(top)
    picked = landing.cherry_pick(end)
    assert isinstance(picked, str)
    assert hub.read(["kernel.cpp"], picked) == {"kernel.cpp": "".join(["// top\n", *lines, "// end\n"])}
    assert hub.log(picked)[0].trailers["Experiment"] == "e1"
    assert landing.cherry_pick(rival) == Conflict(("kernels/matmul/kernel.cpp",))
    assert landing.head() == picked
    assert git(landing.folder, "status", "--porcelain") == ""
    empty = landing.cherry_pick(end)
    assert isinstance(empty, str)
    assert hub.changed(picked, empty) == ()


_TORN = {"torn index": "index", "empty index": "index", "torn HEAD": "HEAD", "empty HEAD": "HEAD"}
_BRANCH = {"branch gone": None, "empty branch": "", "rubbish branch": "rubbish\n", "missing commit": "1" * 40 + "\n"}


@pytest.mark.parametrize(
    "harm",
    ["folder", "git file", "admin", "detached", "mid-merge", "half made", "other branch", "moved", *_TORN, *_BRANCH],
)
def test_mended_whatever_happened(hub: Hub, kernel_commit: Callable[..., str], harm: str) -> None:
    tree = hub.worktree("a")
    kept = tree.commit({"kernel.cpp": "// kept\n"}, "x", {}, ("kernel.cpp",))
    hub.anchor("experiments/kept", kept)
    admin = hub.path / "worktrees" / "a"
    branch = hub.path / "refs" / "heads" / "agent" / "a"
    if harm == "folder":
        shutil.rmtree(tree.folder)
    elif harm == "git file":
        (tree.folder / ".git").write_text("gitdir: /nowhere\n")
    elif harm == "admin":
        shutil.rmtree(admin)
    elif harm == "detached":
        git(tree.folder, "checkout", "--quiet", "--detach", "main")
    elif harm == "mid-merge":
        subprocess.run(["git", "-C", tree.folder, "cherry-pick", kernel_commit("// rival\n")], capture_output=True)
    elif harm == "other branch":
        git(tree.folder, "checkout", "--quiet", "-b", "by-hand")
    elif harm == "moved":
        git(hub.path, "update-ref", "refs/heads/agent/a", kernel_commit("// by hand\n"))
    elif harm in _TORN:
        file = admin / _TORN[harm]
        file.write_bytes(file.read_bytes()[: 0 if "empty" in harm else 11])
    elif harm in _BRANCH:
        text = _BRANCH[harm]
        branch.unlink() if text is None else branch.write_text(text)
    else:
        shutil.rmtree(tree.folder)
        (admin / "locked").write_text("initializing")
    again = hub.worktree("a")
    again.reset(kept)
    assert again.head() == kept == hub.resolve("agent/a")
    assert git(again.folder, "status", "--porcelain=v1", "--branch") == "## agent/a"
    assert (again.task_folder / "kernel.cpp").read_text() == "// kept\n"


def test_reset_says_what_it_mended(hub: Hub) -> None:
    tree = hub.worktree("a")
    shutil.rmtree(tree.folder)
    assert "broken or deleted" in "".join(tree.reset(hub.main))


def test_a_dead_process_lock_is_removed_and_a_live_one_waited_for(hub: Hub) -> None:
    tree = hub.worktree("a")
    lock = hub.path / "worktrees" / "a" / "index.lock"
    lock.write_text("")
    (sentence,) = tree.reset(hub.main)
    assert str(lock) in sentence
    holder = (
        "import sys, time, os; f = open(sys.argv[1], 'x'); print(flush=True); time.sleep(3); os.unlink(sys.argv[1])"
    )
    with subprocess.Popen([sys.executable, "-c", holder, str(lock)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        start = time.monotonic()
        assert tree.reset(hub.main) == ()
        assert time.monotonic() - start > 2.0


def test_worktree_names_are_plain(hub: Hub) -> None:
    for name in ("", "../x", "a/b", ".hidden", "a b"):
        with pytest.raises(ValueError, match="no name"):
            hub.worktree(name)

"""What reaches the user's repository at the end, and what does not."""

from collections.abc import Callable
from pathlib import Path

import pytest
from repositories import fingerprint, git

from team.errors import UserError
from team.workspace.hub import Hub
from team.workspace.submit import submit


def _checkout(root: Path) -> dict[str, str]:
    return {path: print_ for path, print_ in fingerprint(root).items() if not path.startswith(".git")}


def test_the_result_becomes_a_branch_and_nothing_else(
    hub: Hub, kernel_commit: Callable[..., str], tmp_path: Path
) -> None:
    root = tmp_path / "user"
    made = kernel_commit("// fast\n")
    before, refs = _checkout(root), git(root, "for-each-ref")
    index, config = (root / ".git/index").read_bytes(), (root / ".git/config").read_bytes()
    said = submit(hub, made, "matmul")
    assert git(root, "rev-parse", "autodev/matmul") == made
    assert git(root, "show", "autodev/matmul:kernels/matmul/kernel.cpp") == "// fast"
    assert refs in git(root, "for-each-ref")
    assert len(git(root, "for-each-ref").splitlines()) == len(refs.splitlines()) + 1
    assert _checkout(root) == before
    assert (root / ".git/index").read_bytes() == index
    assert (root / ".git/config").read_bytes() == config
    assert "autodev/matmul" in said
    assert "git merge autodev/matmul" in said
    assert submit(hub, made, "matmul") == said


def test_a_branch_of_that_name_moves_forward_or_is_left_alone(
    hub: Hub, kernel_commit: Callable[..., str], tmp_path: Path
) -> None:
    root = tmp_path / "user"
    one = kernel_commit("1\n")
    two = kernel_commit("2\n", parent=one)
    submit(hub, one, "x")
    submit(hub, two, "x")
    assert git(root, "rev-parse", "autodev/x") == two
    with pytest.raises(UserError, match="holds something else"):
        submit(hub, kernel_commit("3\n"), "x")
    assert git(root, "rev-parse", "autodev/x") == two
    with pytest.raises(UserError, match="branch name"):
        submit(hub, two, "no..good")


def test_into_the_checked_out_branch_when_it_is_clean(
    hub: Hub, kernel_commit: Callable[..., str], tmp_path: Path
) -> None:
    root = tmp_path / "user"
    made = kernel_commit("// fast\n")
    (root / "README").write_text("edited\n")
    with pytest.raises(UserError, match="not committed"):
        submit(hub, made, "x", into="trunk")
    git(root, "checkout", "README")
    assert "moved forward" in submit(hub, made, "x", into="trunk")
    assert (root / "kernels/matmul/kernel.cpp").read_text() == "// fast\n"
    assert git(root, "status", "--porcelain", "--untracked-files=no") == ""


def test_into_another_branch(hub: Hub, kernel_commit: Callable[..., str], tmp_path: Path) -> None:
    root = tmp_path / "user"
    made = kernel_commit("// fast\n")
    git(root, "branch", "release")
    submit(hub, made, "x", into="release")
    assert git(root, "rev-parse", "release") == made
    git(root, "commit", "--quiet", "--allow-empty", "-m", "moved on")
    with pytest.raises(UserError, match="did not start from"):
        submit(hub, made, "x", into="trunk")
    with pytest.raises(UserError, match="no branch"):
        submit(hub, made, "x", into="absent")


def test_a_repository_that_is_gone(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "user").rename(tmp_path / "moved")
    with pytest.raises(UserError, match="is gone"):
        submit(hub, hub.main, "x")

"""A task in a repository for every test, and the certainty that no process of its campaigns survives it."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from campaign_bench import KERNEL, REFERENCE, TASK, Bench, git

KEPT = ("peaks", "programs")  # what every judge of a user has in common


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first judge of all homes leaves what the others would measure or compile anew."""
    folder = tmp_path_factory.mktemp("kept")
    for name in KEPT:
        (folder / name).mkdir()
    return folder


@pytest.fixture
def bench(tmp_path: Path, kept: Path) -> Iterator[Bench]:
    """A committed task, and the certainty that nothing of it survives the test."""
    task = tmp_path / "repo" / "kernels" / "row_energy"
    task.mkdir(parents=True)
    for name, text in (("row_energy.cpp", KERNEL), ("reference.py", REFERENCE), ("task.toml", TASK)):
        (task / name).write_text(text)
    git(tmp_path / "repo", "init", "-q", "-b", "main")
    git(tmp_path / "repo", "add", ".")
    git(tmp_path / "repo", "commit", "-q", "-m", "a task")
    made = Bench(task, tmp_path / "home")
    made.home.mkdir()
    for name in KEPT:
        (made.home / name).symlink_to(kept / name)
    yield made
    for process in made.processes():
        with suppress(psutil.Error):
            process.kill()

"""Repositories, hubs and commits to test with."""

from collections.abc import Callable
from pathlib import Path

import pytest
from repositories import make_repository

from team.workspace.hub import Hub


@pytest.fixture(params=["kernels/matmul", ".", "büro mit leerzeichen/кернел"])
def any_task(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return make_repository(tmp_path / "user repo", request.param)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "user", "kernels/matmul")


@pytest.fixture
def hub(task: Path, tmp_path: Path) -> Hub:
    return Hub.create(tmp_path / "run", task)


@pytest.fixture
def kernel_commit(hub: Hub) -> Callable[..., str]:
    """Makes a commit with a new kernel text on a parent, default main."""

    def make(text: str, parent: str = "", message: str = "change") -> str:
        made = hub.commit(parent or hub.main, {"kernel.cpp": text}, message, {"Experiment": "e1"}, ("kernel.cpp",))
        hub.anchor(f"test/{made}", made)
        return made

    return make

"""One warm judge for the whole gallery, and trees made of a fixture's text."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from team.devices.cpu import cpu_devices
from team.judge.client import Judge

GALLERY = Path(__file__).parent
TASK = GALLERY / "task"


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with Judge(cpu_devices(1)[0], tmp_path_factory.mktemp("judge")) as warm:
        yield warm


@pytest.fixture
def tree_of(tmp_path: Path) -> Callable[[Path], Path]:
    """A candidate tree whose kernel is one fixture, with the honest body put before it."""

    def make(fixture: Path) -> Path:
        body = (GALLERY / "honest_body.h").read_text()
        (tmp_path / "softmax.cpp").write_text(body + fixture.read_text())
        return tmp_path

    return make

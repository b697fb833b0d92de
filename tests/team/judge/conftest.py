"""One warm judge for all tests that do not end it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from team.devices.cpu import cpu_devices
from team.judge.client import Judge


@pytest.fixture(scope="package")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the warm judge works; its cache may be copied."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="package")
def judge(scratch: Path) -> Iterator[Judge]:
    with Judge(cpu_devices(1)[0], scratch) as warm:
        yield warm

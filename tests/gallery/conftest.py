"""One warm judge for the whole gallery."""

from collections.abc import Iterator

import pytest

from team.devices.cpu import cpu_devices
from team.judge.client import Judge


@pytest.fixture(scope="package")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with Judge(cpu_devices(1)[0], tmp_path_factory.mktemp("judge")) as warm:
        yield warm

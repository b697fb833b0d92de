"""One warm judge for everybody; and tests that need GPUs are skipped, with the reason, where there are too few."""

import os
from collections.abc import Iterator
from functools import cache

import pytest

from team.devices import count_cuda
from team.devices.cpu import cpu_devices
from team.errors import UserError
from team.judge.client import Judge

pytest_plugins = ["two_at_once"]

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_FOUND = os.environ.get(_VISIBLE)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Whatever a test or its fixtures have bound this process to, the next test has all of its cores again."""
    before = os.sched_getaffinity(0)
    try:
        return (yield)
    finally:
        os.sched_setaffinity(0, before)


@pytest.fixture
def every_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPUs that were visible at the start, whatever an earlier test has pinned this process to."""
    monkeypatch.delenv(_VISIBLE, raising=False)
    if _FOUND is not None:
        monkeypatch.setenv(_VISIBLE, _FOUND)


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """One warm judge of a core for all tests that do not end it."""
    with Judge(cpu_devices(1)[0], tmp_path_factory.mktemp("judge")) as warm:
        yield warm


@cache
def gpus() -> int:
    """How many GPUs this process may use."""
    try:
        return count_cuda()
    except UserError:
        return 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked ``gpu``, or ``gpu(2)`` for two of them, on a machine with fewer."""
    for item in items:
        marks = list(item.iter_markers("gpu"))
        needed = max((mark.args[0] if mark.args else 1 for mark in marks), default=0)
        if needed > gpus():
            reason = f"needs {needed} NVIDIA GPU{'s' if needed > 1 else ''}, this machine has {gpus()}"
            item.add_marker(pytest.mark.skip(reason=reason))

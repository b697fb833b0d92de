"""Tests that need GPUs are collected everywhere and skipped, with the reason, where there are too few."""

import os
from functools import cache

import pytest

from team.devices import count_cuda
from team.errors import UserError

pytest_plugins = ["two_at_once"]

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_FOUND = os.environ.get(_VISIBLE)


@pytest.fixture
def every_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPUs that were visible at the start, whatever an earlier test has pinned this process to."""
    monkeypatch.delenv(_VISIBLE, raising=False)
    if _FOUND is not None:
        monkeypatch.setenv(_VISIBLE, _FOUND)


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

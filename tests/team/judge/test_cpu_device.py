"""Core sets as devices."""

import os
from pathlib import Path

import pytest

from team.devices.cpu import CpuDevice, cpu_device, cpu_devices
from team.errors import UserError


def test_sets_are_disjoint_and_named() -> None:
    cores = sorted(os.sched_getaffinity(0))
    devices = cpu_devices(len(cores))
    assert [device.cores for device in devices] == [(core,) for core in cores]
    assert [cpu_device(device.id) for device in devices] == list(devices)


def test_the_judge_gets_a_core_of_its_own_when_there_are_two() -> None:
    assert (CpuDevice((0,)).judge_cores, CpuDevice((0,)).kernel_cores) == ((0,), (0,))
    assert (CpuDevice((0, 1, 2)).judge_cores, CpuDevice((0, 1, 2)).kernel_cores) == ((0,), (1, 2))
    assert CpuDevice((0, 1, 2, 5)).id == "cpu:0-2,5"


def test_info_is_read_from_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELTEAM_HOME", str(tmp_path))  # where nobody has measured any peaks
    info = cpu_devices(1)[0].info()
    assert info.kind == "cpu"
    assert info.name
    assert info.peaks == {}
    assert info.details["cores"]


@pytest.mark.parametrize("name", ["cpu:", "cpu:x", "cpu:100000", "gpu:0", "cpu:1-"])
def test_unusable_names_are_refused(name: str) -> None:
    with pytest.raises(UserError):
        cpu_device(name)


@pytest.mark.parametrize("count", [0, 100000])
def test_impossible_counts_are_refused(count: int) -> None:
    with pytest.raises(UserError):
        cpu_devices(count)

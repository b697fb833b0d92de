"""The roofs of a CPU: measured, kept, doubled, and never met by an honest kernel."""

from pathlib import Path

import pytest

from team.devices.cpu import CpuDevice, usable_cores
from team.judge.clocks import below_floor
from team.judge.cpu_roofs import HEADROOM, bounds, ensure_roofs

MEASURED = {
    "float32_flops_per_s": 1e11,
    "float64_flops_per_s": 5e10,
    "cache_bytes_per_s": 1e11,
    "memory_bytes_per_s": 1e9,
}


def test_they_are_measured_once_and_bound_what_a_core_can_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELTEAM_HOME", str(tmp_path))
    core = min(usable_cores())
    device = CpuDevice((core,))
    assert device.info().peaks == {}
    ensure_roofs(device)
    peaks = device.info().peaks
    assert set(peaks) >= {"float64_flops_per_s", "cache_bytes_per_s", "memory_bytes_per_s"}
    assert 1e8 < peaks["float64_flops_per_s"] < 1e13
    assert peaks["memory_bytes_per_s"] < peaks["cache_bytes_per_s"] < 1e14
    (kept,) = (tmp_path / "peaks").iterdir()
    before = kept.stat().st_mtime_ns
    ensure_roofs(device)
    assert kept.stat().st_mtime_ns == before


def test_a_device_of_three_kernel_cores_has_three_times_the_roof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from team.devices.peaks import keep_peaks

    monkeypatch.setenv("KERNELTEAM_HOME", str(tmp_path))
    device = CpuDevice((0, 1, 2, 3))
    keep_peaks(device.machine, MEASURED)
    peaks = device.info().peaks
    assert peaks["float32_flops_per_s"] == 3e11
    assert peaks["memory_bytes_per_s"] == 1e9


def test_bounds_leave_room_and_know_narrower_units() -> None:
    found = bounds(MEASURED, ("avx2", "fma"))
    assert found["float32_flops_per_s"] == HEADROOM * 1e11
    assert found["memory_bytes_per_s"] == 1e9
    for isa in ("amx_bf16", "avx512_fp16", "sve2"):
        assert "float32_flops_per_s" not in bounds(MEASURED, ("avx2", isa))
    assert bounds({}, ("avx2",)) == {}


def test_the_floor_counts_the_cache_and_not_the_memory() -> None:
    peaks = bounds(MEASURED, ("avx2",))
    model = {"bytes_min": 2e5}  # 1 us at the doubled rate of the cache, 200 us at the memory's
    assert below_floor(model, peaks, "float32", 0.9, 950.0) == ""
    assert "roofline" in below_floor(model, peaks, "float32", 0.9, 850.0)
    assert below_floor({"flops": 2e5}, peaks, "int32", 0.9, 1.0) == ""

"""GPUs as devices, as far as that needs no GPU: selection, locks, what counts as a disturbance, roofs kept by UUID."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from team.devices import discover, how_many, open_device
from team.devices.lock import exclusive
from team.devices.nvml import selected
from team.devices.peaks import keep_peaks, known_peaks
from team.devices.telemetry import Reading, disturbance
from team.errors import UserError

PRESENT = ["GPU-aaaa1111", "GPU-bbbb2222", "GPU-bbbb3333"]


@pytest.mark.parametrize(
    ("listed", "chosen"),
    [
        ("0", PRESENT[:1]),
        ("2,0", [PRESENT[2], PRESENT[0]]),
        ("GPU-a", PRESENT[:1]),
        ("GPU-bbbb", []),  # not unambiguous
        ("0,7,1", PRESENT[:1]),  # the first invalid entry ends the list
        ("1,1", PRESENT[1:2]),
        ("", []),
        ("-1", []),
    ],
)
def test_visible_devices_are_read_as_cuda_reads_them(listed: str, chosen: list[str]) -> None:
    assert selected(PRESENT, listed) == tuple(chosen)


def test_slices_are_refused() -> None:
    with pytest.raises(UserError, match="MIG"):
        selected(PRESENT, "MIG-123")


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU")
def test_without_a_gpu_there_is_one_clear_sentence() -> None:
    for ask in (lambda: discover("cuda", 1), lambda: how_many("cuda"), lambda: open_device("GPU-1234")):
        with pytest.raises(UserError, match="no usable NVIDIA GPU"):
            ask()


def test_nested_use_of_a_device_does_not_wait_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    code = "import sys; from team.devices.lock import exclusive\nwith exclusive('GPU-x'): print('in')"
    with exclusive("GPU-x"), exclusive("GPU-x"):
        child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert child.stdout == "in\n"
        stranger = {key: value for key, value in os.environ.items() if key != "KERNELTEAM_HOLDS"}
        refused = subprocess.run(
            [sys.executable, "-c", code], env=stranger, capture_output=True, text=True, check=False
        )
        assert f"process {os.getpid()}" in refused.stderr
    assert "KERNELTEAM_HOLDS" not in os.environ
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def reading(memory: int = 3201, throttled: int = 0, strangers: tuple[int, ...] = ()) -> Reading:
    return Reading(1980, memory, 40, throttled, strangers)


def test_what_disturbs_a_block() -> None:
    assert disturbance(reading(), reading()) == ""
    assert "throttled" in disturbance(reading(), reading(throttled=0x40))
    assert "12" in disturbance(reading(strangers=(12,)), reading())
    assert "memory clock" in disturbance(reading(), reading(memory=1600))


def test_roofs_are_kept_by_uuid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELTEAM_HOME", str(tmp_path))
    assert known_peaks("GPU-1") == {}
    keep_peaks("GPU-1", {"copy_bytes_per_s": 4e12})
    assert known_peaks("GPU-1") == {"copy_bytes_per_s": 4e12}
    assert known_peaks("GPU-2") == {}

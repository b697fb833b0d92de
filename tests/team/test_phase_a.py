"""What phase A refuses and takes in: busy and unlike GPUs, a file on hardware, unknown settings, broken workloads."""

from pathlib import Path

import pytest

from protocol.messages import DeviceInfo
from protocol.policy import Policy
from team.campaign import CampaignFile, merged_policy
from team.devices import cuda
from team.devices.hardware import hardware_of
from team.errors import UserError
from team.tasks.spec import read_spec

TASK = """\
name = "x"
source = "k.cpp"
known_broken = [{ workload = "huge", reason = "its reference needs 80 GB" }]

[arguments]
x = { shape = ["n"] }

[[workloads]]
name = "small"
dims = { n = 4 }

[[workloads]]
name = "huge"
dims = { n = 400000 }
"""


@pytest.mark.parametrize(
    ("busy", "free", "idle"), [(4, 91, True), (5, 91, False), (0, 90, False), (0, 91, True), (100, 0, False)]
)
def test_a_gpu_is_idle_below_five_percent_and_with_nine_tenths_of_its_memory_free(
    busy: int, free: int, idle: bool
) -> None:
    assert cuda.is_idle(busy, free, 100) is idle


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Two GPUs, alike and idle; what is in the dict occupies the GPU of that name."""
    occupied: dict[str, str] = {}
    monkeypatch.setattr(cuda.nvml, "visible_uuids", lambda: ("GPU-a", "GPU-b"))
    monkeypatch.setattr(cuda, "SETTLE_S", 0.0)
    monkeypatch.setattr(cuda, "_busy", lambda uuid: occupied.get(uuid, ""))
    monkeypatch.setattr(cuda, "_details", lambda uuid: {"name": "H200", "memory bytes": "1"})
    return occupied


def test_each_agent_gets_a_gpu_of_its_own_and_none_that_somebody_uses(two_gpus: dict[str, str]) -> None:
    assert [device.id for device in cuda.cuda_devices(2)] == ["GPU-a", "GPU-b"]
    with pytest.raises(UserError, match="3 GPUs are wanted, 2 are visible"):
        cuda.cuda_devices(3)
    two_gpus["GPU-b"] = "50 % busy"
    with pytest.raises(UserError, match="GPU-b is not idle: 50 % busy"):
        cuda.cuda_devices(2)
    assert cuda.cuda_devices(1)


def test_unlike_gpus_are_refused_unless_that_is_allowed(
    two_gpus: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"GPU-a": "H100", "GPU-b": "H200"}
    monkeypatch.setattr(cuda, "_details", lambda uuid: {"name": names[uuid], "memory bytes": "1"})
    with pytest.raises(UserError, match=r"not of one kind: H100, H200.*allow_mixed"):
        cuda.cuda_devices(2)
    assert len(cuda.cuda_devices(2, allow_mixed=True)) == 2


def test_the_users_file_on_the_hardware_comes_first_but_never_says_how_fast_it_is(tmp_path: Path) -> None:
    device = DeviceInfo(kind="cpu", id="cpu:0", name="EPYC", peaks={"copy_bytes_per_s": 3e9})
    file = tmp_path / "hardware.toml"
    file.write_text('name = "the big one"\nl2_bytes = 4096\n[peaks]\ncopy_bytes_per_s = 9e9\n')
    block = hardware_of(device, file)
    assert (block.name, block.l2_bytes, block.source) == ("the big one", 4096, str(file))
    assert block.peaks == {"copy_bytes_per_s": 3e9}
    assert hardware_of(device, None).name == "EPYC"
    file.write_text("speed = 3\n")
    with pytest.raises(UserError, match="Known names: "):
        hardware_of(device, file)


def test_an_unknown_setting_of_the_law_is_an_error() -> None:
    file = CampaignFile.model_validate({"policy": {"stuck_afer": 2}})
    with pytest.raises(UserError, match="no such setting or value: stuck_afer"):
        merged_policy(Policy(), file, {})
    known = CampaignFile.model_validate({"policy": {"stuck_after": 2}})
    assert merged_policy(Policy(), known, {"max_minutes": 5.0}).stuck_after == 2


def test_a_workload_that_is_known_to_be_broken_is_in_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text(TASK)
    (tmp_path / "k.cpp").write_text('extern "C" void solve(const float* x, int n) {}\n')
    (tmp_path / "reference.py").write_text("def reference(x, n):\n    pass\n")
    spec = read_spec(tmp_path)
    assert [workload.name for workload in spec.must_pass] == ["small"]
    assert spec.broken == {"huge": "its reference needs 80 GB"}
    (tmp_path / "task.toml").write_text(TASK.replace('workload = "huge"', 'workload = "nosuch"'))
    with pytest.raises(UserError, match="no workload"):
        read_spec(tmp_path)

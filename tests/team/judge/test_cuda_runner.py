"""On GPUs: what a kernel can do and see inside a CUDA runner, which card is whose, and that each card has one owner."""

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cuda_probe import OURS, write_task

from team.devices import cuda, discover
from team.devices.lock import exclusive
from team.errors import UserError
from team.judge.build import Builder
from team.judge.client import Judge
from team.judge.cuda.build import kernel_recipe
from team.judge.cuda.ptxas import remarks
from team.tasks.task import load_task

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
WHO = """\
import json, torch
from team.devices import discover, how_many
device, many = discover("cuda", 1)[0], how_many("cuda")
device.pin()
made = torch.zeros(1, device="cuda")
seen = [f"GPU-{torch.cuda.get_device_properties(i).uuid}" for i in range(torch.cuda.device_count())]
print(json.dumps({"many": many, "id": device.id, "seen": seen}))
"""
HOLDS = """\
import sys, torch
held = torch.empty(int(float(sys.argv[1]) * torch.cuda.mem_get_info()[1]), dtype=torch.uint8, device="cuda")
print("held", flush=True)
sys.stdin.read()
"""
TAKES = "import sys; from team.devices.lock import exclusive\nwith exclusive(sys.argv[1]): print('in')"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_the_probe_compiles(tmp_path: Path) -> None:
    task = load_task(write_task(tmp_path / "task"))
    text = (task.folder / "probe.cu").read_text()
    recipe = kernel_recipe({"probe.cu": text}, "probe.cu", "90a", "reference", None, 120.0)
    assert Builder(tmp_path / "cache", tmp_path / "work", "nvcc", remarks).build(recipe).path.exists()


def run_python(code: list[str], **environment: str) -> str:
    """The standard output of a Python process with this one's environment and some more."""
    done = subprocess.run(
        [sys.executable, *code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """What the probe finds in a runner on the GPU with this UUID; it is asked once for each."""
    found: dict[str, dict[str, Any]] = {}

    def ask(uuid: str) -> dict[str, Any]:
        if uuid not in found:
            folder = tmp_path_factory.mktemp("probe")
            found[uuid] = json.loads(run_python([str(HERE / "cuda_probe.py"), uuid, str(folder)]))
        return found[uuid]

    return ask


@pytest.mark.gpu
@pytest.mark.parametrize("act", OURS)
def test_a_kernel_on_the_gpu_cannot(act: str, every_gpu: None, probed: Callable[[str], dict[str, Any]]) -> None:
    found, layer = probed(discover("cuda", 1)[0].id), OURS[act][0]
    if layer and layer not in found["layers"].split():
        pytest.skip(f"the runner could not have the layer {layer} here: it reports {found['layers']}")
    assert found["refused"][act]


@pytest.mark.gpu
def test_the_runner_sees_its_own_gpu_alone(every_gpu: None, probed: Callable[[str], dict[str, Any]]) -> None:
    device = discover("cuda", 1)[0]
    assert probed(device.id)["gpus"] == [device.id]


@pytest.mark.gpu(2)
def test_each_runner_sees_one_gpu_and_no_two_the_same(every_gpu: None, probed: Callable[[str], dict[str, Any]]) -> None:
    devices = discover("cuda", 2)
    found = {device.id: probed(device.id) for device in devices}
    assert len(found) == 2
    for uuid, seen in found.items():
        assert seen["gpus"] == [uuid]
        assert seen["nodes"] == [] or "landlock" not in seen["layers"].split()


@pytest.mark.gpu
def test_torch_and_the_judge_mean_the_same_gpu(every_gpu: None) -> None:
    said = json.loads(run_python(["-c", WHO]))
    assert said["seen"] == [said["id"]] == [discover("cuda", 1)[0].id]


@pytest.mark.gpu(2)
def test_visible_devices_are_followed_in_their_order(every_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (device.id for device in discover("cuda", 2))
    for listed, expected in {
        f"{second},{first}": (second, 2),
        second[:12]: (second, 1),
        f"{first},nonsense,{second}": (first, 1),
    }.items():
        said = json.loads(run_python(["-c", WHO], CUDA_VISIBLE_DEVICES=listed))
        assert (said["id"], said["many"]) == expected
        assert said["seen"] == [said["id"]]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", second)
    with pytest.raises(UserError, match="2 GPUs are wanted, 1 are visible"):
        discover("cuda", 2)


@pytest.mark.gpu
def test_a_card_has_one_judge_at_a_time(every_gpu: None, tmp_path: Path) -> None:
    """A stranger is refused and told who has it; whoever holds the card may start a judge on it."""
    device = discover("cuda", 1)[0]
    with (
        Judge(device, tmp_path / "scratch") as judge,
        pytest.raises(UserError, match=f"process {judge.pid}"),
        exclusive(device.id),
    ):
        pytest.fail("two have the card")
    with exclusive(device.id), Judge(device, tmp_path / "scratch") as judge:
        assert judge.pid is not None


@pytest.mark.gpu(2)
def test_the_lock_of_one_card_leaves_the_other_alone(every_gpu: None) -> None:
    ours, other = discover("cuda", 2)
    with exclusive(ours.id):
        assert run_python(["-c", TAKES, other.id], KERNELTEAM_HOLDS="") == "in\n"
        with pytest.raises(AssertionError, match=f"in use by another measurement .process {os.getpid()}"):
            run_python(["-c", TAKES, ours.id], KERNELTEAM_HOLDS="")


@pytest.mark.gpu
def test_a_card_in_use_is_refused_and_passed_by(every_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    uuid = cuda.nvml.visible_uuids()[0]
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, "0.2"],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": uuid},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with monkeypatch.context() as hurried:
            hurried.setattr(cuda, "SETTLE_S", 0.2)
            with pytest.raises(UserError, match=f"{uuid} is not idle"):
                discover("cuda", 1)
        rest = cuda.nvml.visible_uuids()[1:]
        if rest:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(rest))
            assert discover("cuda", 1)[0].id == rest[0]
        holder.communicate("")


@pytest.mark.gpu
def test_it_makes_no_difference_which_side_of_a_pair_runs_first() -> None:
    """The one whose context had not run last paid a sixth of its sample."""
    said = run_python([str(ROOT / "scripts" / "order_of_sides.py"), "--sizes", str(1 << 20)])
    logging.getLogger(__name__).info("%s", said)


@pytest.mark.gpu
def test_a_stream_keeps_its_rate_through_the_whole_arena() -> None:
    """A launch among eight on slots of their own took twice as long as one alone, while arenas ended within a page."""
    run_python([str(ROOT / "scripts" / "large_pages.py")])

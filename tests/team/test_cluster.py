"""cluster.yaml by Ray's own check, and the node bootstrap that it runs, with apt and pip replaced by recorders."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
BOOTSTRAP = ROOT / "scripts" / "node_bootstrap.sh"


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    """The configuration as Ray completes and checks it at `ray up`."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    prepared = prepare_config(yaml.safe_load((ROOT / "cluster.yaml").read_text()))
    validate_config(prepared)
    return prepared


def test_ray_accepts_it_and_refuses_a_misspelling(config: dict[str, Any]) -> None:
    from jsonschema import ValidationError
    from ray.autoscaler._private.util import validate_config

    with pytest.raises(ValidationError):
        validate_config({**config, "idle_timeout_minuets": 5})


def test_the_head_has_no_gpu_and_every_worker_has(config: dict[str, Any]) -> None:
    types = config["available_node_types"]
    head = types.pop(config["head_node_type"])
    assert head["resources"]["GPU"] == 0
    assert head["max_workers"] == 0
    assert head["node_config"]["InstanceType"].startswith("m7i.")
    assert types
    for worker in types.values():
        assert worker["resources"]["GPU"] >= 1
        assert 0 < worker["min_workers"] <= worker["max_workers"] <= config["max_workers"]
    assert config["idle_timeout_minutes"] > 0
    assert config["provider"]["type"] == "aws"
    assert config["provider"]["cache_stopped_nodes"] is False


def test_nodes_install_the_checkout_that_is_synced_to_them(config: dict[str, Any]) -> None:
    (mount,) = (remote for remote, local in config["file_mounts"].items() if local == ".")
    script = f"{mount}/{BOOTSTRAP.relative_to(ROOT)}"
    assert config["head_setup_commands"] == [f"bash {script} head"]
    assert config["worker_setup_commands"] == [f"bash {script} worker"]
    assert not any("http" in command for command in config["head_setup_commands"])
    assert "ray start --head" in config["head_start_ray_commands"][-1]
    assert "--autoscaling-config=~/ray_bootstrap_config.yaml" in config["head_start_ray_commands"][-1]
    assert "--address=$RAY_HEAD_IP:6379" in config["worker_start_ray_commands"][-1]
    assert all(
        "RAY_worker_niceness=0 ray start" in config[f"{kind}_start_ray_commands"][-1] for kind in ("head", "worker")
    )


def test_what_rsync_leaves_out_is_not_part_of_the_project(config: dict[str, Any]) -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    names = {part for path in tracked for part in Path(path).parts}
    excluded = {pattern.rstrip("/") for pattern in config["rsync_exclude"]}
    assert ".git" not in excluded, "repositories with kernels travel whole"
    assert not excluded & names


@pytest.fixture
def node(tmp_path: Path) -> dict[str, str]:
    """A machine whose apt, pip and kernelteam only write down what they were asked."""
    log = tmp_path / "asked"
    for program in ("bin/apt-get", "bin/sudo", "venv/bin/python", "venv/bin/pip", "venv/bin/kernelteam"):
        path = tmp_path / program
        path.parent.mkdir(parents=True, exist_ok=True)
        through = 'exec "$@"\n' if program.endswith("sudo") else ""
        path.write_text(f'#!/bin/sh\necho "{path.name} $*" >> "{log}"\n{through}')
        path.chmod(0o755)
    return {
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "KERNELTEAM_VENV": str(tmp_path / "venv"),
    }


def _bootstrap(node: dict[str, str], *roles: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", str(BOOTSTRAP), *roles], env=node, capture_output=True, text=True, cwd="/")


def test_the_bootstrap_installs_with_constraints_and_can_run_again(node: dict[str, str], tmp_path: Path) -> None:
    for _ in range(2):
        done = _bootstrap(node, "head")
        assert done.returncode == 0, done.stderr
    asked = (tmp_path / "asked").read_text()
    assert f"pip install --quiet -c {ROOT}/constraints.txt -e {ROOT}[cluster]" in asked
    assert "g++" in asked
    assert "kernelteam --help" in asked
    assert (tmp_path / ".bashrc").read_text().splitlines() == [f". {tmp_path}/kernelteam.env"]
    shown = subprocess.run(["bash", "-c", ". ~/kernelteam.env && command -v kernelteam"], env=node, capture_output=True)
    assert shown.stdout.decode().strip() == str(tmp_path / "venv/bin/kernelteam")


def test_the_bootstrap_says_what_is_wrong(node: dict[str, str]) -> None:
    assert _bootstrap(node).returncode == 2
    assert "usage" in _bootstrap(node, "boss").stderr
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has a driver")
    refused = _bootstrap(node, "worker")
    assert refused.returncode == 1
    assert "no NVIDIA driver" in refused.stderr

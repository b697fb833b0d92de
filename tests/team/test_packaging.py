"""What an installation holds: the examples, the runner's sources, the command; and pins for every dependency."""

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import entry_points, packages_distributions
from importlib.resources import files
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from what git tracks, without the network: the build backend is called in this environment."""
    place = tmp_path_factory.mktemp("wheel")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    source = place / "source"
    source.mkdir()
    present = b"\0".join(name for name in tracked.split(b"\0") if name and (ROOT / name.decode()).exists())
    pack = subprocess.run(
        ["tar", "-C", ROOT, "--null", "-T", "-", "-cf", "-"], input=present, capture_output=True, check=True
    )
    subprocess.run(["tar", "-C", source, "-xf", "-"], input=pack.stdout, check=True)
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(place)], cwd=source, check=True, capture_output=True)
    (built,) = place.glob("*.whl")
    return built


def test_the_wheel_holds_every_file_that_the_packages_track(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    ours = [name for name in listed if name.startswith(("protocol/", "roles/", "team/"))]
    tracked = {name for name in ours if (ROOT / name).is_file()}
    examples = {f"team/{name}" for name in listed if name.startswith("examples/")}
    assert held == tracked | examples
    assert any(name.startswith("team/examples/matmul_cpu/") for name in held)


def test_a_demo_can_be_copied_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    site, demo = tmp_path / "site", tmp_path / "demo"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    code = (
        "import sys; from pathlib import Path; from team.tasks import examples\n"
        "assert Path(examples.__file__).is_relative_to(sys.argv[1]), examples.__file__\n"
        "examples.copy_example('rmsnorm_cpu', Path(sys.argv[2]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(site)}
    subprocess.run([sys.executable, "-c", code, str(site), str(demo)], check=True, cwd=tmp_path, env=environment)
    assert (demo / "rmsnorm.cpp").read_bytes() == (ROOT / "examples/rmsnorm_cpu/rmsnorm.cpp").read_bytes()


def test_examples_are_there_in_this_installation() -> None:
    names = {folder.name for folder in (files("team") / "examples").iterdir()}
    assert {"matmul_cpu", "rmsnorm_cpu", "softmax_cpu"} <= names


def test_the_command_is_installed_and_answers_fast_enough_to_be_asked() -> None:
    (entry,) = (entry for entry in entry_points(group="console_scripts") if entry.name == "kernelteam")
    assert entry.value == "team.cli:main"
    code = "import sys; sys.argv = ['kernelteam', '--help']; from team.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "submit" in done.stdout


def test_help_loads_no_heavy_package() -> None:
    code = (
        "import sys; sys.argv = ['kernelteam', '--help']\nfrom team.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'ray', 'scipy', 'numpy', 'optuna', 'anthropic', 'libcst'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def _project() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {"core": project["dependencies"], **project["optional-dependencies"]}


def test_every_dependency_is_pinned_once_without_local_versions() -> None:
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", pin) for pin in pins)
    names = [re.sub(r"[-_.]+", "-", pin.split("==")[0]).lower() for pin in pins]
    assert len(set(names)) == len(names)
    unpinned = {"kernelteam", "pip", "setuptools"}
    assert not unpinned & set(names)
    groups = _project()
    wanted = [name for group in ("core", "dev", "cluster") for name in groups[group]]
    bare = {re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~ ]", name)[0]).lower() for name in wanted}
    assert bare - unpinned <= set(names)
    assert "torch==2.13.0" in pins


def imported() -> set[str]:
    """Top-level names of every module that the packages import, wherever in a file."""
    names: set[str] = set()
    for package in ("protocol", "roles", "team"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    names.update(alias.name.partition(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    names.add(node.module.partition(".")[0])
    return names


def test_whatever_is_imported_is_declared() -> None:
    declared = {re.split(r"[^A-Za-z0-9._-]", one)[0].lower() for group in _project().values() for one in group}
    parts = {"pydantic-core": "pydantic"}  # released together, each with the other's version
    found = packages_distributions()
    needed = {owner.lower() for name in imported() for owner in found.get(name, ())} - {"kernelteam"}
    assert {"anthropic", "gitpython", "ray", "torch"} <= needed
    assert {parts.get(owner.replace("_", "-"), owner) for owner in needed} <= declared

"""Launches in a captured graph must follow one another; a stand-in for the CUDA runtime holds graphs made by hand."""

import subprocess
from pathlib import Path

HERE = Path(__file__).parent
RUNNER = HERE.parents[2] / "team" / "judge" / "runner"


def test_overlapping_launches_are_counted(tmp_path: Path) -> None:
    program = tmp_path / "cases"
    sources = ["-I", str(HERE / "captured"), "-I", str(RUNNER), str(HERE / "captured" / "order_cases.cpp")]
    subprocess.run(["g++", "-std=c++17", "-Wall", "-Werror", *sources, "-o", str(program)], check=True)
    said = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    found = dict(line.split() for line in said.splitlines())
    assert found["chain"] == found["fork"] == "0"
    assert int(found["roots"]) == 1
    assert int(found["pool"]) >= 1
    assert found["within"] == "0"
    assert int(found["across"]) == 3

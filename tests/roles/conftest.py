"""Compiling kernels for the tests, once per text, and running them in a process of their own."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

FLAGS = ["-O1", "-march=native", "-std=c++17", "-fopenmp-simd", "-Wall", "-Wno-unknown-pragmas", "-shared", "-fPIC"]


class Workbench:
    """Builds kernels into one folder and runs them on guarded buffers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def build(self, source: str, flags: list[str] = FLAGS) -> Path:
        """The shared object of a kernel; a compiler error fails the test with the text."""
        name = hashlib.sha256((source + " ".join(flags)).encode()).hexdigest()[:16]
        library = self.folder / f"{name}.so"
        if not library.exists():
            path = self.folder / f"{name}.cpp"
            path.write_text(source)
            done = subprocess.run(["g++", *flags, str(path), "-o", str(library)], capture_output=True, text=True)
            assert done.returncode == 0, f"{done.stderr}\n{source}"
        return library

    def worst_error(self, source: str, problem: str, shapes: list[list[int]]) -> float:
        """Largest error as a share of the tolerance, over all shapes."""
        request = {"library": str(self.build(source)), "problem": problem, "shapes": shapes}
        script = Path(__file__).with_name("problems.py")
        done = subprocess.run(
            [sys.executable, str(script)], input=json.dumps(request), capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"exit {done.returncode}: {done.stderr}\n{source}"
        return max(json.loads(done.stdout))


@pytest.fixture(scope="session")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    """One folder of builds for the whole session."""
    return Workbench(tmp_path_factory.mktemp("kernels"))

"""Compiling kernels for the tests, once per text, and running them in a process of their own."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

FLAGS = ["-O1", "-march=native", "-std=c++17", "-fopenmp-simd", "-Wall", "-Wno-unknown-pragmas", "-fPIC"]
HEADERS = "#include <algorithm>\n#include <cmath>\n#include <cstdint>\n#include <cstring>\n"


class Workbench:
    """Builds kernels into one folder and runs them on guarded buffers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runner: subprocess.Popen[str] | None = None
        header = folder / "standard.h"
        header.write_text(HEADERS)
        subprocess.run(["g++", *FLAGS, "-x", "c++-header", str(header)], check=True)

    def build(self, source: str, flags: list[str] | None = None) -> Path:
        """The shared object of a kernel; a compiler error fails the test with the text."""
        options = flags or [*FLAGS, "-include", str(self.folder / "standard.h")]
        name = hashlib.sha256((source + " ".join(options)).encode()).hexdigest()[:16]
        library = self.folder / f"{name}.so"
        if not library.exists():
            path = self.folder / f"{name}.cpp"
            path.write_text(source)
            command = ["g++", *options, "-shared", str(path), "-o", str(library)]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, f"{done.stderr}\n{source}"
        return library

    def worst_error(self, source: str, problem: str, shapes: list[list[int]], flags: list[str] | None = None) -> float:
        """Largest error as a share of the tolerance, over all shapes."""
        request = {"library": str(self.build(source, flags)), "problem": problem, "shapes": shapes}
        runner = self._running()
        assert runner.stdin is not None
        assert runner.stdout is not None
        runner.stdin.write(json.dumps(request) + "\n")
        runner.stdin.flush()
        line = runner.stdout.readline()
        assert line, f"the kernel killed its process, exit {runner.wait()}\n{source}"
        return max(json.loads(line))

    def _running(self) -> subprocess.Popen[str]:
        if self.runner is None or self.runner.poll() is not None:
            command = [sys.executable, str(Path(__file__).with_name("problems.py"))]
            self.runner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self.runner

    def close(self) -> None:
        """Lets the runner end."""
        if self.runner is not None and self.runner.stdin is not None:
            self.runner.stdin.close()
            self.runner.wait(timeout=30)


@pytest.fixture(scope="session")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """One folder of builds and one runner for the whole session."""
    bench = Workbench(tmp_path_factory.mktemp("kernels"))
    yield bench
    bench.close()

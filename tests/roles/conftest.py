"""Compiling kernels for the tests, once per text, and running them in a process of their own."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from roles.techniques.cpp.syntax import Edit, field, of_type, parse, text_of

FLAGS = ["-O1", "-march=native", "-std=c++17", "-fopenmp-simd", "-Wall", "-Wno-unknown-pragmas", "-fPIC"]
HEADERS = "#include <algorithm>\n#include <cmath>\n#include <cstdint>\n#include <cstring>\n"
EMULATOR = Path(__file__).with_name("emulator")
EMULATED = ["-O0", "-std=c++17", "-fPIC", "-w"]
LINKER = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []  # three times as fast as the other
INSTRUCTIONS = {
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32": "emulator::mma_16x8x8(sum, a, b)",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": "emulator::mma_16x8x16(sum, a, b)",
    "cvt.rn.bf16x2.f32": "both = emulator::bf16(second) << 16 | emulator::bf16(first)",
}
NVCC = ["-O3", "-std=c++17", "-Xptxas", "-v"]
NVCC_TARGET = "-gencode=arch=compute_90a,code="


def emulated(source: str) -> str:
    """A CUDA text as C++ for the emulator: launches become calls, so does the matrix instruction, and dynamic shared
    memory gets the largest size that there is."""
    dynamic = "extern __shared__ float4 shared_tiles[];"
    tree = parse(source.replace(dynamic, "static float4 shared_tiles[227 * 64];"), "cuda")
    edits = []
    for each in of_type(tree.root, "gnu_asm_expression"):
        meant = next(call for instruction, call in INSTRUCTIONS.items() if f'"{instruction} ' in text_of(each))
        edits.append(Edit(each.start_byte, each.end_byte, meant))
    for call in of_type(tree.root, "call_expression"):
        configuration = [child for child in call.children if child.type == "kernel_call_syntax"]
        if configuration:
            grid, block = (text_of(each) for each in configuration[0].named_children[:2])
            invoked = text_of(field(call, "function")) + text_of(field(call, "arguments"))
            text = f"emulator::launch({grid}, {block}, [&] {{ {invoked}; }})"
            edits.append(Edit(call.start_byte, call.end_byte, text))
    return tree.replace(*edits)


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
            command = ["g++", *LINKER, "-shared", str(path), *options, "-o", str(library)]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, f"{done.stderr}\n{source}"
        return library

    def worst_error(self, source: str, problem: str, shapes: list[list[int]], flags: list[str] | None = None) -> float:
        """Largest error as a share of the tolerance, over all shapes."""
        return self._worst({"library": str(self.build(source, flags)), "problem": problem, "shapes": shapes}, source)

    def _worst(self, request: dict[str, object], source: str) -> float:
        runner = self._running()
        assert runner.stdin is not None
        assert runner.stdout is not None
        runner.stdin.write(json.dumps(request) + "\n")
        runner.stdin.flush()
        line = runner.stdout.readline()
        assert line, f"the kernel killed its process, exit {runner.wait()}\n{source}"
        return max(json.loads(line))

    def cuda_error(self, source: str, problem: str, shapes: list[list[int]], alignment: int = 16) -> float:
        """Like ``worst_error``, of a CUDA kernel that the emulator runs; buffers have this alignment."""
        library = self.build(emulated(source), [*EMULATED, *self._emulator()])
        return self._worst(
            {"library": str(library), "problem": problem, "shapes": shapes, "alignment": alignment}, source
        )

    def _emulator(self) -> list[str]:
        """Options that build a kernel upon the emulator, which is built at its first use."""
        header, built = self.folder / "cuda_runtime.h", self.folder / "libemulator.so"
        if not built.exists():
            for path in EMULATOR.glob("*.h"):
                shutil.copy(path, self.folder)
            subprocess.run(["g++", *EMULATED, "-x", "c++-header", str(header)], check=True)
            source = str(EMULATOR / "emulator.cpp")
            subprocess.run(["g++", *EMULATED, "-O3", "-shared", source, "-o", str(built)], check=True)
        return ["-I", str(self.folder), "-include", str(header), str(built), f"-Wl,-rpath,{self.folder}"]

    def nvcc(self, source: str, *options: str) -> str:
        """What the compiler says about a kernel built for sm_90a; an error fails the test with the text."""
        path = self.folder / f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.cu"
        path.write_text(source)
        target = NVCC_TARGET + ("compute_90a" if "-ptx" in options else "sm_90a")
        command = ["nvcc", *NVCC, target, *options, str(path), "-o", str(path.with_suffix(".out"))]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stderr}\n{source}"
        return path.with_suffix(".out").read_text(errors="replace") if "-ptx" in options else done.stderr

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

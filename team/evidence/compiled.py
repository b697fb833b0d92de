"""What compilers say of a kernel where nothing measures it. It stands in for a profile, and the report says so."""

import re
import subprocess
import tempfile
from pathlib import Path

from protocol.messages import ProfileReport
from team.judge.build import kernel_flags
from team.judge.cuda.ptxas import kernel_uses
from team.judge.tvm_ffi import header_flags
from team.tasks.spec import TaskSpec

_REMARK = re.compile(r"^([^:]+):(\d+):\d+: (optimized|missed): (.*)$")
_MOST = 24


def compiler_report(spec: TaskSpec, tree: Path, commit: str) -> ProfileReport:
    """The compiler's remarks on the kernel at ``tree``, built with the judge's flags."""
    if spec.contract == "triton":
        claim = "a Triton kernel is compiled for a GPU only when it is traced there: nothing was profiled"
        return ProfileReport(commit=commit, tool="none", claim=claim)
    return _on_gpu(spec, tree, commit) if spec.device == "cuda" else _on_cpu(spec, tree, commit)


def _on_gpu(spec: TaskSpec, tree: Path, commit: str) -> ProfileReport:
    """Registers, shared memory and spills of every kernel in the source."""
    flags = (*(spec.build.flags or ("-O3", "-std=c++17")), *_headers(spec))
    with tempfile.TemporaryDirectory(prefix="kernelteam-remarks-") as scratch:
        command = ["nvcc", *flags, "-arch=native", "-Xptxas", "-v", "--default-stream", "per-thread", "-cubin"]
        command += [str(tree / spec.source), "-o", f"{scratch}/kernel.cubin"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=spec.build.timeout_s, check=False)
    uses = kernel_uses(done.stderr)
    metrics = {
        "registers_per_thread": float(max(use.registers for use in uses)),
        "spilled_bytes": float(sum(use.spilled for use in uses)),
    }
    return ProfileReport(
        commit=commit,
        tool="nvcc -Xptxas -v",
        metrics=metrics if uses else {},
        remarks=tuple(str(use) for use in uses[:_MOST]),
        claim="the assembler's report stands in for a profile: it bounds occupancy and does not say what limits time",
    )


def _on_cpu(spec: TaskSpec, tree: Path, commit: str) -> ProfileReport:
    """What the vectoriser did and did not do."""
    with tempfile.TemporaryDirectory(prefix="kernelteam-remarks-") as scratch:
        command = [
            "g++", *kernel_flags(spec.numerics, spec.build.flags), "-fopt-info-vec-optimized", "-fopt-info-vec-missed",
            *_headers(spec), str(tree / spec.source), "-o", f"{scratch}/kernel.so",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=spec.build.timeout_s, check=False)
    remarks = _remarks(done.stderr, spec, tree)
    optimised = sum(kind == "optimized" for kind, _ in remarks)
    return ProfileReport(
        commit=commit,
        tool="g++ -fopt-info-vec",
        metrics={"loops_vectorised": float(optimised)},
        remarks=tuple(text for _, text in remarks[:_MOST]),
        claim="compiler remarks stand in for a profile; they say what was vectorised, not what limits the kernel",
    )


def _headers(spec: TaskSpec) -> tuple[str, ...]:
    """Where the headers of a kernel's binding lie."""
    return header_flags() if spec.build.binding == "tvm-ffi" else ()


def _remarks(stderr: str, spec: TaskSpec, tree: Path) -> list[tuple[str, str]]:
    """(kind, 'line N: remark') of the files that may be edited, without repeats, the optimised loops first."""
    shown = {str(tree / name): f"{name} " * (len(spec.editable_files) > 1) for name in spec.editable_files}
    found: dict[tuple[str, str], None] = {}
    for line in stderr.splitlines():
        match = _REMARK.search(line)
        if match and match[1] in shown and "loop" in match[4]:
            found[(match[3], f"{shown[match[1]]}line {match[2]}: {match[3]}: {match[4].strip()}")] = None
    return sorted(found, key=lambda remark: remark[0] != "optimized")

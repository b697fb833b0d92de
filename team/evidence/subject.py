"""What is profiled on a GPU: the judge's small program with a built kernel and inputs of the judge's making. Trusted.

The candidate's code runs inside it. Where the profiler of the machine works with the sandbox's second half (no new
privileges, Landlock, seccomp, limits), it is entered before the kernel is loaded; whether it does is tried with a
kernel of the judge's own, so that no candidate has a say in it. What is never confined under a profiler: the uid, since
counters may be root's alone, and what the profiler's own library in that process had opened before.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from team.devices.cuda import CudaDevice
from team.evidence.ncu import Kind, NcuFailed, collect
from team.judge.artifact import Artifact
from team.judge.build import Builder
from team.judge.cuda.build import kernel_recipe, lent_signature
from team.judge.cuda.sanitize import launch_plan, standalone_recipe
from team.judge.shim import shim_recipe
from team.runs import home
from team.tasks.signature import Signature, parse_signature
from team.tasks.spec import Workload
from team.tasks.task import Task

PROBE_S = 30.0
TIME_S = 60.0  # seconds for the timing of one workload
LIFE_S = 600  # seconds after which the program ends itself, should nobody be left to end it
_PROBE = """\
__global__ void probe(float* out, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) out[at] = at;
}
extern "C" void solve(float* out, int n) { probe<<<(n + 255) / 256, 256>>>(out, n); }
"""
_PROBE_ELEMENTS = 1 << 16


@dataclass
class Tools:
    """What it takes to build and start subjects on one GPU."""

    device: CudaDevice
    host: Builder
    native: Builder

    def command(self, kernel: Artifact, signature: Signature, plan: Path) -> list[str]:
        """The program with one kernel and one launch plan."""
        program = self.native.build(standalone_recipe(self.device.target))
        shim = self.host.build(shim_recipe(lent_signature(signature)))
        return [str(program.path), str(shim.path), kernel.listed, str(plan)]

    def confined(self, command: list[str], mode: str, room: Path, ncu: str) -> list[str]:
        """The same under the sandbox: it may read its own files and those of ``ncu``, if any, and write in its room."""
        places = {str(Path(path).parent) for listed in command for path in listed.split(":")}
        places |= {"/proc/self", "/opt/nvidia", *([str(Path(ncu).resolve().parent)] if ncu else [])}
        return [*command, mode, str(LIFE_S), ":".join(sorted(places)), str(room), ":".join(self.device.nodes)]

    def open(self, command: list[str], mode: str) -> list[str]:
        """The same without."""
        return [*command, mode, str(LIFE_S)]

    def environment(self, room: Path) -> dict[str, str]:
        """A clean environment that shows one GPU; what is written goes to ``room``."""
        found = {
            "PATH": os.environ.get("PATH", ""),
            "LC_ALL": "C",
            "HOME": str(room),
            "TMPDIR": str(room),
            "CUDA_VISIBLE_DEVICES": self.device.id,
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_CACHE_DISABLE": "1",
            "CUDA_MODULE_LOADING": "EAGER",
        }
        return found | {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}


def write_plan(task: Task, workload: Workload, room: Path) -> Path:
    """Inputs of one workload, as the judge makes them, where the program reads them."""
    plan = room / "plan"
    plan.write_bytes(launch_plan(task, workload))
    return plan


def timed(command: list[str], environment: Mapping[str, str], room: Path) -> float:
    """Nanoseconds of one call from a cold L2, the median of up to 50; ``NcuFailed`` when it does not end well."""
    try:
        done = subprocess.run(
            command, cwd=room, env=dict(environment), capture_output=True, text=True, timeout=TIME_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise NcuFailed(Kind.TIMED_OUT, f"its calls did not end within {TIME_S:g} s") from None
    lines = [line for line in done.stdout.splitlines() if line.startswith("median_ns ")]
    if done.returncode != 0 or not lines:
        said = " ".join(done.stdout.split())[-200:]
        raise NcuFailed(Kind.FAILED, f"the program around it left with status {done.returncode}: {said or 'no words'}")
    return float(lines[-1].split()[1])


@dataclass(frozen=True)
class Permission:
    """Counters can be read here; ``confined``: also while the subject is."""

    confined: bool


def permission(tools: Tools, ncu: str, room: Path) -> Permission:
    """What ``probe`` found with this profiler on this machine since it was booted; a refusal is never remembered."""
    kept = home() / "ncu" / f"{tools.device.id}.json"
    now = [ncu, os.stat(ncu).st_mtime_ns, Path("/proc/sys/kernel/random/boot_id").read_text().strip()]
    try:
        *then, confined = json.loads(kept.read_text())
        if then == now:
            return Permission(bool(confined))
    except (OSError, ValueError):
        pass
    found = probe(tools, ncu, room)
    kept.parent.mkdir(parents=True, exist_ok=True)
    fresh = kept.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps([*now, found.confined]))
    fresh.replace(kept)
    return found


def probe(tools: Tools, ncu: str, room: Path) -> Permission:
    """Read counters of a kernel of our own, first confined, then not; raises ``NcuFailed`` when neither works.

    That the profiler lists its metrics says nothing about it: the driver refuses only when counters are read.
    """
    recipe = kernel_recipe({"probe.cu": _PROBE}, "probe.cu", tools.device.target, "reference", None, 120.0)
    kernel, plan = tools.native.build(recipe), room / "probe-plan"
    words = (3, 1, 4 * _PROBE_ELEMENTS, 0, _PROBE_ELEMENTS, 3, 0)
    plan.write_bytes(b"".join(word.to_bytes(8, "little") for word in words))
    command = tools.command(kernel, parse_signature(_PROBE, "cuda"), plan)
    environment = tools.environment(room)
    try:
        _read(ncu, tools.confined(command, "profile", room, ncu), room, environment)
        return Permission(confined=True)
    except NcuFailed as failed:
        if failed.kind in (Kind.DENIED, Kind.MISSING, Kind.UNAVAILABLE):
            raise
    _read(ncu, tools.open(command, "profile"), room, environment)
    return Permission(confined=False)


def _read(ncu: str, program: list[str], room: Path, environment: Mapping[str, str]) -> None:
    """Collect sections on the probe; the launch must be there with what counters alone can say."""
    found = collect(ncu, program, "light", frozenset(), room / "probe.ncu-rep", environment, PROBE_S)
    if not any(name.startswith("sm__") for name in found.launches[0].values):
        raise NcuFailed(Kind.FAILED, "the profiler's report holds no counter")

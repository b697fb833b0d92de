"""The profile of a kernel on a CPU: times of every workload, and the hardware's counters where ``perf stat`` may count.

The whole program is counted, its start included, which is small beside the second or so of calls. A CPU gets no
position: its counters here do not say how much of the cores or of the memory is used.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from protocol.messages import ProfileReport, Roofline
from team.devices.cpu import CpuDevice
from team.evidence.counters import counted, missing_counters
from team.evidence.ncu import NcuFailed
from team.evidence.roofline import peaks_for, roofline
from team.evidence.subject import timed
from team.judge.artifact import Artifact
from team.judge.build import Builder, Recipe
from team.judge.cpu_roofs import ensure_roofs
from team.judge.cuda.sanitize import launch_plan
from team.judge.shim import shim_recipe
from team.tasks.spec import Workload
from team.tasks.task import Task

EVENTS = ("cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses")
CALLS_MS = 300  # milliseconds of calls per workload
LIFE_S = 120
_RUNNER = Path(__file__).parents[1] / "judge" / "runner"
TIMES = "times are medians of calls in a row, whose data caches may hold"


def ratios(counts: dict[str, float]) -> dict[str, float]:
    """What the counts say by themselves: instructions per cycle, and shares of misses."""
    pairs = {
        "ipc": ("instructions", "cycles"),
        "cache_miss_rate": ("cache-misses", "cache-references"),
        "branch_miss_rate": ("branch-misses", "branches"),
    }
    there = {name: pair for name, pair in pairs.items() if pair[0] in counts and counts.get(pair[1])}
    return {name: counts[part] / counts[whole] for name, (part, whole) in there.items()}


def profile_on_cpu(
    task: Task, kernel: Artifact, host: Builder, device: CpuDevice, stand_in: ProfileReport
) -> ProfileReport:
    """Times and, where they may be had, counters of a built kernel, beside what the compiler says.

    The calling process moves to the cores that kernels run on.
    """
    ensure_roofs(device)
    os.sched_setaffinity(0, device.kernel_cores)
    remarks, times = list[str](), dict[str, float]()
    with tempfile.TemporaryDirectory(prefix="kernelteam-profile-") as folder:
        room = Path(folder)
        for workload in task.workloads:
            try:
                times[workload.name] = timed(_command(task, kernel, host, workload, room), _environment(room), room)
            except NcuFailed as failed:
                remarks.append(f"{workload.name} was not timed: {failed.what}")
        chosen = max(task.workloads, key=lambda one: one.weight * times.get(one.name, 0.0))
        why = missing_counters()
        counts = {} if why else _counts(_command(task, kernel, host, chosen, room), room)
    there = [workload for workload in task.workloads if workload.name in times]
    update = {
        "workload": chosen.name,
        "rooflines": tuple(_roofline(task, one, times[one.name], device) for one in there),
        "remarks": (*([why] if why else []), *remarks, *stand_in.remarks),
        "metrics": {**stand_in.metrics, **ratios(counts)},
        "level": "counters" if counts else "timing" if times else "compiler",
        "tool": f"perf stat and {stand_in.tool}" if counts else stand_in.tool,
        "claim": f"{TIMES}; the roofs are of memory or of the first-level cache, and twice the rate of multiply-adds; "
        f"{'counters of the whole program' if counts else 'compiler remarks'} stand in for a profile",
    }
    return stand_in.model_copy(update=update)


def _counts(command: list[str], room: Path) -> dict[str, float]:
    events = ",".join(f"{event}:u" for event in EVENTS)
    watched = ["perf", "stat", "-x", ",", "-e", events, "--", *command]
    try:
        done = subprocess.run(
            watched, cwd=room, env=_environment(room), capture_output=True, text=True, timeout=LIFE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {}
    return counted(done.stderr) if done.returncode == 0 else {}


def _command(task: Task, kernel: Artifact, host: Builder, workload: Workload, room: Path) -> list[str]:
    files = {name: (_RUNNER / name).read_text() for name in ("standalone.cpp", "standalone.h", "sandbox.h")}
    program = host.build(Recipe(files, "standalone.cpp", ("-O2", "-std=c++17"), ours=True))
    shim, plan = host.build(shim_recipe(task.signature)), room / "plan"
    plan.write_bytes(launch_plan(task, workload, task.signature))
    loaded = (str(program.path), str(shim.path), *kernel.listed.split(":"))
    readable = ":".join(str(Path(path).parent) for path in loaded)
    return [str(program.path), str(shim.path), kernel.listed, str(plan), str(LIFE_S), str(CALLS_MS), readable]


def _environment(room: Path) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "HOME": str(room), "TMPDIR": str(room)}


def _roofline(task: Task, workload: Workload, took_ns: float, device: CpuDevice) -> Roofline:
    model = task.floor(workload)
    peaks = peaks_for(device.info(), model)
    return roofline(workload.name, took_ns, model, peaks, task.outputs[0].parameter.dtype)

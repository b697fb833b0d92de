"""compute-sanitizer on one launch of a candidate: what its four tools find, as typed results. Trusted.

The candidate is not, and runs here without the runner's sandbox, because the tools need the process to themselves: only
a kernel that the judge has already found correct is worth the question. What matters to a verdict stays with the judge;
this finds races that never showed, and accesses beyond a buffer that met no guard band.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch

from protocol.methods import Sanitized as Told
from protocol.methods import Tool
from team.devices.cuda import CudaDevice
from team.errors import UserError
from team.judge.artifact import Artifact
from team.judge.build import Builder, Recipe
from team.judge.cuda.build import architecture, lent_signature
from team.judge.shim import scalar_word, shim_recipe
from team.judge.unlisted import smallest
from team.tasks.signature import Signature
from team.tasks.spec import Workload
from team.tasks.task import Task

TOOLS: tuple[Tool, ...] = ("memcheck", "racecheck", "initcheck", "synccheck")
FOUND = 99  # exit status that the tool is asked to leave with when it has found something
TIMEOUT_S = 300.0  # seconds for one tool; racecheck slows a kernel down by orders of magnitude
SHOWN = 8  # findings that are kept of each tool
_LINE = re.compile(r"^=+ ?(.*)$")
_SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazards? displayed \((\d+) errors?")
_FINDING = re.compile(
    r"Invalid |Uninitialized |Race reported|Potential \w+ hazard|Barrier error|Misaligned |Program hit |Fatal "
    r"|Internal |Out-of-range|Divergent|Unsupported|Malloc/Free"
)
_PLACE = re.compile(r"\s+at (?:0x\w+ in )?(\S.*?)(?:\+0x[0-9a-f]+)?(?: in (\S+:\d+))?\s*(?::.*)?$")


@dataclass(frozen=True)
class Sanitized:
    """What one tool found in one launch: the number of errors, and the first findings with their places.

    ``ran``: whether it did its work to the end; if not, ``findings`` say why, and nothing is known.
    """

    tool: Tool
    errors: int
    findings: tuple[str, ...] = ()
    ran: bool = True

    @property
    def clean(self) -> bool:
        """Whether the tool ran to its end and found nothing."""
        return self.errors == 0


def sanitize(
    task: Task, kernel: Artifact, device: CudaDevice, host: Builder, native: Builder, tools: Sequence[Tool] = TOOLS
) -> tuple[Sanitized, ...]:
    """Launch ``kernel`` once on the smallest workload under each tool; the tools run side by side."""
    if shutil.which("compute-sanitizer") is None:
        remedy = "Install the CUDA toolkit and put its bin folder on the PATH."
        raise UserError("compute-sanitizer is not on the PATH.", remedy)
    program = native.build(standalone_recipe(device.target))
    shim = host.build(shim_recipe(lent_signature(task.signature)))
    with tempfile.TemporaryDirectory(prefix="kernelteam-sanitize-") as folder:
        plan = Path(folder) / "plan"
        plan.write_bytes(launch_plan(task))
        command = [str(program.path), str(shim.path), kernel.listed, str(plan)]
        with ThreadPoolExecutor(len(tools)) as pool:
            return tuple(pool.map(lambda tool: _run(tool, command, device, Path(folder)), tools))


def findings_beyond(
    task: Task,
    kernels: tuple[Artifact, Artifact],
    device: CudaDevice,
    builders: tuple[Builder, Builder],
    tools: Sequence[Tool],
) -> tuple[Told, ...]:
    """What each tool says of the first kernel. What the second, its base, shows as well is nobody's finding.

    ``builders``: for the host, and for kernels.
    """
    candidate, base = kernels
    try:
        seen = sanitize(task, candidate, device, *builders, tools)
        doubtful: list[Tool] = [one.tool for one in seen if one.ran and not one.clean]
        before = {one.tool: one for one in sanitize(task, base, device, *builders, doubtful)} if doubtful else {}
    except UserError as missing:
        return tuple(Told(tool=tool, status="unchecked", why=missing.what) for tool in tools)
    return tuple(_told(one, before.get(one.tool)) for one in seen)


def _told(seen: Sanitized, base: Sanitized | None) -> Told:
    if not seen.ran:
        return Told(tool=seen.tool, status="unchecked", why="; ".join(seen.findings))
    if seen.clean:
        return Told(tool=seen.tool, status="clean")
    if base is not None and base.ran and not base.clean:
        return Told(tool=seen.tool, status="unchecked", why=f"it says so of the base, too: {seen.findings[0]}")
    return Told(tool=seen.tool, status="found", findings=seen.findings)


def standalone_recipe(target: str) -> Recipe:
    """How to build the program that launches once."""
    folder = Path(__file__).parent.parent / "runner"
    files = {name: (folder / name).read_text() for name in ("standalone.cu", "standalone.h", "sandbox.h")}
    flags = ("-O2", "-std=c++17", "--default-stream", "per-thread", architecture(target))
    return Recipe(files, "standalone.cu", flags, ours=True)


def launch_plan(task: Task, workload: Workload | None = None, call: Signature | None = None) -> bytes:
    """One launch: kinds and values of the arguments, then the inputs' contents.

    By default on the smallest workload, and with the call that is made on a GPU.
    """
    workload, signature = workload or smallest(task), call or lent_signature(task.signature)
    inputs = task.make_inputs(workload, int.from_bytes(os.urandom(6), "little"))
    buffers = {buffer.name: buffer for buffer in task.buffers}
    words, contents = [len(signature.parameters)], list[bytes]()
    for parameter in signature.parameters:
        if parameter.is_stream:
            words += [3, 0]
        elif not parameter.pointer:
            words += [0, scalar_word(parameter, task.numbers(workload)[parameter.name])]
        else:
            buffer = buffers[parameter.name]
            size = torch.Size(task.shape(buffer, workload)).numel() * buffer.dtype.itemsize
            words += [2 if buffer.is_read else 1, size]
            if buffer.is_read:
                contents.append(bytes(inputs[buffer.name].contiguous().cpu().flatten().view(torch.uint8).numpy()))
    return b"".join([*(word.to_bytes(8, "little") for word in words), *contents])


def _run(tool: Tool, command: list[str], device: CudaDevice, folder: Path) -> Sanitized:
    watched = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(FOUND), "--print-limit", "50", *command]
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "LC_ALL": "C",
        "CUDA_VISIBLE_DEVICES": device.id,
        "HOME": str(folder),
    }
    environment |= {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    with (
        (folder / tool).open("wb") as log,
        subprocess.Popen(
            watched,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            process_group=0,
        ) as process,
    ):
        try:
            status = process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return Sanitized(tool, 1, (f"{tool} did not end within {TIMEOUT_S:g} s",), ran=False)
    return verdict(tool, (folder / tool).read_text(errors="replace"), status)


def verdict(tool: Tool, output: str, status: int) -> Sanitized:
    """What a tool's output and exit status say. Without a summary it did not do its work, which is no clean result."""
    findings: list[str] = []
    counts: list[int] = []
    pending = False
    for line in output.splitlines():
        said = _LINE.match(line)
        if said is None:
            continue
        if summary := _SUMMARY.search(said.group(1)):
            counts.append(int(next(group for group in (summary.group(3), summary.group(1)) if group is not None)))
        elif _FINDING.search(said.group(1)):
            findings.append(" ".join(said.group(1).split()))
            pending = True
        elif pending and (place := _PLACE.match(said.group(1))):
            findings[-1] += f", in {place.group(1)}" + (f" at {place.group(2)}" if place.group(2) else "")
            pending = False
    if not counts:
        tail = " ".join(output.split())[-300:]
        return Sanitized(tool, 1, (f"{tool} gave no summary (exit status {status}): {tail}",), ran=False)
    errors = max(counts[-1], 1 if status != 0 else 0)
    if errors and not findings:
        findings = [f"{tool} left with exit status {status}"]
    return Sanitized(tool, errors, tuple(dict.fromkeys(findings))[:SHOWN])

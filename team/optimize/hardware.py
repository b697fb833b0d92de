"""The hardware gate: tools found and started, a CUDA context really made, before anything is generated.

Asked at the start of a run (three tries) and again before every iteration. What a C++ baseline needs is its compiler.
"""

import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from team.devices import discover
from team.devices.device import Device
from team.errors import UserError
from team.evidence.sass import find_tool
from team.optimize.gates import Stopped
from team.optimize.options import Options

DELAYS_S = (0.0, 1.0, 2.0)
VERSION_S = 15.0
CONTEXT_S = 120.0
_CONTEXT = "import torch; torch.zeros(1, device='cuda').item(); print(torch.cuda.get_device_name(0))"
_TOOLS = {"cpp": ("g++",), "cuda": ("nvcc", "cuobjdump"), "triton": ()}


def use_chosen_tools(options: Options) -> None:
    """Let this process and its children find the compiler and see the one GPU that the user chose."""
    if options.language != "cpp":
        os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", ""), *_toolkits()])
    if options.nvcc_bin is not None and options.language != "cpp":
        if not options.nvcc_bin.is_file():
            raise UserError(f"There is no compiler {options.nvcc_bin}.", "Correct --nvcc-bin.")
        os.environ["PATH"] = f"{options.nvcc_bin.resolve().parent}{os.pathsep}{os.environ.get('PATH', '')}"
    if options.gpu and options.language != "cpp":
        from team.devices.nvml import visible_uuids

        seen = visible_uuids()
        if options.gpu >= len(seen):
            raise UserError(f"There is no GPU {options.gpu}: {len(seen)} are visible.", "Correct --gpu.")
        os.environ["CUDA_VISIBLE_DEVICES"] = seen[options.gpu]


def _toolkits() -> list[str]:
    """Where toolkits are when nobody put them on the PATH; behind it, so that the user's choice comes first."""
    named = [Path(os.environ[name]) / "bin" for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    places = [
        *named,
        *sorted(Path("/usr/local").glob("cuda*/bin"), reverse=True),
        *sorted(Path("/opt").glob("cuda*/bin")),
    ]
    return [str(place) for place in places if place.is_dir()]


def device_of(options: Options) -> Device:
    """The device that the run is judged on."""
    return discover("cpu" if options.language == "cpp" else "cuda", 1)[0]


def hardware_gate(options: Options, iteration: int = 0, wait: Callable[[float], None] = time.sleep) -> dict[str, Any]:
    """What ``env.json`` says; ``Stopped`` when something that is needed is not there after three tries."""
    attempts: list[dict[str, Any]] = []
    for number, delay in enumerate(DELAYS_S, start=1):
        wait(delay)
        attempts.append({"attempt": number, **_attempt(options, with_context=iteration == 0)})
        if attempts[-1]["passed"]:
            return _environment(options, attempts, "")
    reason = "iteration_hardware_unavailable" if iteration else "environment_unavailable"
    told = "; ".join(attempts[-1]["errors"])
    stopped = Stopped("iteration" if iteration else "setup", reason, told, iteration, len(attempts))
    stopped.environment = _environment(options, attempts, reason)
    raise stopped


def _attempt(options: Options, with_context: bool) -> dict[str, Any]:
    errors: list[str] = []
    tools: dict[str, str | None] = {}
    versions: dict[str, str] = {}
    for name in _TOOLS[options.language]:
        tools[name] = shutil.which(name) or find_tool(name)
        versions[name] = _version(tools[name] or name, errors)
    on_gpu = options.language != "cpp"
    ncu = _ncu(options, errors) if on_gpu else {"available": False, "reason": "not_applicable: no GPU is used"}
    probe = _context(errors) if on_gpu and with_context else {"ran": False}
    if options.language == "triton" and find_spec("triton") is None:
        errors.append("the module triton is missing: pip install 'kernelteam[triton]'")
    return {
        "resolved_tools": tools,
        "tool_versions": versions,
        "ncu": ncu,
        "gpu_probe": probe,
        "python_dependencies": {"torch": find_spec("torch") is not None, "triton": find_spec("triton") is not None},
        "errors": errors,
        "passed": not errors,
    }


def _version(name: str, errors: list[str]) -> str:
    """The last telling line of ``NAME --version``; what goes wrong is added to ``errors``."""
    try:
        done = subprocess.run([name, "--version"], capture_output=True, text=True, timeout=VERSION_S, check=False)
    except FileNotFoundError:
        errors.append(f"{name} is not on the PATH")
        return ""
    except (OSError, subprocess.TimeoutExpired) as failure:
        errors.append(f"{name} --version failed: {failure}")
        return ""
    if done.returncode != 0:
        errors.append(f"{name} --version ended with status {done.returncode}")
    lines = done.stdout.strip().splitlines() or [""]
    return next((line for line in lines if "release" in line), lines[0]).strip()


def _ncu(options: Options, errors: list[str]) -> dict[str, Any]:
    """Whether ncu is there. Whether it may read counters is known when it has profiled a kernel."""
    own: list[str] = []
    said = _version("ncu", own)
    if own and options.ncu_policy == "required":
        errors += own
    return {"available": not own, "path": shutil.which("ncu"), "version": said, "reason": "; ".join(own)}


def _context(errors: list[str]) -> dict[str, Any]:
    """Make a CUDA context in a process of its own: that nvidia-smi answers proves nothing."""
    command = [sys.executable, "-c", _CONTEXT]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CONTEXT_S, check=False)
    except subprocess.TimeoutExpired:
        errors.append(f"a CUDA context was not made within {CONTEXT_S:.0f} s")
        return {"ran": True, "passed": False}
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        errors.append(f"a CUDA context cannot be made: {last}")
    return {"ran": True, "passed": done.returncode == 0, "device": done.stdout.strip()}


def _environment(options: Options, attempts: list[dict[str, Any]], reason: str) -> dict[str, Any]:
    last = attempts[-1]
    return {
        "schema_version": 1,
        "platform": platform.platform(),
        "python": platform.python_version(),
        "attempts": attempts,
        "required_checks": [*_TOOLS[options.language], *(["context"] if options.language != "cpp" else [])],
        "generation_allowed": not reason,
        "stop_reason": reason,
        "hardware_attempts": len(attempts),
        "gpus": _gpus() if options.language != "cpp" else [],
        "primary_sm_arch": next((gpu["sm_arch"] for gpu in _gpus()), "") if options.language != "cpp" else "",
        "ncu": last["ncu"],
        "nvcc": _tool(last, "nvcc"),
        "cuobjdump": _tool(last, "cuobjdump"),
        "host_compiler": _tool(last, "g++"),
        "cutlass_include_dir": str(cutlass_include() or ""),
    }


def _tool(attempt: dict[str, Any], name: str) -> dict[str, Any]:
    path = attempt["resolved_tools"].get(name) or shutil.which(name)
    return {"available": path is not None, "path": path, "version": attempt["tool_versions"].get(name, "")}


def _gpus() -> list[dict[str, Any]]:
    from team.devices.nvml import described, visible_uuids

    try:
        uuids = visible_uuids()
    except UserError:
        return []
    found: list[dict[str, Any]] = []
    for index, uuid in enumerate(uuids):
        told = described(uuid)
        capability = str(told.get("compute capability", ""))
        found.append({
            "index": index, "uuid": uuid, "name": told.get("name"), "compute_capability": capability,
            "sm_arch": f"sm_{capability.replace('.', '')}",
            "total_memory_mb": int(told.get("memory bytes", 0)) // 2**20, "driver_version": told.get("driver", ""),
        })  # fmt: skip
    return found


def cutlass_include() -> Path | None:
    """The folder with both ``cutlass/`` and ``cute/``, where the skills look for it."""
    named = [os.environ.get("CUTLASS_PATH"), os.environ.get("CUTLASS_INCLUDE_DIR")]
    places = [Path(one) for one in named if one]
    places += [place / "include" for place in places]
    places += [*sorted(Path("/usr/local").glob("cutlass*/include")), Path("/opt/cutlass/include")]
    return next((one for one in places if (one / "cutlass").is_dir() and (one / "cute").is_dir()), None)

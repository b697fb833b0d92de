"""Run a candidate's host code once per workload and write down what it asks of the GPU. Not trusted.

usage: python tracing.py        one frame on standard input, one frame on standard output; see ``shop.py``

A process of its own, without a GPU: tensors have no memory, and in the place of Triton's driver stands one that
compiles and notes launches down. What leaves is a plan: kernels as machine code, and per workload the launches, fills
and copies in their order.
"""

import contextlib
import importlib.util
import os
import subprocess
import sys
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import torch
from recording import META, Lens, Recorder, Refused, Trace
from standin import Driver


def traced(run_kernel: Callable[..., Any], workload: dict[str, Any], trace: Trace) -> dict[str, Any]:
    """The plan of one workload."""
    trace.begin()
    named: dict[str, Any] = dict(workload["values"])
    for number, tensor in enumerate(workload["tensors"]):
        made = torch.empty(tensor["shape"], dtype=getattr(torch, tensor["dtype"]), device=META)
        trace.lend(made, number)
        named[tensor["name"]] = made
    outputs = [named[name] for name in workload["outputs"]]
    with Recorder(trace), Lens(trace):
        returned = run_kernel(**chosen(run_kernel, named))
    for name, target, value in results(workload["outputs"], outputs, returned):
        if not isinstance(value, torch.Tensor):
            raise Refused(f"run_kernel returned a {type(value).__name__} for '{name}'")
        trace.copy(target, value)
    return {"name": workload["name"], "scratch": trace.scratch, "steps": trace.steps}


def chosen(function: Callable[..., Any], named: dict[str, Any]) -> dict[str, Any]:
    """Those arguments that a function names; all of them when it takes any."""
    import inspect

    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return named
    return {name: value for name, value in named.items() if name in {parameter.name for parameter in parameters}}


def results(names: list[str], targets: list[Any], returned: Any) -> list[tuple[str, Any, Any]]:
    """(name, where it belongs, what was returned) of every output that run_kernel returned instead of writing it."""
    if returned is None:
        return []
    if isinstance(returned, dict):
        return [(name, target, returned[name]) for name, target in zip(names, targets, strict=True) if name in returned]
    values = list(returned) if isinstance(returned, tuple | list) else [returned]
    return list(zip(names, targets, values, strict=False))


def load(path: str) -> Callable[..., Any]:
    """``run_kernel`` of a candidate's file."""
    sys.path.insert(0, str(Path(path).parent))
    spec = importlib.util.spec_from_file_location("candidate", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    found = getattr(module, "run_kernel", None)
    if not callable(found):
        raise Refused(f"{Path(path).name} defines no function run_kernel")
    return found


def last_line(error: BaseException, folder: str) -> str:
    """The exception's own line, and where in the candidate's files it came from."""
    said = traceback.format_exception_only(error)[-1].strip()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(folder)]
    place = f" (line {frames[-1].lineno} of {Path(frames[-1].filename).name})" if frames else ""
    return said[:1500] + place


def resources(kernels: list[dict[str, Any]], tool: str, room: Path) -> list[str]:
    """One line per kernel by ``cuobjdump``: registers, stack, shared and local memory."""
    lines: list[str] = []
    for number, kernel in enumerate(kernels):
        path = room / f"{number}.cubin"
        path.write_bytes(kernel["image"])
        done = subprocess.run([tool, "-res-usage", str(path)], capture_output=True, text=True, timeout=20, check=False)
        for line in done.stdout.splitlines():
            use = dict(word.split(":", 1) for word in line.split() if ":" in word)
            if "REG" in use:
                said = f"{use['REG']} registers, {kernel['shared']} B shared, {use.get('STACK', '?')} B stack"
                lines.append(f"{kernel['name']}: {said}, {use.get('LOCAL', '?')} B local")
    return lines


def show_a_gpu(facts: dict[str, int], target: int) -> None:
    """Let ``torch.cuda`` tell of the card that the kernels are for, in this process without one."""
    shown = types.SimpleNamespace(
        name="GPU",
        major=target // 10,
        minor=target % 10,
        multi_processor_count=facts.get("multiprocessor_count", 1),
        total_memory=facts.get("total_memory", 0),
        shared_memory_per_block_optin=facts.get("max_shared_mem", 49152),
        L2_cache_size=facts.get("l2_bytes", 0),
        warp_size=32,
    )
    cuda: Any = torch.cuda
    cuda.is_available = lambda: True
    cuda.current_device = lambda: 0
    cuda.device_count = lambda: 1
    cuda.synchronize = lambda *_: None
    cuda.get_device_properties = lambda *_: shown
    cuda.get_device_capability = lambda *_: (target // 10, target % 10)
    cuda.current_stream = lambda *_: types.SimpleNamespace(cuda_stream=0)
    cuda.device = lambda *_: contextlib.nullcontext()
    cuda.set_device = lambda *_: None


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The plan of every workload, or why there is none: {error, stage}."""
    import triton
    import triton.runtime.cache

    trace = Trace()
    cache: Any = triton.runtime.cache
    if hasattr(cache, "triton_key"):
        cache.triton_key = lambda: triton.__version__  # the cache is this process's own: no need to hash the compiler
    driver: Any = Driver(trace, request["target"], request["facts"])
    triton.runtime.driver.set_active(driver)
    show_a_gpu(request["facts"], request["target"])
    folder, stage = str(Path(request["source"]).parent), "load"
    try:
        run_kernel = load(request["source"])
        stage = "trace"
        plans = [traced(run_kernel, workload, trace) for workload in request["workloads"]]
    except Refused as refused:
        return {"error": str(refused), "stage": "load"}
    except Exception as error:  # noqa: BLE001  (a process boundary: whatever was raised is the answer)
        module = type(error).__module__
        compiling = module.startswith("triton.compiler") or "CompilationError" in type(error).__name__
        refused = isinstance(error.__cause__, Refused)
        return {"error": last_line(error, folder), "stage": "compile" if compiling or refused else stage}
    return {"kernels": trace.kernels, "workloads": plans, "remarks": remarked(trace.kernels, request)}


def remarked(kernels: list[dict[str, Any]], request: dict[str, Any]) -> list[str]:
    """The assembler's figures; empty where its tool is missing or fails."""
    try:
        return resources(kernels, request["tool"], Path(request["room"]))
    except (OSError, subprocess.SubprocessError):
        return []


def main() -> None:
    """Take one request, seal the sandbox, answer."""
    import triton  # noqa: F401  (a spare is started before it is needed, and waits below)

    size = int.from_bytes(_exactly(0, 4), "little")
    request = msgpack.unpackb(_exactly(0, size))
    answers = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    layers = _sealed(request)
    body: Any = msgpack.packb({**answer(request), "layers": layers})
    view = memoryview(len(body).to_bytes(4, "little") + body)
    while view:
        view = view[os.write(answers, view) :]
    os._exit(0)


def _sealed(request: dict[str, Any]) -> str:
    """Enter the sandbox; everything that is trusted has been imported by now."""
    seal = request["seal"]
    if not seal:
        return ""
    from sealing import enter

    return enter(seal, request["keep_uid"], request["readable"], request["writable"], starts=True)


def _exactly(descriptor: int, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        block = os.read(descriptor, size - len(data))
        if not block:
            os._exit(64)
        data += block
    return bytes(data)


if __name__ == "__main__":
    main()

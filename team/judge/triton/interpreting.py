"""Run a candidate under Triton's interpreter, on a CPU, on memory that the judge lends. Not trusted; correctness only.

usage: python interpreting.py ARENA_FD PARENT_PID      frames of msgpack on standard input and output
    -> {ready}                                          Triton is imported, nothing foreign is loaded yet
    {op: load, source, seal, keep_uid, readable, address_space}         -> {ok, layers} | {error}
    {op: stage, set, launches, start, stride, tensors, values, outputs} -> {ok} | {error}
    {op: go, set}                                       -> {ns} | {error}
"""

import mmap
import os
import sys
import time
from pathlib import Path
from typing import Any

import msgpack
import torch
from narrow import mend
from recording import Trace
from sealing import enter
from standin import Driver
from torch.overrides import TorchFunctionMode
from tracing import chosen, last_line, load, results, show_a_gpu

SHOWN = {"multiprocessor_count": 4, "max_shared_mem": 232448, "max_num_regs": 65536, "warpSize": 32}
TARGET = 90
_TENSOR: Any = torch.Tensor


class Lens(TorchFunctionMode):
    """Makes on the CPU what host code asks to have made on the GPU, and says that tensors are there."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, tensor = dict(kwargs or {}), _TENSOR
        if func == tensor.is_cuda.__get__:
            return True
        if func is torch.Tensor.cuda:
            return args[0]
        if kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "cuda":
            kwargs["device"] = torch.device("cpu")
        return func(*args, **kwargs)


class Runner:
    """One kernel and its staged sets of launches."""

    def __init__(self, arena: int, requests: int, answers: int) -> None:
        self._requests = requests
        self._answers = answers
        self._memory = mmap.mmap(arena, os.fstat(arena).st_size)
        self._folder = ""
        self._run: Any = None
        self._sets: dict[int, list[tuple[dict[str, Any], list[str]]]] = {}

    def serve(self) -> None:
        """Answer until the judge hangs up."""
        self._say({"ready": 1})
        while True:
            size = int.from_bytes(self._take(4), "little")
            message = msgpack.unpackb(self._take(size))
            act = {"load": self._load, "stage": self._stage, "go": self._go}[message["op"]]
            try:
                self._say(act(message))
            except Exception as error:  # noqa: BLE001  (a process boundary: whatever was raised is the answer)
                self._say({"error": last_line(error, self._folder)})

    def _load(self, message: dict[str, Any]) -> dict[str, Any]:
        layers = ""
        self._folder = str(Path(message["source"]).parent)
        if message["seal"]:
            space = message["address_space"]
            layers = enter(message["seal"], message["keep_uid"], message["readable"], [], False, space)
        self._run = load(message["source"])
        return {"ok": 1, "layers": layers}

    def _stage(self, message: dict[str, Any]) -> dict[str, Any]:
        staged: list[tuple[dict[str, Any], list[str]]] = []
        for launch in range(message["launches"]):
            slot = message["start"] + launch * message["stride"]
            tensors = {one["name"]: self._tensor(one, slot) for one in message["tensors"]}
            staged.append(({**message["values"], **tensors}, message["outputs"]))
        self._sets[message["set"]] = staged
        return {"ok": 1}

    def _tensor(self, told: dict[str, Any], slot: int) -> torch.Tensor:
        shape, dtype = told["shape"], getattr(torch, told["dtype"])
        count, offset = torch.Size(shape).numel(), slot + told["offset"]
        raw = torch.frombuffer(self._memory, dtype=torch.uint8, count=count * dtype.itemsize, offset=offset)
        return raw.view(dtype).view(shape)

    def _go(self, message: dict[str, Any]) -> dict[str, Any]:
        started = time.perf_counter_ns()
        for named, outputs in self._sets[message["set"]]:
            with torch.no_grad(), Lens():
                returned = self._run(**chosen(self._run, named))
            for _, target, value in results(outputs, [named[name] for name in outputs], returned):
                if value.data_ptr() != target.data_ptr():
                    target.copy_(value.view(target.shape))
        return {"ns": time.perf_counter_ns() - started}

    def _say(self, body: dict[str, Any]) -> None:
        frame: Any = msgpack.packb(body)
        view = memoryview(len(frame).to_bytes(4, "little") + frame)
        while view:
            view = view[os.write(self._answers, view) :]

    def _take(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            block = os.read(self._requests, size - len(data))
            if not block:
                os._exit(0)
            data += block
        return bytes(data)


def main() -> None:
    """Take the protocol's descriptors away from whoever prints, then serve."""
    import triton

    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    if os.getppid() != int(sys.argv[2]):
        os._exit(65)
    torch.set_num_threads(1)
    mend()
    driver: Any = Driver(Trace(), TARGET, SHOWN)
    triton.runtime.driver.set_active(driver)
    show_a_gpu(SHOWN, TARGET)
    Runner(int(sys.argv[1]), requests, answers).serve()


if __name__ == "__main__":
    main()

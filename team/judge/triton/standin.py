"""Stands in the place of Triton's driver while host code is traced: compiles for one target and notes launches down.

Not trusted: lives in the tracing process, beside the candidate.
"""

import struct
from collections.abc import Iterator
from typing import Any

import torch
from recording import CUDA, Refused, Trace

_SIZES = {"i1": 1, "u1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8}
_FLOATS = {"fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d"}


class Utils:
    """What Triton asks of a driver's tools."""

    def __init__(self, trace: Trace, facts: dict[str, int]) -> None:
        self._trace = trace
        self._facts = facts

    def load_binary(self, name: str, image: bytes, shared: int, device: int) -> tuple[Any, int, int, int, int]:
        """Module, function (here: its number), registers, spills, most threads of a block."""
        return None, self._trace.kernel(name, bytes(image), shared), 0, 0, 1024

    def get_device_properties(self, device: int) -> dict[str, int]:
        """What a candidate may know of the card."""
        return dict(self._facts)

    def unload_module(self, module: Any) -> None:
        """Nothing was loaded."""


class Driver:
    """Stands in the place of Triton's driver: compiles for one target, launches nothing."""

    def __init__(self, trace: Trace, target: int, facts: dict[str, int]) -> None:
        self.trace = trace
        self.utils = Utils(trace, facts)
        self._target = target
        self.launcher_cls = lambda source, metadata: Launcher(trace, source, metadata)

    def get_current_target(self) -> Any:
        """The architecture."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", self._target, 32)

    def get_current_device(self) -> int:
        """The one there is."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is only one."""

    def get_current_stream(self, device: int) -> int:
        """The one there is."""
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """Of the target."""
        return self._target // 10, self._target % 10

    def get_active_torch_device(self) -> torch.device:
        """The one there is."""
        return CUDA

    def get_device_interface(self) -> Any:
        """Of torch."""
        return torch.cuda

    def get_benchmarker(self) -> Any:
        """Autotuning needs a clock, and the clock is the judge's."""
        raise Refused("@triton.autotune has several configurations: keep one, the judge times no others")

    def map_python_to_cpp_type(self, kind: str) -> str:
        """Not needed: nothing is generated here."""
        return kind


class Launcher:
    """Notes one kernel's launches down."""

    def __init__(self, trace: Trace, source: Any, metadata: Any) -> None:
        self._trace = trace
        self._signature: dict[Any, Any] = dict(source.signature)
        self._metadata = metadata

    def __call__(self, x: int, y: int, z: int, stream: Any, function: int, *rest: Any) -> None:
        values = rest[4:]  # packed metadata, launch metadata, two hooks
        blocks = int(x) * int(y) * int(z)
        if blocks <= 0:
            return
        meta = self._metadata
        arguments = [self._argument(name, kind, value) for (name, kind), value in self._pairs(values)]
        step: dict[str, Any] = {
            "kind": "launch",
            "kernel": function,
            "grid": [int(x), int(y), int(z)],
            "warps": int(meta.num_warps),
            "ctas": int(getattr(meta, "num_ctas", 1)),
            "cooperative": bool(getattr(meta, "launch_cooperative_grid", False)),
            "arguments": [*arguments, self._scratch(blocks), {"word": bytes(8)}],
        }
        self._trace.steps.append(step)

    def _pairs(self, values: Any) -> Iterator[tuple[tuple[Any, Any], Any]]:
        for item, value in zip(self._signature.items(), values, strict=True):
            if item[1] != "constexpr":
                yield item, value

    def _scratch(self, blocks: int) -> dict[str, Any]:
        """The kernel's own scratch memory, which Triton passes behind its arguments."""
        size = int(getattr(self._metadata, "global_scratch_size", 0) or 0)
        if size == 0:
            return {"word": bytes(8)}
        number = self._trace.reserve(blocks * int(getattr(self._metadata, "num_ctas", 1)) * size)
        return {"place": ["scratch", number, 0]}

    def _argument(self, name: Any, kind: Any, value: Any) -> dict[str, Any]:
        if not isinstance(kind, str) or kind.startswith("tensordesc") or kind == "nvTmaDesc":
            raise Refused(f"argument '{name}' of a kernel is a {kind}: pass pointers and numbers, and make it in there")
        if kind.startswith("*"):
            if value is None:
                return {"word": bytes(8)}
            if not isinstance(value, torch.Tensor):
                raise Refused(f"argument '{name}' of a kernel is a pointer, but no tensor is given for it")
            return {"place": self._trace.place(value)}
        if kind in _FLOATS:
            return {"word": struct.pack(_FLOATS[kind], float(value)).ljust(8, b"\0")}
        if kind in _SIZES:
            size = _SIZES[kind]
            return {"word": (int(value) & ((1 << 8 * size) - 1)).to_bytes(8, "little")}
        raise Refused(f"argument '{name}' of a kernel has the type {kind}, which cannot be passed")

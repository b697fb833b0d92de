"""What host code asks of torch while it is traced: tensors without memory, noted allocations, fills and copies.

Not trusted: lives in the tracing process, beside the candidate. Tensors are on the device ``meta`` and said to be on
``cuda:0``. Whatever torch is asked to compute is refused: a plan holds Triton kernels, fills and copies alone.
"""

import struct
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

CUDA = torch.device("cuda", 0)
META = torch.device("meta")
FIRST_ADDRESS = 1 << 40  # of the first storage; all are as aligned as device memory is
ADDRESS_STEP = 1 << 36
_EMPTY = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
_ZEROS = frozenset({"zeros", "zeros_like", "new_zeros"})
_ONES = frozenset({"ones", "ones_like", "new_ones"})
_FULL = {"full": 1, "full_like": 1, "new_full": 2}  # where the value stands among the arguments
_WORDS = {torch.float16: "<e", torch.float32: "<f", torch.float64: "<d"}


class Refused(Exception):
    """The host code asks for something that a plan cannot hold; one clause."""


class Trace:
    """What one workload's call asks for, in order. A place is ("buffer" | "scratch", number, byte offset)."""

    def __init__(self) -> None:
        self.kernels: list[dict[str, Any]] = []
        self.known: dict[tuple[str, bytes], int] = {}
        self.begin()

    def begin(self) -> None:
        """Start another workload; kernels are shared between them."""
        self.steps: list[dict[str, Any]] = []
        self.scratch: list[int] = []
        self._places: dict[int, tuple[str, int]] = {}
        self._kept: list[torch.Tensor] = []  # a storage's identity holds only while it lives

    def lend(self, tensor: torch.Tensor, number: int) -> None:
        """Make ``tensor`` the judge's buffer ``number``."""
        self._hold(tensor, ("buffer", number))

    def allocate(self, tensor: torch.Tensor) -> None:
        """Give a new tensor its scratch memory."""
        if tensor.device != META:
            raise Refused("run_kernel makes a tensor that is not on the GPU")
        if tensor.untyped_storage()._cdata not in self._places:
            self._hold(tensor, ("scratch", self.reserve(tensor.untyped_storage().nbytes())))

    def reserve(self, size: int) -> int:
        """Scratch memory of ``size`` bytes; its number."""
        self.scratch.append(max(int(size), 1))
        return len(self.scratch) - 1

    def place(self, tensor: torch.Tensor) -> list[Any]:
        """Where a tensor's first element lies."""
        held = self._places.get(tensor.untyped_storage()._cdata)
        if held is None:
            raise Refused("run_kernel hands a tensor to a kernel that is not on the GPU")
        return [*held, tensor.storage_offset() * tensor.element_size()]

    def address(self, tensor: torch.Tensor) -> int:
        """What ``data_ptr`` says: an address that is as aligned as the real one will be."""
        kind, number, offset = self.place(tensor)
        return FIRST_ADDRESS + ADDRESS_STEP * (2 * number + (kind == "scratch")) + offset

    def fill(self, tensor: torch.Tensor, value: float) -> None:
        """Note that a contiguous tensor gets one value."""
        if not tensor.is_contiguous():
            raise Refused("run_kernel fills a tensor that is not contiguous")
        word = _word_of(tensor.dtype, value)
        while len(word) > 1 and word[: len(word) // 2] == word[len(word) // 2 :]:
            word = word[: len(word) // 2]
        if len(word) > 4:
            raise Refused(f"run_kernel fills a {tensor.dtype} tensor with {value}, which is wider than 4 bytes")
        size = tensor.numel() * tensor.element_size()
        step = {"kind": "fill", "target": self.place(tensor), "size": size, "word": word}
        self.steps.append(step)

    def copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """Note a copy between contiguous tensors of one dtype and size."""
        if target.dtype != source.dtype or target.numel() != source.numel():
            raise Refused(f"run_kernel copies {_shown(source)} into {_shown(target)}; only like ones are copied")
        if not (target.is_contiguous() and source.is_contiguous()):
            raise Refused("run_kernel copies a tensor that is not contiguous")
        where, whence = self.place(target), self.place(source)
        if where != whence:
            size = target.numel() * target.element_size()
            self.steps.append({"kind": "copy", "target": where, "source": whence, "size": size})

    def kernel(self, name: str, image: bytes, shared: int) -> int:
        """The number of a compiled kernel."""
        key = (name, image)
        if key not in self.known:
            self.known[key] = len(self.kernels)
            self.kernels.append({"name": name, "image": image, "shared": int(shared)})
        return self.known[key]

    def _hold(self, tensor: torch.Tensor, place: tuple[str, int]) -> None:
        self._places[tensor.untyped_storage()._cdata] = place
        self._kept.append(tensor)


class Recorder(TorchDispatchMode):
    """Lets torch allocate, view, fill and copy; refuses to let it compute."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        plain = name.rstrip("_") if name in ("zero_", "fill_", "copy_") else name
        if plain in ("zero", "fill", "copy") and name.endswith("_"):
            self._write(name, args)
            return args[0]
        if name == "clone":
            return self._cloned(func, args, kwargs)
        fresh = name in _EMPTY or name in _ZEROS or name in _ONES or name in _FULL
        if not fresh and not _views(func):
            raise Refused(f"run_kernel has torch compute {name}; its work belongs into a Triton kernel")
        result = func(*args, **(kwargs or {}))
        if fresh:
            self._trace.allocate(result)
            self._fill(name, result, args, kwargs or {})
        return result

    def _cloned(self, func: Any, args: Any, kwargs: Any) -> torch.Tensor:
        result = func(*args, **(kwargs or {}))
        self._trace.allocate(result)
        self._trace.copy(result, args[0])
        return result

    def _fill(self, name: str, result: torch.Tensor, args: Any, kwargs: Any) -> None:
        if name in _ZEROS or name in _ONES:
            self._trace.fill(result, float(name in _ONES))
        elif name in _FULL:
            at = _FULL[name]
            self._trace.fill(result, args[at] if len(args) > at else kwargs["fill_value"])

    def _write(self, name: str, args: Any) -> None:
        if name == "copy_":
            self._trace.copy(args[0], args[1])
            return
        value = args[1] if name == "fill_" else 0.0
        if isinstance(value, torch.Tensor):
            raise Refused("run_kernel fills a tensor with a value that it computed")
        self._trace.fill(args[0], value)


class Lens(TorchFunctionMode):
    """Shows tensors without memory as tensors on the GPU, and makes new ones likewise."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace
        tensor: Any = torch.Tensor
        self._seen: dict[Any, Callable[[torch.Tensor], Any]] = {
            tensor.device.__get__: lambda one: CUDA if one.device == META else one.device,
            tensor.is_cuda.__get__: lambda one: one.device == META,
            tensor.is_meta.__get__: lambda one: False,
            tensor.get_device: lambda one: 0,
            tensor.data_ptr: trace.address,
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        shown = self._seen.get(func)
        if shown is not None:
            return shown(args[0])
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.to:
            args = [one for one in args if not _is_device(one)]
            kwargs.pop("device", None)
            if len(args) == 1 and not kwargs:
                return args[0]
        elif kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "cuda":
            kwargs["device"] = META
        return func(*args, **kwargs)


def _views(func: Any) -> bool:
    """Whether an operation only shows memory that is there already."""
    returns = func._schema.returns
    return bool(returns) and all(one.alias_info is not None and not one.alias_info.is_write for one in returns)


def _is_device(value: Any) -> bool:
    return isinstance(value, torch.device) or (isinstance(value, str) and value.startswith("cuda"))


def _word_of(dtype: torch.dtype, value: float) -> bytes:
    if dtype in _WORDS:
        return struct.pack(_WORDS[dtype], float(value))
    if dtype.is_floating_point:
        return bytes(torch.tensor([value]).to(dtype).view(torch.uint8).tolist())
    size = dtype.itemsize
    return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def _shown(tensor: torch.Tensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)}"

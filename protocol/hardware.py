"""The hardware block of a campaign: what it runs on, as its user's file says or as it was detected.

It is read by people, by minds and by the strategy memory. What decides a roofline is measured (``peaks``), never what a
name suggests. A field that is not known is empty or zero.
"""

from typing import Literal

from pydantic import Field

from protocol.messages import Message

_TENSOR_CORES = ((100, "5th"), (89, "4th"), (80, "3rd"), (75, "2nd"), (70, "1st"))
_ASYNC_COPY = ((90, "bulk tensor copies (TMA)"), (80, "cp.async"))
_VECTOR_SETS = ("avx512f", "avx2", "avx", "sse4_2", "asimd")


class Hardware(Message):
    """One kind of device. Sizes in bytes, rates per second."""

    kind: Literal["cpu", "cuda"]
    name: str = Field(default="", description="model name")
    arch: str = Field(default="", description="'sm_90', or machine and widest vector set such as 'x86_64-avx2'")
    source: str = Field(default="detected", description="'detected', or the file that said otherwise")
    memory_bytes: int = Field(default=0, ge=0)
    memory_bytes_per_s: float = Field(default=0.0, ge=0.0, description="bandwidth of the memory")
    peaks: dict[str, float] = Field(default_factory=dict, description="measured roofs, e.g. copy_bytes_per_s")

    compute_capability: str = Field(default="", description="of a GPU, e.g. '9.0'")
    multiprocessors: int = Field(default=0, ge=0, description="SMs")
    shared_per_multiprocessor_bytes: int = Field(default=0, ge=0)
    shared_per_block_bytes: int = Field(default=0, ge=0, description="opt-in maximum of one block")
    registers_per_multiprocessor: int = Field(default=0, ge=0)
    l2_bytes: int = Field(default=0, ge=0)
    tensor_cores: str = Field(default="", description="generation")
    async_copy: str = Field(default="", description="generation")
    driver: str = ""
    toolkit: str = ""

    cores: str = Field(default="", description="of a CPU: the cores that this campaign may use")
    isa: tuple[str, ...] = Field(default=(), description="vector and matrix instruction sets")
    caches: dict[str, str] = Field(default_factory=dict, description="level -> size")
    compiler: str = ""

    def rows(self) -> list[tuple[str, str]]:
        """What is known, in words, for people."""
        unit = "SM" if self.kind == "cuda" else ""
        told = (
            ("device", self.name),
            ("architecture", f"{self.arch} (compute capability {self.compute_capability})" if unit else self.arch),
            ("multiprocessors", str(self.multiprocessors or "")),
            ("shared memory", _both(self.shared_per_multiprocessor_bytes, "per SM", self.shared_per_block_bytes)),
            ("registers", f"{self.registers_per_multiprocessor} per SM" if self.registers_per_multiprocessor else ""),
            ("L2", _size(self.l2_bytes)),
            ("cores", self.cores),
            ("instruction sets", " ".join(self.isa)),
            ("caches", ", ".join(f"{level} {size}" for level, size in self.caches.items())),
            ("memory", _size(self.memory_bytes)),
            ("bandwidth", f"{self.memory_bytes_per_s / 1e9:,.0f} GB/s" if self.memory_bytes_per_s else ""),
            ("tensor cores", f"{self.tensor_cores} generation" if self.tensor_cores else ""),
            ("asynchronous copy", self.async_copy),
            ("driver", self.driver),
            ("toolkit", self.toolkit),
            ("compiler", self.compiler),
            ("measured roofs", ", ".join(_rate(name, value) for name, value in self.peaks.items())),
            ("said by", self.source),
        )
        return [(name, text) for name, text in told if text]


def tensor_cores_of(compute_capability: str) -> str:
    """Generation of the tensor cores, which the compute capability defines; empty without them."""
    return _at_least(_TENSOR_CORES, compute_capability)


def async_copy_of(compute_capability: str) -> str:
    """What copies from global to shared memory without registers, by compute capability; empty without it."""
    return _at_least(_ASYNC_COPY, compute_capability)


def cpu_arch(machine: str, isa: tuple[str, ...]) -> str:
    """Machine and its widest vector set."""
    widest = next((name for name in _VECTOR_SETS if name in isa), "")
    return f"{machine}-{widest.removesuffix('f')}" if widest else machine


def _at_least(table: tuple[tuple[int, str], ...], compute_capability: str) -> str:
    major, _, minor = compute_capability.partition(".")
    if not (major.isdigit() and minor.isdigit()):
        return ""
    return next((name for least, name in table if int(major) * 10 + int(minor) >= least), "")


def _size(size: int) -> str:
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= step:
            return f"{size / step:,.4g} {unit}"
    return f"{size} bytes" if size else ""


def _both(first: int, what: str, block: int) -> str:
    parts = [f"{_size(first)} {what}"] if first else []
    return ", ".join([*parts, *([f"{_size(block)} per block"] if block else [])])


def _rate(name: str, value: float) -> str:
    quantity, _, rest = name.partition("_")
    unit = "GB/s" if "bytes" in rest else "GFLOP/s"
    return f"{quantity} {value / 1e9:,.0f} {unit}"

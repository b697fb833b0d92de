"""The hardware block: from the user's file where it says something, else detected on this machine."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
from pydantic import ValidationError

from protocol.hardware import Hardware, async_copy_of, cpu_arch, tensor_cores_of
from protocol.messages import DeviceInfo
from team.devices.cpu import instruction_sets
from team.errors import UserError
from team.probes.finding import CUDA, first_line, program


def hardware_of(device: DeviceInfo, file: Path | None) -> Hardware:
    """The block for the kind of device that ``device`` is; ``file`` (TOML, the block's own names) comes first."""
    found = _cuda(device) if device.kind == "cuda" else _cpu(device)
    if file is None:
        return found
    values = {**found.model_dump(), **_read(file), "kind": found.kind, "source": str(file), "peaks": found.peaks}
    try:
        return Hardware.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UserError(
            f"{file} does not describe hardware: {where}: {first['msg']}.",
            f"Known names: {', '.join(sorted(Hardware.model_fields))}.",
        ) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"The hardware file {path} cannot be read: {error}.", "Correct it, or leave it out.") from None


def _cuda(device: DeviceInfo) -> Hardware:
    told = device.details
    capability = told.get("compute capability", "")
    return Hardware(
        kind="cuda",
        name=device.name,
        arch=f"sm_{capability.replace('.', '')}" if capability else "",
        memory_bytes=_whole(told, "memory bytes"),
        memory_bytes_per_s=_bandwidth(told),
        peaks=device.peaks,
        compute_capability=capability,
        multiprocessors=_whole(told, "SMs"),
        shared_per_multiprocessor_bytes=_whole(told, "shared memory per SM bytes"),
        shared_per_block_bytes=_whole(told, "shared memory per block bytes"),
        registers_per_multiprocessor=_whole(told, "registers per SM"),
        l2_bytes=_whole(told, "L2 bytes"),
        tensor_cores=tensor_cores_of(capability),
        async_copy=async_copy_of(capability),
        driver=f"{told.get('driver', '')} (CUDA {told.get('driver CUDA', '')})",
        toolkit=_toolkit(),
    )


def _cpu(device: DeviceInfo) -> Hardware:
    isa = instruction_sets()
    caches = {name: size for name, size in device.details.items() if re.fullmatch(r"L\d[di]?", name)}
    return Hardware(
        kind="cpu",
        name=device.name,
        arch=cpu_arch(os.uname().machine, isa),
        memory_bytes=psutil.virtual_memory().total,
        memory_bytes_per_s=device.peaks.get("memory_bytes_per_s", 0.0),
        peaks=device.peaks,
        cores=device.details.get("cores", ""),
        isa=isa,
        caches=caches,
        compiler=first_line("g++", "--version") or "",
    )


def _toolkit() -> str:
    """What the compiler of the CUDA toolkit says of itself; empty without one."""
    found = program("nvcc", "", CUDA, pick=-2)
    return found.what if found.ok else ""


def _bandwidth(told: Mapping[str, str]) -> float:
    """Two transfers a clock over the whole bus, from what the driver says of clock and width."""
    clock, bits = told.get("memory clock max MHz", ""), _whole(told, "memory bus bits")
    return 2.0 * float(clock) * 1e6 * bits / 8.0 if clock.isdigit() else 0.0


def _whole(told: Mapping[str, str], name: str) -> int:
    text = told.get(name, "")
    return int(text) if text.isdigit() else 0

"""What every import makes: a folder, its spec, something to be said; and the lines of task.toml that are alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from team.tasks.first_kernel.writing import FirstKernel
from team.tasks.spec import TaskSpec


@dataclass(frozen=True)
class Imported:
    """The task that was made, and what is to be said about it."""

    folder: Path
    spec: TaskSpec
    notes: tuple[str, ...]


def argument_lines(kernel: FirstKernel) -> list[str]:
    """The table of a kernel's tensors."""
    lines = ["[arguments]"]
    for role, buffers in (("input", kernel.inputs), ("output", kernel.outputs)):
        for one in buffers:
            extents = ", ".join(extent if extent.isdigit() else f'"{extent}"' for extent in kernel.shapes[one.name])
            dtype = str(one.dtype).removeprefix("torch.")
            lines.append(f'{one.name} = {{ shape = [{extents}], role = "{role}", dtype = "{dtype}" }}')
    return lines


def workload_lines(table: str, name: str, dims: Mapping[str, int]) -> list[str]:
    """One workload."""
    sizes = ", ".join(f"{key} = {value}" for key, value in dims.items())
    return [f"[[{table}]]", f'name = "{name}"', f"dims = {{ {sizes} }}" if sizes else "dims = {}", ""]

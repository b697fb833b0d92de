"""The folder of a task made from a skill's inputs: task.toml, kernel with its headers, reference, one commit."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from team.tasks.examples import make_repository
from team.tasks.signature import Parameter
from team.tasks.skill_inputs import Read
from team.tasks.spec import REACH, TaskSpec, Workload, read_spec

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_PLAIN_FLAGS = ("-O3", "-std=c++17", "-lineinfo")  # the judge's own, which a task's flags replace
_NARROW_HIGH = {"bool": 2, "int8": 2**7, "uint8": 2**8}


def make_task(
    read: Read,
    folder: Path,
    workloads: Sequence[Workload],
    libraries: Sequence[str] = (),
) -> TaskSpec:
    """Write the task into the new folder ``folder``, with headers beside the kernel, as a repository of one commit.

    ``libraries`` are compiler flags for vendors' libraries that the baseline uses; candidates may then use them, too.
    """
    inputs = read.inputs
    folder.mkdir(parents=True)
    for name, path in {inputs.kernel.name: inputs.kernel, inputs.reference.name: inputs.reference}.items():
        shutil.copyfile(path, folder / name)
    for header in _headers(inputs.kernel):
        (folder / header).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(inputs.kernel.parent / header, folder / header)
    text = _task_toml(read, workloads, libraries)
    (folder / "task.toml").write_text(text)
    make_repository(folder, "The baseline as it was given")
    return read_spec(folder)


def _headers(kernel: Path) -> list[str]:
    """Headers of the user's own that the kernel includes, and those that they include, relative to its folder."""
    found: list[str] = []
    waiting = [kernel]
    while waiting:
        path = waiting.pop()
        for name in _INCLUDE.findall(path.read_text(errors="replace")):
            header = (path.parent / name).resolve()
            inside = header.is_file() and header.is_relative_to(kernel.parent.resolve())
            relative = str(header.relative_to(kernel.parent.resolve())) if inside else ""
            if inside and relative not in found:
                found.append(relative)
                waiting.append(header)
    return found


def _task_toml(read: Read, workloads: Sequence[Workload], libraries: Sequence[str]) -> str:
    inputs = read.inputs
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", inputs.kernel.stem).lstrip("_.-") or "kernel"
    parts = [
        f"name = {_quoted(name)}",
        f"contract = {_quoted(read.contract)}",
        f"device = {_quoted(read.device)}",
        f"source = {_quoted(inputs.kernel.name)}",
        f"reference = {_quoted(inputs.reference.name)}",
        f"numerics = {_quoted(inputs.numerics)}",
        "",
    ]
    if read.signature is not None:
        parts += ["[arguments]", *(_argument(read, p, workloads) for p in read.signature.pointers), ""]
    parts += ["[tolerance]"]
    parts += [f"{_quoted(key)} = {{ atol = {pair[0]!r}, rtol = {pair[1]!r} }}" for key, pair in read.tolerance.items()]
    parts += ["", *(line for workload in workloads for line in _workload(workload))]
    if libraries:
        parts += ["[build]", f"flags = {_quoted([*_PLAIN_FLAGS, *libraries])}", "[screen]", "libraries = true"]
    return "\n".join(parts) + "\n"


def _argument(read: Read, pointer: Parameter, workloads: Sequence[Workload]) -> str:
    fields = [f"shape = [{', '.join(_quoted(one) for one in read.extents[pointer.name])}]"]
    if pointer.name in read.roles:
        fields.append(f"role = {_quoted(read.roles[pointer.name])}")
    if pointer.dtype.startswith(("int", "uint", "bool")):
        smallest = min((value for one in workloads for value in one.dims.values() if value > 1), default=2)
        below = smallest - REACH if smallest > 2 * REACH else smallest  # in range on unlisted shapes, too
        fields += ['values = "integers"', f"high = {min(_NARROW_HIGH.get(pointer.dtype, 2**15), below)}"]
    return f"{pointer.name} = {{ {', '.join(fields)} }}"


def _workload(workload: Workload) -> list[str]:
    dims = ", ".join(f"{name} = {value}" for name, value in workload.dims.items())
    scalars = ", ".join(f"{name} = {value!r}" for name, value in workload.scalars.items())
    lines = ["[[workloads]]", f"name = {_quoted(workload.name)}", f"dims = {{ {dims} }}"]
    return [*lines, *([f"scalars = {{ {scalars} }}"] if scalars else []), f"weight = {workload.weight!r}", ""]


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)

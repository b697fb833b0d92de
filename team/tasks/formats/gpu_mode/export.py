"""From a task made of a GPU MODE problem, and a tree that is to be handed in, to one file with ``custom_kernel``."""

import json
from pathlib import Path
from typing import Any

import torch

from team.errors import UserError
from team.tasks.formats.carried import carried
from team.tasks.formats.gpu_mode.judged import Judged
from team.tasks.task import Task


def exported(task: Task, judged: Judged, tree: Path) -> str:
    """The text of the submission."""
    source = (tree / task.spec.source).read_text()
    said = (
        f'"""custom_kernel for {judged.problem.folder.parent.name}, made by kernelteam from task {task.spec.name}."""'
    )
    return "\n\n\n".join([said + "\n\nimport torch", carried(task, source), _custom_kernel(task, judged)]) + "\n"


def _custom_kernel(task: Task, judged: Judged) -> str:
    form = judged.problem.data({**judged.fixed, **task.workloads[0].dims}, 0)
    waiting = iter(form.names)
    names: dict[str, str] = {}
    _places(form.form, "data", names, waiting)
    lines = [
        "def custom_kernel(data):",
        '    """The kernel on the parts of the data."""',
        "    given = {",
        *(f"        {json.dumps(one.name)}: {names[one.name]}.contiguous()," for one in task.inputs),
        "    }",
        "    sizes = {",
        *(f"        {json.dumps(name)}: {_size(task, name)}," for name in task.workloads[0].dims),
        "    }",
        "    device = next(iter(given.values())).device",
    ]
    for one in task.outputs:
        extents = ", ".join(_extent(extent) for extent in one.extents)
        comma = "," if len(one.extents) == 1 else ""
        made = f"torch.empty(({extents}{comma}), dtype={one.dtype}, device=device)"
        lines.append(f"    given[{json.dumps(one.name)}] = {made}")
    results = [f'given["{one.name}"]' for one in task.outputs]
    return "\n".join([*lines, "    launch(given, sizes)", f"    return {', '.join(results)}"])


def _places(value: Any, where: str, names: dict[str, str], waiting: Any) -> None:
    """How each tensor of the data is reached from ``data``."""
    if isinstance(value, torch.Tensor):
        names[next(waiting)] = where
    elif isinstance(value, dict):
        for key, one in value.items():
            _places(one, f"{where}[{key!r}]", names, waiting)
    elif isinstance(value, tuple | list):
        for place, one in enumerate(value):
            _places(one, f"{where}[{place}]", names, waiting)


def _size(task: Task, name: str) -> str:
    """A dim as the extent of an input that it alone is."""
    for buffer in task.inputs:
        for place, extent in enumerate(buffer.extents):
            if extent == name:
                return f'given["{buffer.name}"].shape[{place}]'
    raise UserError(
        f"No input of task {task.spec.name} has an extent that is '{name}' alone.",
        "custom_kernel cannot learn that size from its data: write the submission around the kernel by hand.",
    )


def _extent(extent: str | int) -> str:
    words = str(extent).split("*")
    return " * ".join(word if word.isdigit() else f'sizes["{word}"]' for word in words)

"""From a task made of a KernelBench problem, and a tree that is to be handed in, to one file with ``ModelNew``.

``ModelNew`` inherits the problem's own model, so it draws the same random numbers in the same order and has the same
weights under the same names; only ``forward`` is another. The file carries the kernel: Triton as it is, C++ and CUDA as
text that is compiled to a shared object when the file is loaded, which takes seconds.
"""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from team.tasks.formats.carried import carried, refuse_clashes
from team.tasks.formats.kernelbench.judged import Judged
from team.tasks.formats.kernelbench.problem import Built, Problem
from team.tasks.task import Task

_DROPPED = ("get_inputs", "get_init_inputs")
_ORIGINAL = "OriginalModel"


def exported(task: Task, judged: Judged, tree: Path) -> str:
    """The text of the file; ``UserError`` where the tree is more than one file can carry."""
    source = (tree / task.spec.source).read_text()
    problem = replace(judged.problem, sizes={**judged.problem.sizes, **task.workloads[0].dims})
    original = _original(problem)
    refuse_clashes(task, source, original)
    said = f'"""ModelNew for {problem.path.name}, made by kernelteam from task {task.spec.name}."""'
    return "\n\n\n".join([said, original.strip(), carried(task, source), _model_new(task, problem)]) + "\n"


def _original(problem: Problem) -> str:
    """The problem's text without the functions that make inputs, its model under another name, its sizes as here."""
    lines = problem.text.splitlines()
    tree = ast.parse(problem.text)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in _DROPPED:
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id in problem.sizes
        ):
            lines[node.lineno - 1] = f"{node.targets[0].id} = {problem.sizes[node.targets[0].id]}"
    if isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant):
        lines[: tree.body[0].end_lineno] = []
    return re.sub(r"\n{3,}", "\n\n\n", re.sub(r"\bModel\b", _ORIGINAL, "\n".join(lines)))


# ---------------------------------------------------------------- ModelNew


def _model_new(task: Task, problem: Problem) -> str:
    built = problem.built({})
    parameters = ", ".join(_forward_parameters(built, problem))
    lines = [
        f"class ModelNew({_ORIGINAL}):",
        '    """The same model; its forward is the kernel."""',
        "",
        f"    def forward(self, {parameters}):",
        "        given = {",
        *(f"            {json.dumps(buffer.name)}: {_argument(buffer.name, built)}," for buffer in task.inputs),
        "        }",
        f"        like = {next(iter(built.places))}",
    ]
    for buffer in task.outputs:
        shape = ", ".join(str(extent) for extent in _extents(buffer.extents))
        comma = "," if len(buffer.extents) == 1 else ""
        made = f"torch.empty(({shape}{comma}), dtype={buffer.dtype}, device=like.device)"
        lines.append(f"        given[{json.dumps(buffer.name)}] = {made}")
    lines += [
        f"        sizes = {{{', '.join(f'{json.dumps(name)}: {name}' for name in task.workloads[0].dims)}}}",
        "        launch(given, sizes)",
        f"        return {_returned(built, [buffer.name for buffer in task.outputs])}",
    ]
    return "\n".join(lines)


def _forward_parameters(built: Built, problem: Problem) -> list[str]:
    """Names for all inputs by position; numbers keep the value that they have in the problem."""
    names = {place: name for name, place in built.places.items()}
    return [names.get(place, f"number{place}={value!r}") for place, value in enumerate(built.inputs)]


def _argument(name: str, built: Built) -> str:
    if name in built.places:
        return f"{name}.contiguous()"
    key = built.states[name]
    holder = "get_parameter" if key in dict(built.model.named_parameters()) else "get_buffer"
    return f"self.{holder}({json.dumps(key)}).detach().contiguous()"


def _extents(extents: Sequence[str | int]) -> list[str]:
    return [str(extent).replace("*", " * ") for extent in extents]


def _returned(built: Built, names: Sequence[str]) -> str:
    """The outputs in the form in which the model returns them."""
    waiting = iter(names)
    with torch.no_grad():
        returned = torch.func.functional_call(built.model, built.state(), built.inputs)

    def form(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f'given["{next(waiting)}"]'
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{key!r}: {form(one)}" for key, one in value.items()) + "}"
        inner = [form(one) for one in value]
        return f"[{', '.join(inner)}]" if isinstance(value, list) else f"({', '.join(inner)},)"

    return form(returned)

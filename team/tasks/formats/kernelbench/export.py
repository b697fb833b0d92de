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

from team.errors import UserError
from team.judge.build import kernel_flags
from team.tasks.formats.kernelbench.judged import Judged
from team.tasks.formats.kernelbench.problem import Built, Problem
from team.tasks.signature import Signature, parse_signature
from team.tasks.task import Task

_DROPPED = ("get_inputs", "get_init_inputs")
_ORIGINAL = "OriginalModel"
_CUDA_FLAGS = ("-O3", "-std=c++17")


def exported(task: Task, judged: Judged, tree: Path) -> str:
    """The text of the file; ``UserError`` where the tree is more than one file can carry."""
    if task.spec.editable_files != (task.spec.source,):
        raise UserError(f"Task {task.spec.name} has several editable files.", "One file cannot carry them all.")
    source = (tree / task.spec.source).read_text()
    problem = replace(judged.problem, sizes={**judged.problem.sizes, **task.workloads[0].dims})
    original = _original(problem)
    _refuse_clashes(original, source if task.spec.contract == "triton" else "")
    said = f'"""ModelNew for {problem.path.name}, made by kernelteam from task {task.spec.name}."""'
    kernel = source if task.spec.contract == "triton" else _compiled(task, source)
    return "\n\n".join([said, original.strip(), kernel.strip(), _model_new(task, problem)]) + "\n"


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


def _refuse_clashes(original: str, kernel: str) -> None:
    both = _names(original) & _names(kernel)
    if both:
        raise UserError(
            f"Problem and kernel both define {', '.join(sorted(both))}.", "Rename it in the kernel, then export again."
        )


def _names(text: str) -> set[str]:
    found: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


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
    launch = _TRITON_LAUNCH.strip().replace("OUTPUTS", str(len(task.outputs)))
    return "\n".join([*([launch, "", ""] if task.spec.contract == "triton" else []), *lines])


_TRITON_LAUNCH = '''
def launch(given, sizes):
    """Call the kernel with those arguments that it names."""
    import inspect

    named = inspect.signature(run_kernel).parameters
    everything = {**given, **sizes}
    takes_all = any(one.kind is one.VAR_KEYWORD for one in named.values())
    returned = run_kernel(**{name: value for name, value in everything.items() if takes_all or name in named})
    outputs = list(given)[-OUTPUTS:]
    if returned is not None:
        values = returned if isinstance(returned, (tuple, list)) else [returned]
        values = [returned[name] for name in outputs] if isinstance(returned, dict) else values
        given.update(zip(outputs, values))

'''


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


# ---------------------------------------------------------------- C++ and CUDA


def _compiled(task: Task, source: str) -> str:
    """Text that compiles the kernel when it is loaded, and ``launch``, which calls it."""
    cuda = task.spec.device == "cuda"
    signature = parse_signature(source, task.language)
    override = task.spec.build.flags
    if cuda:
        fast = ("--use_fast_math",) if task.spec.numerics == "approximate" else ()
        command = ["nvcc", *(_CUDA_FLAGS if override is None else override), *fast, "-arch=native"]
        command += ["-Xcompiler", "-fPIC", "-shared"]
    else:
        command = ["g++", *kernel_flags(task.spec.numerics, override)]
    words = {
        "COMMAND": json.dumps(command),
        "SUFFIX": ".cu" if cuda else ".cpp",
        "CALL": _call(signature, task.signature),
    }
    words["SOURCE"] = _quoted(source)
    text = _COMPILED
    for name, value in words.items():
        text = text.replace(f"@{name}@", value)
    return text


def _call(written: Signature, known: Signature) -> str:
    """The arguments of the call, each as the C type that it has; the kernel may call them otherwise than the task."""
    names = [one.name for one in known.without_stream().parameters]
    parts: list[str] = []
    for name, one in zip(names, written.without_stream().parameters, strict=True):
        if one.pointer:
            parts.append(f'ctypes.c_void_p(given["{name}"].data_ptr())')
        else:
            parts.append(f'ctypes.c_{_C_TYPES[one.dtype]}(sizes["{name}"])')
    if written.without_stream() != written:
        parts.append("ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)")
    return ",\n        ".join(parts)


_C_TYPES = {
    "bool": "bool",
    "int8": "int8",
    "uint8": "uint8",
    "int16": "int16",
    "uint16": "uint16",
    "int32": "int32",
    "uint32": "uint32",
    "int64": "int64",
    "uint64": "uint64",
    "float32": "float",
    "float64": "double",
}


def _quoted(source: str) -> str:
    """The source as a raw string where that is possible, to be read by people."""
    if '"""' in source or source.endswith(("\\", '"')):
        return json.dumps(source)
    return f'r"""\n{source}"""'


_COMPILED = '''
import ctypes
import hashlib
import os
import subprocess
import tempfile

SOURCE = @SOURCE@


def compiled():
    """The kernel as a shared object, compiled once for a text and kept in the system's temporary folder."""
    command = @COMMAND@
    name = hashlib.sha256((" ".join(command) + SOURCE).encode()).hexdigest()[:24]
    folder = os.path.join(tempfile.gettempdir(), f"kernelteam-export-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, f"{name}.so")
    if not os.path.exists(path):
        with tempfile.TemporaryDirectory(dir=folder) as room:
            text = os.path.join(room, "kernel@SUFFIX@")
            with open(text, "w") as handle:
                handle.write(SOURCE)
            made = os.path.join(room, "kernel.so")
            subprocess.run([*command, "-o", made, text], check=True)
            os.replace(made, path)
    return ctypes.CDLL(path)


LIBRARY = compiled()


def launch(given, sizes):
    """Call the kernel on the tensors' memory."""
    LIBRARY.solve(
        @CALL@
    )
'''

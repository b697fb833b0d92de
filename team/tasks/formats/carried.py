"""A kernel inside a file of another format: Triton as it is; C++ and CUDA as text that the file compiles itself.

Either way the text defines ``launch(given, sizes)``: tensors and dims by their names in the task.
"""

import ast
import json

from team.errors import UserError
from team.judge.build import kernel_flags
from team.tasks.signature import Signature, parse_signature
from team.tasks.task import Task

_CUDA_FLAGS = ("-O3", "-std=c++17")


def carried(task: Task, source: str) -> str:
    """The kernel and ``launch``; ``UserError`` where one file cannot carry it."""
    if task.spec.editable_files != (task.spec.source,):
        raise UserError(f"Task {task.spec.name} has several editable files.", "One file cannot carry them all.")
    if task.spec.contract == "triton":
        return f"{source.strip()}\n\n\n{_TRITON_LAUNCH.strip().replace('OUTPUTS', str(len(task.outputs)))}"
    return _compiled(task, source).strip()


def refuse_clashes(task: Task, source: str, others: str) -> None:
    """Refuse a Triton kernel that defines a name which the rest of the file defines as well."""
    if task.spec.contract != "triton":
        return
    both = _names(source) & _names(others)
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

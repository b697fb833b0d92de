"""Which files are problems in a format that is known here. Light: every ``kernelteam init`` asks."""

import ast
import json
from pathlib import Path

PARTS = ("Model", "get_inputs", "get_init_inputs")
"""What a KernelBench problem file defines."""


def is_foreign(path: Path) -> bool:
    """Whether ``path`` is a problem that ``import_foreign`` can take."""
    if is_gpu_mode(path):
        return True
    if not path.is_file() or path.suffix not in _KNOWN:
        return False
    return _KNOWN[path.suffix](path.read_text(errors="replace"))


def was_imported(task: Path) -> bool:
    """Whether a task folder was made of a problem in another format: its reference says so."""
    reference = task / "reference.py"
    return reference.is_file() and "from team.tasks.formats." in reference.read_text(errors="replace")


def is_flashinfer(text: str) -> bool:
    """Whether a JSON text is a FlashInfer-Trace definition or solution, by its keys."""
    try:
        told = json.loads(text)
    except ValueError:
        return False
    return isinstance(told, dict) and (
        {"op_type", "axes", "reference"} <= told.keys() or {"sources", "spec"} <= told.keys()
    )


def is_gpu_mode(path: Path) -> bool:
    """Whether ``path`` is a GPU MODE problem: its task.yml, or the folder that holds it."""
    return (path.name == "task.yml" and path.is_file()) or (path / "task.yml").is_file()


def is_kernelbench(text: str) -> bool:
    """Whether a Python text has the parts of a KernelBench problem."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return set(PARTS) <= {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}


_KNOWN = {".py": is_kernelbench, ".json": is_flashinfer}

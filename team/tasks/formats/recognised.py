"""Which files are problems in a format that is known here. Light: every ``kernelteam init`` asks."""

import ast
from pathlib import Path

PARTS = ("Model", "get_inputs", "get_init_inputs")
"""What a KernelBench problem file defines."""


def is_foreign(path: Path) -> bool:
    """Whether ``path`` is a problem that ``import_foreign`` can take."""
    return path.is_file() and path.suffix == ".py" and is_kernelbench(path.read_text(errors="replace"))


def is_kernelbench(text: str) -> bool:
    """Whether a Python text has the parts of a KernelBench problem."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return set(PARTS) <= {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}

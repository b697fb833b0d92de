"""A PyTorch function with example inputs, made a problem: ``kernelteam init FILE.py:FUNCTION --example "..."``.

The task gets a problem file in KernelBench's form: the user's own text, sizes as top-level integers, and a model that
calls the function. Everything that holds for such problems (eager reference, first kernel, export) then holds for it.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from team.errors import UserError
from team.tasks.formats.recognised import PARTS

_NAMED = re.compile(r"(?P<file>.+\.py):(?P<function>[A-Za-z_]\w*)\Z")


@dataclass(frozen=True)
class Named:
    """A function in a file."""

    file: Path
    function: str


def named_function(given: Path) -> Named | None:
    """What ``FILE.py:FUNCTION`` names; None where it is another kind of path."""
    found = _NAMED.match(str(given))
    return Named(Path(found["file"]), found["function"]) if found and not given.exists() else None


def problem_text(named: Named, example: str, sizes: Mapping[str, int]) -> str:
    """The text of the problem file; a ``UserError`` says what is missing."""
    text, tree = _parsed(named.file)
    taken = _parameters(named, tree)
    values = _expressions(example, taken)
    constants = {name: size for name, size in sizes.items() if name not in _assigned(tree)}
    if clashing := sorted(_assigned(tree) & set(PARTS)):
        raise UserError(f"{named.file} defines {clashing[0]} itself.", f"Give it as a problem: init {named.file}")
    names = ", ".join(taken[: len(values)])
    lines = [
        text.rstrip(), "", "", "import torch", "from torch import nn", "",
        *(f"{name} = {size}" for name, size in constants.items()), "", "",
        f"class {PARTS[0]}(nn.Module):",
        f'    """What ``{named.function}`` computes."""', "",
        f"    def forward(self, {names}):",
        f"        return {named.function}({names})", "", "",
        f"def {PARTS[1]}():",
        f"    return [{', '.join(values)}]", "", "",
        f"def {PARTS[2]}():",
        "    return []",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _parsed(path: Path) -> tuple[str, ast.Module]:
    try:
        text = path.read_text()
        return text, ast.parse(text)
    except FileNotFoundError:
        raise UserError(f"There is no file {path}.", "Give a Python file with the function.") from None
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{path} cannot be read: {why}.", "Give a Python file with the function.") from None


def _parameters(named: Named, tree: ast.Module) -> list[str]:
    """The function's parameters by position."""
    defined = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if named.function not in defined:
        known = ", ".join(defined) or "none"
        raise UserError(f"{named.file} defines no function {named.function}.", f"It defines: {known}.")
    signature = defined[named.function].args
    if signature.vararg or signature.kwonlyargs:
        raise UserError(
            f"{named.function} takes arguments that have no place of their own.", "Write one that names each of them."
        )
    return [one.arg for one in (*signature.posonlyargs, *signature.args)]


def _expressions(example: str, taken: Sequence[str]) -> list[str]:
    """One expression for each argument, as written."""
    wanted = f'--example "{", ".join(f"torch.randn(...) for {name}" for name in taken)}"'
    if not example:
        raise UserError("Nothing says which inputs the function takes.", f"Add one expression for each: {wanted}")
    try:
        parsed = ast.parse(f"({example},)", mode="eval").body
    except SyntaxError as error:
        raise UserError(f"--example is not Python: {error.msg}.", f"Add one expression for each: {wanted}") from None
    values = [ast.unparse(one) for one in parsed.elts] if isinstance(parsed, ast.Tuple) else []
    if not 0 < len(values) <= len(taken):
        raise UserError(f"--example gives {len(values)} inputs, the function takes {len(taken)}.", f"Give {wanted}")
    return values


def _assigned(tree: ast.Module) -> set[str]:
    """Names that the file defines at its top level."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found

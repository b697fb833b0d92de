"""Between the two ways to call a kernel: a task's ``run_kernel`` by name, and a solution's entry point by position.

Text in, text out: a few lines are appended to a file, nothing is executed.
"""

import ast
import json
from typing import NamedTuple

from team.errors import UserError
from team.tasks.formats.flashinfer.schema import Definition, Solution

ENTRY = "run_kernel"
_SYMBOLS = ("run", "solution_run")
_PYTHON = ("python", "triton")


class Entry(NamedTuple):
    """A kernel's file with an entry point, its name, and whether it takes outputs to write into or returns them."""

    text: str
    symbol: str
    in_place: bool


def with_entry_point(definition: Definition, text: str) -> Entry:
    """The file with an entry point that takes the inputs, and behind them the outputs if the kernel does so as well."""
    tree = ast.parse(text)
    kernel = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == ENTRY), None)
    if kernel is None:
        raise UserError(f"The kernel of {definition.name} defines no function {ENTRY}.", "Export a task's own tree.")
    taken = _names(tree)
    symbol = next((name for name in _SYMBOLS if name not in taken), "")
    if not symbol:
        raise UserError(f"The kernel of {definition.name} defines {' and '.join(_SYMBOLS)}.", "Rename one of them.")
    values = _values(definition)
    arguments = [*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs]
    wanted = [one.arg for one in arguments]
    optional = {one.arg for one in arguments[len(arguments) - len(kernel.args.defaults) :]} if arguments else set[str]()
    if strange := [name for name in wanted if name not in values and name not in optional]:
        raise UserError(
            f"{ENTRY} wants '{strange[0]}', which a caller of {definition.name} does not have.",
            "Take inputs, outputs and axes of the definition alone.",
        )
    returned = _returns(kernel)
    from_outputs = any(values.get(name, "").partition(".")[0] in definition.outputs for name in wanted)
    if returned and not from_outputs and kernel.args.kwarg is None:
        return _returning(definition, text, symbol, [name for name in wanted if name in values])
    if kernel.args.kwarg is not None:
        wanted = [*wanted, *(name for name in values if name not in wanted)]
    call = ", ".join(f"{name}={values[name]}" for name in wanted if name in values)
    lines = [f"\n\ndef {symbol}({', '.join([*definition.inputs, *definition.outputs])}):"]
    if returned:
        outputs = ", ".join(definition.outputs)
        names = ", ".join(json.dumps(name) for name in definition.outputs)
        lines += [
            f"    found = {ENTRY}({call})",
            "    if found is None:",
            "        return",
            "    if isinstance(found, dict):",
            f"        found = [found[name] for name in ({names},)]",
            f"    for target, value in zip(({outputs},), found if isinstance(found, (list, tuple)) else [found]):",
            "        if value is not target:",
            "            target.copy_(value)",
        ]
    else:
        lines += [f"    {ENTRY}({call})"]
    return Entry(text.rstrip("\n") + "\n".join([*lines, ""]), symbol, True)


def _returning(definition: Definition, text: str, symbol: str, wanted: list[str]) -> Entry:
    """An entry point that returns what the kernel does, in the order of the outputs."""
    values = _values(definition)
    call = f"{ENTRY}({', '.join(f'{name}={values[name]}' for name in wanted)})"
    names = ", ".join(json.dumps(name) for name in definition.outputs)
    lines = [
        f"\n\ndef {symbol}({', '.join(definition.inputs)}):",
        f"    found = {call}",
        f"    return tuple(found[name] for name in ({names},)) if isinstance(found, dict) else found",
    ]
    return Entry(text.rstrip("\n") + "\n".join([*lines, ""]), symbol, False)


def as_kernel(definition: Definition, solution: Solution) -> str:
    """A solution's file with a ``run_kernel`` that calls its entry point; ``UserError`` where that cannot be."""
    if solution.spec.language not in _PYTHON:
        raise UserError(
            f"Solution {solution.name} is written in {solution.spec.language}, which the judge does not build.",
            "Write it in Triton, CUDA or C++.",
        )
    if len(solution.sources) > 1:
        raise UserError(
            f"Solution {solution.name} has {len(solution.sources)} files, and a judged kernel stands in one.",
            "Join them.",
        )
    text = next(iter(solution.sources)).content
    try:
        taken = _names(ast.parse(text))
    except SyntaxError as error:
        raise UserError(
            f"{solution.entry_file} of solution {solution.name} is not Python: {error}.", "Mend it."
        ) from None
    if solution.spec.language == "python" and "triton" not in taken:
        raise UserError(
            f"Solution {solution.name} is Python without Triton, and only kernels that the judge builds are launched.",
            "Write it in Triton, CUDA or C++, or begin with its definition: kernelteam init DEFINITION.json",
        )
    if solution.entry_symbol not in taken:
        raise UserError(f"Solution {solution.name} does not define {solution.spec.entry_point}.", "Correct it.")
    if ENTRY in taken:
        return text
    outputs = list(definition.outputs) if solution.spec.destination_passing_style else []
    arguments = ", ".join([*definition.inputs, *outputs])
    call = f"{solution.entry_symbol}({arguments})"
    body = f"    {call}" if outputs else f"    return {call}"
    return f"{text.rstrip()}\n\n\ndef {ENTRY}({', '.join(_ordered(definition, outputs))}):\n{body}\n"


def _ordered(definition: Definition, outputs: list[str]) -> list[str]:
    return [*definition.tensors, *outputs, *definition.scalars]


def _values(definition: Definition) -> dict[str, str]:
    """What a caller has, by name, as expressions over inputs and outputs."""
    values = {name: name for name in (*definition.inputs, *definition.outputs)}
    values |= {axis: str(value) for axis, value in definition.constants.items()}
    for name, spec in {**definition.tensors, **definition.outputs}.items():
        for at, axis in enumerate(spec.shape or ()):
            values.setdefault(axis, f"{name}.shape[{at}]")
    return values


def _names(tree: ast.Module) -> set[str]:
    """Names that a module binds at its top level."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return found


def _returns(function: ast.FunctionDef) -> bool:
    """Whether a function returns a value; functions within it do not count."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            return True
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return False

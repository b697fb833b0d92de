"""A person's own kernel in the place of a first one: its parameters named as the function's tensors and sizes are."""

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from team.errors import UserError
from team.tasks.first_kernel.dims import Sized, fitted
from team.tasks.first_kernel.program import Buffer
from team.tasks.first_kernel.writing import SUFFIXES, FirstKernel, Function, Language
from team.tasks.signature import parse_signature
from team.tasks.triton import ENTRY


def language_of_kernel(path: Path) -> Language:
    """The language that a kernel's file is written in, by its suffix."""
    for language, suffix in SUFFIXES.items():
        if path.suffix == suffix:
            return language
    raise UserError(f"{path.name} is no kernel source that is known.", f"It ends in {', '.join(SUFFIXES.values())}.")


def given_kernel(
    at: Callable[[Mapping[str, int]], Function], sizes: Mapping[str, int], path: Path, language: Language
) -> FirstKernel:
    """The kernel in ``path`` for the function that ``at`` gives for a set of changed sizes.

    Its integer parameters are the dims, and its tensors' extents must follow from them alone. ``UserError`` names what
    does not fit.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}.", "Give the file of a kernel.") from None
    base = at({})
    results = base.call(*base.arguments.values())
    tensors = {**base.arguments, **dict(zip(base.results, results, strict=True))}
    taken = _parameters(text, path, language, tensors, sizes)
    if missing := [name for name in base.results if name not in taken]:
        raise UserError(
            f"{path.name} takes no '{missing[0]}', which it has to write.", f"Its names are: {', '.join(tensors)}."
        )
    dims = {name: sizes[name] for name in taken if name in sizes}

    def shaped(changes: Mapping[str, int]) -> Sized:
        function = at(changes) if changes else base
        found = {**function.arguments, **dict(zip(function.results, _called(function), strict=True))}
        return Sized("", {name: tuple(found[name].shape) for name in taken if name in found})

    found = fitted(shaped, dims, str, "//")
    buffers = {name: Buffer(name, tuple(tensors[name].shape), tensors[name].dtype) for name in taken if name in tensors}
    inputs = tuple(one for name, one in buffers.items() if name not in base.results)
    return FirstKernel(text, dims, found.shapes, inputs, tuple(buffers[name] for name in base.results))


def _called(function: Function) -> tuple[torch.Tensor, ...]:
    return tuple(function.call(*function.arguments.values()))


def _parameters(
    text: str, path: Path, language: Language, tensors: Mapping[str, torch.Tensor], sizes: Mapping[str, int]
) -> list[str]:
    """The names that the kernel's entry point takes, all of which must be known, and of the right kind."""
    types: dict[str, str] = {}
    if language == "triton":
        taken = _python_parameters(text, path)
    else:
        signature = parse_signature(text, "cuda" if language == "cuda" else "cpp").without_stream()
        taken = [one.name for one in signature.parameters]
        types = {one.name: f"{one.dtype}{'*' * one.pointer}" for one in signature.parameters}
    if strange := [name for name in taken if name not in tensors and name not in sizes]:
        raise UserError(
            f"{path.name} takes '{strange[0]}', which is no tensor and no size of the problem.",
            f"Its names are: {', '.join([*tensors, *sizes])}.",
        )
    for name, found in types.items():
        want = f"{str(tensors[name].dtype).removeprefix('torch.')}*" if name in tensors else "an integer"
        if found != want and (name in tensors or "int" not in found or "*" in found):
            raise UserError(f"{path.name} takes '{name}' as {found}; in the problem it is {want}.", "Make them agree.")
    return taken


def _python_parameters(text: str, path: Path) -> list[str]:
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise UserError(f"{path} is not Python: {error}.", "Correct it.") from None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == ENTRY:
            return [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    raise UserError(f"{path} defines no function {ENTRY}.", f"Define {ENTRY}(inputs, outputs, sizes).")

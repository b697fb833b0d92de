"""The first kernel of a function: traced, lowered, written, its sizes named."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import torch
from torch.fx import GraphModule

from team.errors import UserError
from team.tasks.first_kernel.dims import Fitted, Sized, fitted
from team.tasks.first_kernel.lower import lowered
from team.tasks.first_kernel.program import Buffer, Program
from team.tasks.first_kernel.trace import traced
from team.tasks.first_kernel.write_c import words_of, written_cpp, written_cuda
from team.tasks.first_kernel.write_triton import written_triton

log = logging.getLogger(__name__)
Language = Literal["triton", "cuda", "cpp"]
SUFFIXES: dict[Language, str] = {"triton": ".py", "cuda": ".cu", "cpp": ".cpp"}
_WRITERS = {"triton": written_triton, "cuda": written_cuda, "cpp": written_cpp}


@dataclass(frozen=True)
class Function:
    """What is written: a function of tensors at one set of sizes, its arguments' and its results' names."""

    call: Callable[..., Any]
    arguments: Mapping[str, torch.Tensor]
    results: Sequence[str]


@dataclass(frozen=True)
class FirstKernel:
    """The text of the kernel, its dims, its arguments, and which inputs it does not read."""

    text: str
    dims: Mapping[str, int]
    shapes: Mapping[str, tuple[str, ...]]
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]


def first_kernel(
    at: Callable[[Mapping[str, int]], Function], dims: Mapping[str, int], language: Language, said: str
) -> FirstKernel:
    """The kernel of the function that ``at`` gives for a set of changed dims; ``UserError`` where it cannot be written.

    Arguments that the function does not read are left out.
    """
    function = at({})
    base = _program(function, _graph(function), dims)
    largest = max(one.elements for one in (*base.inputs, *base.outputs, *base.scratch))
    integer = "int" if largest < 2**31 else "long long"

    def written(changes: Mapping[str, int]) -> Sized | None:
        try:
            program = _at_other_sizes(at, changes, dims) if changes else base
        except UserError as error:
            log.info("not written with %s: %s", dict(changes), error)
            return None
        shapes = {one.name: one.shape for one in (*program.inputs, *program.outputs)}
        return Sized(_WRITERS[language](program, said, integer), shapes)

    python = language == "triton"
    found: Fitted = fitted(written, dims, lambda name: name if python else f"{integer} {name}", "//" if python else "/")
    return FirstKernel(found.text, found.dims, found.shapes, tuple(base.inputs), tuple(base.outputs))


def _at_other_sizes(
    at: Callable[[Mapping[str, int]], Function], changes: Mapping[str, int], dims: Collection[str]
) -> Program:
    """``UserError`` where a person's code does not run so; what it says there is kept."""
    try:
        function = at(changes)
        graph = _graph(function)
    except Exception as error:  # noqa: BLE001  human-owned code may raise anything at sizes that nobody planned
        raise UserError(f"The function does not run so: {error!r}.", "Its sizes stay numbers.") from None
    return _program(function, graph, dims)


def _graph(function: Function) -> GraphModule:
    return traced(function.call, list(function.arguments.values()))


def _program(function: Function, graph: GraphModule, dims: Collection[str]) -> Program:
    names = list(function.arguments)
    program = lowered(graph, names, function.results, tuple(dims))
    read = {word for stage in program.stages for word in words_of(stage)}
    program.inputs = [one for one in program.inputs if one.name in read]
    if not program.inputs:
        raise UserError("The function reads none of its inputs.", "Its result is a constant: there is nothing to do.")
    return program


def small_dims(
    dims: Mapping[str, int], elements: Callable[[Mapping[str, int]], int | None], most: int
) -> dict[str, int]:
    """The dims halved, the largest first, not below 2, until a launch has at most ``most`` elements."""
    found, stuck = dict(dims), set[str]()
    while (elements(found) or 0) > most and len(stuck) < len(found):
        name = max((one for one in found if one not in stuck), key=lambda one: found[one])
        tried = {**found, name: found[name] // 2}
        if found[name] < 4 or elements(tried) is None:
            stuck.add(name)
        else:
            found = tried
    return found


def elements_of(function: Function) -> int:
    """Elements of all arguments."""
    return sum(prod(one.shape) for one in function.arguments.values())

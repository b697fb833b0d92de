"""From a traced graph to a program of plain stages: one rule for each operator that is known."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from team.errors import UserError
from team.tasks.first_kernel.names import free
from team.tasks.first_kernel.program import Buffer, Index, Program, Stage, Value, stored
from team.tasks.first_kernel.syntax import Expression, Syntax

RULES: dict[str, Callable[..., Any]] = {}
"""Operator of ATen -> what it becomes; filled by the modules that hold the rules."""
Rule = Callable[..., Any]
_CHEAP = frozenset(
    [
        "full",
        "full_like",
        "scalar_tensor",
        "arange",
        "zeros",
        "zeros_like",
        "ones",
        "ones_like",
        "new_zeros",
        "new_ones",
        "iota",
    ]
)


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a rule: ``rule(lowering, node, *arguments, **keywords)``, with values in the place of nodes."""

    def register(made: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, made))
        return made

    return register


class Lowering:
    """One graph on its way to a program."""

    def __init__(self) -> None:
        self.program = Program()
        self.names: set[str] = set()
        self.users = 1  # of the node that is being lowered

    def buffer(self, wish: str, shape: Sequence[int], dtype: torch.dtype) -> Buffer:
        """New scratch memory, with a name that nothing else has."""
        made = Buffer(self.named(wish), tuple(shape), dtype)
        self.program.scratch.append(made)
        return made

    def named(self, wish: str) -> str:
        """``wish``, with a number where it is taken."""
        wish = wish if free(wish) else f"{wish}_"
        name, number = wish, 1
        while name in self.names:
            number += 1
            name = f"{wish}_{number}"
        self.names.add(name)
        return name

    def stage(self, wish: str, shape: Sequence[int], dtype: torch.dtype, body: Any, **details: Any) -> Value:
        """Compute every element of new memory."""
        target = self.buffer(wish, shape, dtype)
        self.program.stages.append(Stage(target, body, wish, **details))
        return stored(target)

    def real(self, value: Value) -> Value:
        """The value such that reading an element costs no more than that: stored, unless it is already."""
        if not value.lazy:
            return value
        wish = value.said.split(", ")[-1].strip("_") or "held"
        made = self.stage(wish, value.shape, value.dtype, lambda p, index, _: value.at(p, index))
        self.program.stages[-1].note = value.said or wish
        return made


def lowered(graph: GraphModule, names: Sequence[str], outputs: Sequence[str], reserved: Sequence[str]) -> Program:
    """The program of a graph whose placeholders are called ``names``; its results are stored in ``outputs``.

    ``reserved`` are names that no memory may have. ``UserError`` names the operator that is not known.
    """
    _load_rules()
    work = Lowering()
    work.names.update((*names, *outputs, *reserved))
    known: dict[Node, Any] = {}
    waiting = iter(names)
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            made = Buffer(next(waiting), tuple(node.meta["val"].shape), node.meta["val"].dtype)
            work.program.inputs.append(made)
            known[node] = stored(made)
        elif node.op == "output":
            _store_outputs(work, [known[one] for one in _flat(node.args[0])], outputs)
        else:
            known[node] = _node(work, node, known)
            if _is_in_place(node):
                known[node.args[0]] = known[node]  # type: ignore[index]
    return work.program


def _flat(returned: Any) -> list[Node]:
    if isinstance(returned, Node):
        return [returned]
    return [one for part in returned for one in _flat(part)] if isinstance(returned, list | tuple) else []


def _node(work: Lowering, node: Node, known: dict[Node, Any]) -> Any:
    name = operator_of(node)
    if name == "getitem":
        place = node.args[1]
        return known[node.args[0]][place]  # type: ignore[index]
    if name not in RULES:
        raise UserError(
            f"The first kernel cannot be written by itself: nobody taught it the operator {name}.",
            "Write a kernel, and make a task of that: kernelteam init KERNEL_FILE",
        )
    arguments = map_arg(node.args, lambda one: known[one])
    keywords = map_arg(dict(node.kwargs), lambda one: known[one])
    work.users = len(node.users)
    made = RULES[name](work, node, *arguments, **keywords)
    if isinstance(made, Value) and made.lazy and len(node.users) > 1:
        return work.real(made)
    return made


def operator_of(node: Node) -> str:
    """The operator's name in ATen; one that works in place is called as the one that does not."""
    if node.op != "call_function":
        raise UserError(
            f"The function uses {node.target}, a tensor that is neither an argument nor a number.",
            "Register it as a buffer of the module.",
        )
    schema = getattr(node.target, "_schema", None)
    name = schema.name.split("::")[-1] if schema is not None else getattr(node.target, "__name__", str(node.target))
    return name.removesuffix("_") if _is_in_place(node) else name


def _is_in_place(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.name.endswith("_")


def _store_outputs(work: Lowering, values: Sequence[Value], names: Sequence[str]) -> None:
    """Let the stages that made the results write to the outputs; a result that lies elsewhere is copied."""
    program = work.program
    for value, name in zip(values, names, strict=True):
        target = Buffer(name, value.shape, value.dtype)
        program.outputs.append(target)
        made = value.buffer
        if made is not None and made in program.scratch and made.dtype == value.dtype:
            program.scratch.remove(made)
            made.name = name
        else:
            program.stages.append(Stage(target, _copied(value), value.said or "copy"))


def _copied(value: Value) -> Callable[[Syntax, Index, Index], Expression]:
    return lambda p, index, _: value.at(p, index)


def shape_of(node: Node, place: int | None = None) -> tuple[int, ...]:
    """The shape that torch gave the node's result, or one of its results."""
    value = node.meta["val"]
    return tuple((value if place is None else value[place]).shape)


def dtype_of(node: Node, place: int | None = None) -> torch.dtype:
    """Likewise its dtype."""
    value = node.meta["val"]
    return (value if place is None else value[place]).dtype


def elements_of(shape: Sequence[int], dims: Sequence[int]) -> int:
    """How many elements some dims hold."""
    return prod(shape[one] for one in dims)


def _load_rules() -> None:
    from team.tasks.first_kernel import rules_elements, rules_products, rules_reductions, rules_windows

    del rules_elements, rules_products, rules_reductions, rules_windows

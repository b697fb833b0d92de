"""Expressions of a thread's place in the grid, and guards that switch surplus threads off."""

import re

from tree_sitter import Node

from roles.techniques.cpp.affine import polynomial
from roles.techniques.cpp.scopes import Declaration, declarations, fixed_value
from roles.techniques.cpp.syntax import bare, field, of_type, statements, text_of

_CASTS = re.compile(r"\((?:int|unsigned|unsignedint|long|longlong|size_t|int64_t)\)|static_cast<[\w:]+>|[()\s]")


def compact(node: Node) -> str:
    """The text without blanks, casts and parentheses; only for sums of products, where they change nothing."""
    return _CASTS.sub("", text_of(node))


def global_axis(node: Node) -> str:
    """``'x'`` for ``blockIdx.x * blockDim.x + threadIdx.x`` in any order; empty for anything else."""
    text = compact(node)
    for axis in "xyz":
        block = {f"blockIdx.{axis}*blockDim.{axis}", f"blockDim.{axis}*blockIdx.{axis}"}
        if text in {f"{one}+threadIdx.{axis}" for one in block} | {f"threadIdx.{axis}+{one}" for one in block}:
            return axis
    return ""


def index_declared(statement: Node) -> tuple[Declaration, str] | None:
    """The integer that a declaration sets to the thread's place in the grid, with its axis."""
    found = declarations(statement)
    if len(found) != 1 or found[0].value is None or not found[0].integer:
        return None
    axis = global_axis(found[0].value)
    return (found[0], axis) if axis else None


def guarded(body: list[Node]) -> tuple[list[Node], list[Node]] | None:
    """Conditions under which the thread works, and the statements that it then runs; None without a guard.

    Conditions are comparisons ``index < bound``, taken from ``if (index >= bound) return;`` or from an ``if`` around
    the rest. Only those two forms are understood.
    """
    if not body or body[0].type != "if_statement" or body[0].child_by_field_name("alternative") is not None:
        return None
    condition, then = bare(field(body[0], "condition")), statements(field(body[0], "consequence"))
    if len(then) == 1 and then[0].type == "return_statement":
        return _parts(condition, "||"), body[1:]
    return (_parts(condition, "&&"), then) if len(body) == 1 else None


def _parts(condition: Node, operator: str) -> list[Node]:
    condition = bare(condition)
    if condition.type == "binary_expression" and text_of(field(condition, "operator")) == operator:
        return _parts(field(condition, "left"), operator) + _parts(field(condition, "right"), operator)
    return [condition]


def bounds(conditions: list[Node], leaves: bool) -> dict[str, Node] | None:
    """Bound of each index: ``i < n`` under which it works, or ``i >= n`` under which it ``leaves``."""
    found: dict[str, Node] = {}
    for each in conditions:
        if each.type != "binary_expression":
            return None
        left, operator, right = (field(each, part) for part in ("left", "operator", "right"))
        wanted, mirrored = (">=", "<=") if leaves else ("<", ">")
        if text_of(operator) == wanted and left.type == "identifier":
            found[text_of(left)] = right
        elif text_of(operator) == mirrored and right.type == "identifier":
            found[text_of(right)] = left
        else:
            return None
    return found


def guard_of(body: list[Node]) -> tuple[dict[str, Node], list[Node]] | None:
    """Bounds of the guarded indices and the statements behind the guard."""
    found = guarded(body)
    if found is None:
        return None
    conditions, rest = found
    limits = bounds(conditions, leaves=len(body) != 1 or rest == [])
    return (limits, rest) if limits is not None else None


def block_shape(configuration: tuple[Node, ...], use: Node) -> tuple[int, ...] | None:
    """Constant block dimensions of a launch; None when they are not numbers in the source."""
    node = bare(configuration[1]) if len(configuration) > 1 else None
    if node is None:
        return None
    if node.type == "identifier":
        value = fixed_value(text_of(node), use)
        if value is not None and value.type in ("argument_list", "initializer_list"):
            return _numbers(value.named_children)
    if node.type == "call_expression" and text_of(field(node, "function")) == "dim3":
        return _numbers(field(node, "arguments").named_children)
    return _numbers([node])


def _numbers(nodes: list[Node]) -> tuple[int, ...] | None:
    values = [polynomial(each) for each in nodes]
    numbers = [each.get((), 0) for each in values if each is not None and set(each) <= {()}]
    return tuple(numbers) if len(numbers) == len(nodes) else None


def uses_threads(node: Node) -> bool:
    """True when the code asks for a thread's place or meets other threads."""
    text = text_of(node)
    words = ("threadIdx", "blockIdx", "blockDim", "gridDim", "__sync", "__shfl", "atomic", "asm")
    return any(word in text for word in words) or any(of_type(node, "gnu_asm_expression"))


def serial(nodes: list[Node]) -> list[Node]:
    """The statements without unroll directives and with inner blocks opened, unless two names would then clash."""
    opened: list[Node] = []
    for node in nodes:
        if node.type == "preproc_call" and text_of(node).lstrip().startswith("#pragma unroll"):
            continue
        opened += serial(statements(node)) if node.type == "compound_statement" else [node]
    names = [each.name for node in opened for each in declarations(node)]
    return opened if len(set(names)) == len(names) else nodes

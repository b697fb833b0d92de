"""Reads and writes of memory: which array, at which polynomial index, and whether two arrays may overlap.

By the judge's contract the pointer parameters of ``solve`` are distinct buffers that do not overlap. So are those
of a kernel that ``solve`` launches once with different ones. Elsewhere only ``__restrict__`` parameters and local
arrays are taken to be distinct.
"""

from dataclasses import dataclass

from tree_sitter import Node

from roles.techniques.cpp.affine import Polynomial, add, polynomial
from roles.techniques.cpp.scopes import (
    Declaration,
    assignments_to,
    declaration_of,
    fixed_value,
    function_name,
    function_of,
)
from roles.techniques.cpp.syntax import bare, field, of_type, text_of
from roles.techniques.cuda.launches import lent


@dataclass(frozen=True)
class Access:
    """One element of one array. ``index`` is None when it is not a polynomial."""

    array: str
    index: Polynomial | None
    node: Node
    write: bool


def _parts(node: Node) -> tuple[Node, Node] | None:
    indices = field(node, "indices")
    inner = [child for child in indices.named_children if child.type != "comment"]
    return (bare(field(node, "argument")), inner[0]) if len(inner) == 1 else None


def moved(declared: Declaration) -> bool:
    """True when a pointer is made to point elsewhere; ``p = __builtin_assume_aligned(p, n)`` does not move it."""
    aligned = f"__builtin_assume_aligned({declared.name},"
    return any(aligned not in text_of(each) for each in assignments_to(declared))


def _origin(pointer: Node, depth: int = 4) -> tuple[str, Polynomial | None] | None:
    """The array behind a pointer expression and the offset from its start."""
    pointer = bare(pointer)
    if depth == 0:
        return None
    if pointer.type == "identifier":
        declared = declaration_of(text_of(pointer), pointer)
        if declared is None or not (declared.pointer or declared.array):
            return None
        if declared.parameter or declared.array:
            return None if moved(declared) else (declared.name, {})
        value = fixed_value(declared.name, pointer)
        return _origin(value, depth - 1) if value is not None else None
    if pointer.type == "binary_expression" and text_of(field(pointer, "operator")) == "+":
        return _shifted(_origin(field(pointer, "left"), depth - 1), field(pointer, "right"))
    if pointer.type == "pointer_expression" and text_of(pointer.children[0]) == "&":
        target = bare(field(pointer, "argument"))
        parts = _parts(target) if target.type == "subscript_expression" else None
        return _shifted(_origin(parts[0], depth - 1), parts[1]) if parts else None
    return None


def _shifted(origin: tuple[str, Polynomial | None] | None, by: Node) -> tuple[str, Polynomial | None] | None:
    if origin is None or origin[1] is None:
        return origin
    offset = polynomial(by)
    return origin[0], (add(origin[1], offset) if offset is not None else None)


def access_of(node: Node) -> Access | None:
    """The access that a subscript expression makes; None when its array is not known."""
    parts = _parts(node)
    origin = _origin(parts[0]) if parts else None
    if parts is None or origin is None:
        return None
    shifted = _shifted(origin, parts[1])
    return Access(origin[0], shifted[1] if shifted else None, node, is_written(node))


def is_written(node: Node) -> bool:
    """True when the expression is the target of an assignment or increment."""
    parent = node.parent
    if parent is None:
        return False
    if parent.type == "update_expression":
        return True
    return parent.type == "assignment_expression" and field(parent, "left").id == node.id


def accesses(*nodes: Node) -> list[Access] | None:
    """Every access under ``nodes``; None when one of them is not understood."""
    found: list[Access] = []
    for node in nodes:
        for each in of_type(node, "subscript_expression"):
            if each.parent is not None and each.parent.type == "pointer_expression":
                continue  # an address is taken; nothing is read
            access = access_of(each)
            if access is None:
                return None
            found.append(access)
    return found


def element_type(array: str, use: Node) -> str:
    """Declared element type of an array, without qualifiers; empty when it is not declared."""
    declared = declaration_of(array, use)
    return declared.type if declared is not None else ""


def distinct(array: str, use: Node) -> bool:
    """True when no other array can overlap this one."""
    declared = declaration_of(array, use)
    function = function_of(use)
    if declared is None or function is None:
        return False
    if declared.array and not declared.parameter:
        return True
    return declared.parameter and (declared.restrict or function_name(function) == "solve" or lent(function))


def independent(found: list[Access], use: Node) -> bool:
    """True when no written array is read elsewhere: neither under its own name nor under an overlapping one."""
    written = {each.array for each in found if each.write}
    read = {each.array for each in found if not each.write}
    if written & read:
        return False
    return not written or all(distinct(array, use) for array in written | read)

"""Kernels with one thread an element: ``i``, a guard ``i < count``, and stores to element ``i``."""

from dataclasses import dataclass

from tree_sitter import Node

from roles.techniques.cpp.accesses import Access, accesses, distinct, element_type
from roles.techniques.cpp.effects import plain, pure_expression, volatile_free
from roles.techniques.cpp.scopes import declarations
from roles.techniques.cpp.syntax import field, identifiers, of_type, statements, text_of
from roles.techniques.cuda.launches import Kernel
from roles.techniques.cuda.threads import compact, global_axis, guard_of, index_declared, uses_threads


@dataclass(frozen=True)
class ElementProgram:
    """What a thread does with element ``index``. ``count`` is an expression over parameters."""

    kernel: Kernel
    index: str
    type: str
    count: Node
    body: tuple[Node, ...]
    accesses: tuple[Access, ...]

    def direct(self, access: Access) -> bool:
        """True for element ``index`` itself of a float array."""
        real = element_type(access.array, self.kernel.body) == "float"
        return real and access.index == {(self.index,): 1}

    def period(self, access: Access) -> str:
        """The parameter ``n`` of a read at ``index % n`` of a float array, empty otherwise."""
        inner = field(access.node, "indices").named_children[0]
        parts = compact(inner).split("%")
        known = len(parts) == 2 and parts[0] == self.index and self.kernel.is_parameter(parts[1])
        real = element_type(access.array, self.kernel.body) == "float"
        return parts[1] if known and real and not access.write else ""


def element_program(kernel: Kernel) -> ElementProgram | None:
    """The element program of a kernel, or None."""
    if len(kernel.launch.configuration) != 2 or not volatile_free(kernel.node):
        return None
    found = _guarded_form(kernel) or _stride_form(kernel)
    if found is None:
        return None
    index, kind, count, body = found
    seen = accesses(*body)
    names = identifiers(count)
    known = bool(names) and all(kernel.is_parameter(name) for name in names) and pure_expression(count)
    if seen is None or not known or not all(_simple(each) for each in body):
        return None
    program = ElementProgram(kernel, index, kind, count, tuple(body), tuple(seen))
    written = {each.array for each in seen if each.write}
    own = all(program.direct(each) for each in seen if each.array in written)
    apart = all(distinct(each.array, kernel.body) for each in seen)
    return program if written and own and apart else None


def _guarded_form(kernel: Kernel) -> tuple[str, str, Node, list[Node]] | None:
    body = statements(kernel.body)
    declared = index_declared(body[0]) if body else None
    guard = guard_of(body[1:]) if declared is not None and declared[1] == "x" else None
    if declared is None or guard is None or set(guard[0]) != {declared[0].name}:
        return None
    return declared[0].name, declared[0].type, guard[0][declared[0].name], guard[1]


def _stride_form(kernel: Kernel) -> tuple[str, str, Node, list[Node]] | None:
    """``for (int i = <place in grid>; i < n; i += blockDim.x * gridDim.x)``."""
    body = statements(kernel.body)
    if len(body) != 1 or body[0].type != "for_statement":
        return None
    parts = [body[0].child_by_field_name(name) for name in ("initializer", "condition", "update")]
    if any(part is None for part in parts):
        return None
    initializer, condition, update = (part for part in parts if part is not None)
    declared = declarations(initializer)
    if len(declared) != 1 or declared[0].value is None or global_axis(declared[0].value) != "x":
        return None
    name = declared[0].name
    steps = {f"{name}+=blockDim.x*gridDim.x", f"{name}+=gridDim.x*blockDim.x"}
    below = condition.type == "binary_expression" and text_of(field(condition, "operator")) == "<"
    if compact(update) not in steps or not below or text_of(field(condition, "left")) != name:
        return None
    return name, declared[0].type, field(condition, "right"), statements(field(body[0], "body"))


def _simple(statement: Node) -> bool:
    """A pure local constant, or one store of a pure value."""
    if uses_threads(statement) or not plain(statement) or any(of_type(statement, "for_statement", "if_statement")):
        return False
    if statement.type == "declaration":
        found = declarations(statement)
        return bool(found) and all(
            each.value is not None and pure_expression(each.value) and not each.array and not each.pointer
            for each in found
        )
    if statement.type != "expression_statement" or not statement.named_children:
        return False
    assignment = statement.named_children[0]
    store = assignment.type == "assignment_expression" and text_of(field(assignment, "operator")) == "="
    return (
        store
        and field(assignment, "left").type == "subscript_expression"
        and pure_expression(field(assignment, "right"))
    )

"""Reduction loops: one scalar accumulator, updated once an iteration by +, max or min."""

from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

from roles.techniques.cpp.accesses import Access, accesses, independent
from roles.techniques.cpp.affine import stride
from roles.techniques.cpp.effects import math_name, plain, pure_expression, volatile_free
from roles.techniques.cpp.loops import Loop
from roles.techniques.cpp.scopes import declaration_of, declarations, written_names
from roles.techniques.cpp.syntax import bare, field, identifiers, of_type, statements, text_of

Kind = Literal["sum", "max", "min"]


@dataclass(frozen=True)
class Update:
    """``accumulator = accumulator <kind> term``. ``fused`` holds (x, y) when it was written as fma(x, y, acc)."""

    accumulator: str
    kind: Kind
    node: Node
    term: Node
    fused: tuple[Node, Node] | None = None
    term_first: bool = False

    def applied(self, accumulator: str, value: str) -> str:
        """The update as a statement on another accumulator and value; max and min treat NaN as the source does."""
        if self.kind == "sum":
            return f"{accumulator} += {value};"
        left, right = (value, accumulator) if self.term_first else (accumulator, value)
        first, second = (left, right) if self.kind == "max" else (right, left)
        return f"{accumulator} = {first} < {second} ? {right} : {left};"

    @property
    def term_text(self) -> str:
        """The added or compared value as an expression of its own."""
        if self.fused:
            return f"{text_of(self.fused[0])} * {text_of(self.fused[1])}"
        return text_of(self.term)


@dataclass(frozen=True)
class Reduction:
    """A canonical loop whose only loop-carried value is one scalar accumulator."""

    loop: Loop
    update: Update
    type: str
    before: tuple[Node, ...]
    accesses: tuple[Access, ...]


def update_of(statement: Node) -> Update | None:
    """The update that a statement is, or None."""
    if statement.type == "if_statement":
        return _conditional(statement)
    if statement.type != "expression_statement" or not statement.named_children:
        return None
    expression = statement.named_children[0]
    if expression.type != "assignment_expression":
        return None
    left, right = field(expression, "left"), bare(field(expression, "right"))
    if left.type != "identifier":
        return None
    name, operator = text_of(left), text_of(field(expression, "operator"))
    if operator == "+=":
        return Update(name, "sum", statement, right)
    return _assigned(name, statement, right) if operator == "=" else None


def _assigned(name: str, statement: Node, right: Node) -> Update | None:
    if right.type == "binary_expression" and text_of(field(right, "operator")) == "+":
        left, other = field(right, "left"), field(right, "right")
        if text_of(left) == name:
            return Update(name, "sum", statement, bare(other))
        return Update(name, "sum", statement, left) if text_of(other) == name else None
    if right.type == "conditional_expression":
        parts = [field(right, each) for each in ("condition", "consequence", "alternative")]
        return _chosen(name, statement, bare(parts[0]), parts[1], parts[2])
    return _called(name, statement, right) if right.type == "call_expression" else None


def _called(name: str, statement: Node, call: Node) -> Update | None:
    function, arguments = math_name(call), field(call, "arguments").named_children
    if function in ("fma", "fmaf") and len(arguments) == 3 and text_of(arguments[2]) == name:
        return Update(name, "sum", statement, call, (arguments[0], arguments[1]))
    kinds: dict[str, Kind] = {"max": "max", "fmaxf": "max", "fmax": "max", "min": "min", "fminf": "min", "fmin": "min"}
    if function in kinds and len(arguments) == 2:
        others = [each for each in arguments if text_of(each) != name]
        term_first = len(others) == 1 and others[0].id == arguments[0].id
        return Update(name, kinds[function], statement, others[0], None, term_first) if len(others) == 1 else None
    return None


def _conditional(statement: Node) -> Update | None:
    body = statements(field(statement, "consequence"))
    if statement.child_by_field_name("alternative") is not None or len(body) != 1:
        return None
    if body[0].type != "expression_statement" or not body[0].named_children:
        return None
    assignment = body[0].named_children[0]
    if assignment.type != "assignment_expression" or text_of(field(assignment, "operator")) != "=":
        return None
    left, right = field(assignment, "left"), field(assignment, "right")
    if left.type != "identifier":
        return None
    return _chosen(text_of(left), statement, bare(field(statement, "condition")), right, left)


def _chosen(name: str, statement: Node, condition: Node, then: Node, otherwise: Node) -> Update | None:
    """``condition ? then : otherwise`` where the condition compares the accumulator with the other value."""
    if condition.type != "binary_expression":
        return None
    operator = text_of(field(condition, "operator")).rstrip("=")
    left, right = text_of(field(condition, "left")), text_of(field(condition, "right"))
    if operator not in ("<", ">"):
        return None
    value = otherwise if text_of(then) == name else then
    if {left, right} != {name, text_of(value)} or name not in (text_of(then), text_of(otherwise)):
        return None
    larger_first = operator == ">"
    takes_left = text_of(then) == left
    return Update(name, "max" if larger_first == takes_left else "min", statement, bare(value))


def reduction_of(loop: Loop) -> Reduction | None:
    """The reduction that a canonical loop is: local constants, independent stores, then one update."""
    body = loop.statements
    if not body or not loop.innermost or not plain(loop.body) or not volatile_free(loop.body):
        return None
    update = update_of(body[-1])
    declared = declaration_of(update.accumulator, loop.node) if update else None
    if update is None or declared is None or not declared.real or declared.parameter:
        return None
    found = accesses(loop.body)
    before = tuple(body[:-1])
    parts = update.fused or (update.term,)
    sound = all(pure_expression(part) and update.accumulator not in identifiers(part) for part in parts)
    sound = sound and found is not None and independent(found, loop.node)
    if found is None or not sound or not _carries_nothing_else(loop, update, before, found):
        return None
    return Reduction(loop, update, declared.type, before, tuple(found))


def _carries_nothing_else(loop: Loop, update: Update, before: tuple[Node, ...], found: list[Access]) -> bool:
    for statement in before:
        if statement.type == "declaration":
            if not all(each.value is not None and pure_expression(each.value) for each in declarations(statement)):
                return False
        elif not _independent_store(statement):
            return False
    for each in found:
        if each.write:
            step = stride(each.index, loop.variable) if each.index is not None else None
            if not step:
                return False
    locals_only = {each.name for one in of_type(loop.body, "declaration") for each in declarations(one)}
    arrays = {text_of(each.node) for each in found if each.write}
    extra = written_names(loop.body) - locals_only - arrays - {update.accumulator}
    used = sum(update.accumulator in identifiers(statement) for statement in before)
    return not extra and not used


def _independent_store(statement: Node) -> bool:
    if statement.type != "expression_statement" or not statement.named_children:
        return False
    assignment = statement.named_children[0]
    if assignment.type != "assignment_expression" or text_of(field(assignment, "operator")) != "=":
        return False
    return field(assignment, "left").type == "subscript_expression" and pure_expression(field(assignment, "right"))

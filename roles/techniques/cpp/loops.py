"""Canonical counted loops: ``for (T v = start; v < bound; v += step)`` with a variable its body never changes."""

from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from roles.techniques.cpp.scopes import INTEGER_TYPES, declarations, written_names
from roles.techniques.cpp.syntax import bare, field, identifiers, line_of, of_type, statements, text_of

_LEAVES = ("break_statement", "continue_statement", "goto_statement", "return_statement", "labeled_statement")
_BOUNDS = ("identifier", "number_literal", "binary_expression", "parenthesized_expression", "cast_expression")


@dataclass(frozen=True)
class Loop:
    """One canonical loop. ``step`` is the text of the step, ``'1'`` for ``++``."""

    node: Node
    type: str
    variable: str
    start: Node
    bound: Node
    step: str
    body: Node

    @property
    def statements(self) -> list[Node]:
        """The statements of the body."""
        return statements(self.body)

    @property
    def line(self) -> int:
        """Line on which the loop starts."""
        return line_of(self.node)

    @property
    def bound_text(self) -> str:
        """The bound, in parentheses unless it is one word."""
        text = text_of(self.bound)
        return text if self.bound.type in ("identifier", "number_literal") else f"({text})"

    @property
    def innermost(self) -> bool:
        """True when no loop is nested in this one."""
        return not any(of_type(self.body, "for_statement", "while_statement", "do_statement"))


def loop_of(node: Node) -> Loop | None:
    """The canonical loop that a statement is, or None."""
    if node.type != "for_statement":
        return None
    parts = [node.child_by_field_name(name) for name in ("initializer", "condition", "update", "body")]
    if any(part is None for part in parts):
        return None
    initializer, condition, update, body = (part for part in parts if part is not None)
    declared = declarations(initializer)
    if len(declared) != 1 or declared[0].value is None or declared[0].type not in INTEGER_TYPES:
        return None
    variable = declared[0].name
    bound = _bound(condition, variable)
    step = _step(update, variable)
    if bound is None or step is None or not _steady(variable, bound, step, body):
        return None
    return Loop(node, declared[0].type, variable, declared[0].value, bound, step, body)


def _bound(condition: Node, variable: str) -> Node | None:
    condition = bare(condition)
    if condition.type != "binary_expression" or text_of(field(condition, "operator")) != "<":
        return None
    left, right = field(condition, "left"), field(condition, "right")
    plain = right.type in _BOUNDS
    return right if text_of(left) == variable and plain and not any(of_type(right, "call_expression")) else None


def _step(update: Node, variable: str) -> str | None:
    if update.type == "update_expression":
        grows = text_of(update).replace(variable, "").strip() == "++"
        return "1" if grows and text_of(field(update, "argument")) == variable else None
    if update.type != "assignment_expression" or text_of(field(update, "operator")) != "+=":
        return None
    right = field(update, "right")
    plain = right.type in ("number_literal", "identifier")
    return text_of(right) if plain and text_of(field(update, "left")) == variable else None


def _steady(variable: str, bound: Node, step: str, body: Node) -> bool:
    changed = written_names(body)
    fixed = {variable, step} | identifiers(bound)
    leaves = any(of_type(body, *_LEAVES))
    return not leaves and not (fixed & changed)


@lru_cache(maxsize=64)
def loops_in(node: Node) -> tuple[Loop, ...]:
    """Every canonical loop at or under ``node``, outer ones first."""
    found = (loop_of(each) for each in of_type(node, "for_statement"))
    return tuple(loop for loop in found if loop is not None)


def enclosing_loops(node: Node) -> list[Loop]:
    """Canonical loops around ``node``, innermost first; stops at the first loop that is not canonical."""
    found: list[Loop] = []
    at = node.parent
    while at is not None and at.type != "function_definition":
        if at.type in ("for_statement", "while_statement", "do_statement"):
            loop = loop_of(at)
            if loop is None:
                return found
            found.append(loop)
        at = at.parent
    return found

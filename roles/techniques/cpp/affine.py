"""Index expressions as polynomials over the kernel's integer names, so that strides can be read off.

``i * K + k`` becomes ``{('K', 'i'): 1, ('k',): 1}``; its stride in ``k`` is 1 and in ``i`` is ``K``.
"""

from collections.abc import Iterable

from tree_sitter import Node

from roles.techniques.cpp.scopes import fixed_value
from roles.techniques.cpp.syntax import bare, field, text_of

Polynomial = dict[tuple[str, ...], int]
ONE: Polynomial = {(): 1}
_DEPTH = 8


def add(left: Polynomial, right: Polynomial, sign: int = 1) -> Polynomial:
    """left + sign * right."""
    total = dict(left)
    for term, factor in right.items():
        total[term] = total.get(term, 0) + sign * factor
    return {term: factor for term, factor in total.items() if factor}


def multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    """left * right."""
    total: Polynomial = {}
    for first, a in left.items():
        for second, b in right.items():
            term = tuple(sorted(first + second))
            total[term] = total.get(term, 0) + a * b
    return {term: factor for term, factor in total.items() if factor}


def symbols(polynomial: Polynomial) -> set[str]:
    """Names on which the value depends."""
    return {name for term in polynomial for name in term}


def stride(polynomial: Polynomial, name: str) -> Polynomial | None:
    """How far the value moves when ``name`` grows by one; None when it is not linear in ``name``."""
    step: Polynomial = {}
    for term, factor in polynomial.items():
        if term.count(name) > 1:
            return None
        if name in term:
            rest = list(term)
            rest.remove(name)
            step[tuple(rest)] = step.get(tuple(rest), 0) + factor
    return step


def without(polynomial: Polynomial, names: Iterable[str]) -> Polynomial:
    """The terms that mention none of ``names``."""
    dropped = set(names)
    return {term: factor for term, factor in polynomial.items() if not dropped & set(term)}


def polynomial(node: Node, depth: int = _DEPTH) -> Polynomial | None:
    """The polynomial of an integer expression; None when it is not one. Locals that never change are followed."""
    node = bare(node)
    if depth == 0:
        return None
    if node.type == "number_literal":
        digits = text_of(node).rstrip("uUlLzZ")
        return ({(): int(digits)} if int(digits) else {}) if digits.isdigit() else None
    if node.type == "identifier":
        return _named(node, depth)
    if node.type == "binary_expression":
        return _binary(node, depth)
    if node.type == "cast_expression":
        return polynomial(field(node, "value"), depth - 1)
    if node.type == "call_expression" and text_of(field(node, "function")).startswith("static_cast<"):
        arguments = field(node, "arguments").named_children
        return polynomial(arguments[0], depth - 1) if len(arguments) == 1 else None
    return None


def _named(node: Node, depth: int) -> Polynomial:
    value = fixed_value(text_of(node), node)
    known = polynomial(value, depth - 1) if value is not None else None
    return known if known is not None else {(text_of(node),): 1}


def _binary(node: Node, depth: int) -> Polynomial | None:
    left = polynomial(field(node, "left"), depth - 1)
    right = polynomial(field(node, "right"), depth - 1)
    if left is None or right is None:
        return None
    operator = text_of(field(node, "operator"))
    if operator == "+":
        return add(left, right)
    if operator == "-":
        return add(left, right, -1)
    return multiply(left, right) if operator == "*" else None

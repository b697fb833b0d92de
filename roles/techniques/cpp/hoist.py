"""Take out of a loop what does not change in it: divisors become reciprocals, invariant calls are made once."""

from collections.abc import Iterator, Mapping

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import accesses
from roles.techniques.cpp.effects import invariant, plain, pure_call, pure_expression, volatile_free
from roles.techniques.cpp.loops import Loop, loops_in
from roles.techniques.cpp.render import replaced, substituted
from roles.techniques.cpp.syntax import Source, bare, directives, field, line_of, of_type, text_of
from roles.techniques.cpp.value_types import value_type
from roles.techniques.transform import Match, TreeTransform

_SIMPLE = ("identifier", "number_literal", "call_expression", "parenthesized_expression")


def _movable(node: Node, loop: Loop) -> bool:
    return pure_expression(node) and invariant(node, loop.node) and volatile_free(node)


def _workable(loop: Loop) -> bool:
    """An innermost loop of plain code whose every access is understood."""
    return loop.innermost and plain(loop.body) and accesses(loop.body) is not None


class HoistReciprocal(TreeTransform):
    """``x / d`` with ``d`` fixed in the loop becomes ``x * (1 / d)`` with the reciprocal taken before it."""

    def matches(self, source: Source) -> Iterator[Match]:
        """One match a loop and divisor text: all its divisions are one change."""
        for loop in loops_in(source.root):
            if not _workable(loop):
                continue
            groups: dict[str, list[Node]] = {}
            for each in of_type(loop.body, "binary_expression"):
                if self._division(each, loop):
                    groups.setdefault(text_of(field(each, "right")), []).append(each)
            for divisor, found in groups.items():
                calls = any(of_type(field(found[0], "right"), "call_expression"))
                evidence = (
                    f"line {line_of(found[0])}: divides by `{divisor}`, which does not change over {loop.variable}"
                )
                subject = f"the division by `{divisor}` over {loop.variable}"
                yield Match(loop.node, subject, evidence, found, 0.3 if calls else 0.2)

    def _division(self, node: Node, loop: Loop) -> bool:
        if text_of(field(node, "operator")) != "/":
            return False
        left, right = field(node, "left"), field(node, "right")
        real = value_type(left) in ("float", "double") and value_type(right) != "unknown"
        return real and not invariant(left, loop.node) and right.type != "number_literal" and _movable(right, loop)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The reciprocal is a constant before the loop; each division becomes a product."""
        found: list[Node] = match.data
        divisor = field(found[0], "right")
        name = source.fresh("reciprocal")
        one = "1.0" if value_type(divisor) == "double" else "1.0f"
        value = text_of(divisor) if divisor.type in _SIMPLE else f"({text_of(divisor)})"
        swaps = [swap for each in found for swap in ((_operator(each), "*"), (field(each, "right"), name))]
        return _before(source, match.node, f"const auto {name} = {one} / {value};", "hoist_reciprocal", swaps)


def _operator(node: Node) -> Node:
    return field(node, "operator")


class HoistCall(TreeTransform):
    """A mathematical call whose operands do not change in the loop is made once, before it."""

    def matches(self, source: Source) -> Iterator[Match]:
        """One match a loop and call text."""
        for loop in loops_in(source.root):
            if not _workable(loop):
                continue
            groups: dict[str, list[Node]] = {}
            for call in of_type(loop.body, "call_expression"):
                if pure_call(call) and _movable(call, loop) and not _inside_movable_call(call, loop):
                    groups.setdefault(text_of(call), []).append(call)
            for text, found in groups.items():
                evidence = f"line {line_of(found[0])}: `{text}` does not change over {loop.variable}"
                yield Match(loop.node, f"`{text}` over {loop.variable}", evidence, found)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The call's value is a constant before the loop."""
        found: list[Node] = match.data
        name = source.fresh("hoisted")
        swaps = [(each, name) for each in found]
        return _before(source, match.node, f"const auto {name} = {text_of(found[0])};", "hoist_call", swaps)


def _inside_movable_call(call: Node, loop: Loop) -> bool:
    at = call.parent
    while at is not None and at.id != loop.body.id:
        if at.type == "call_expression" and _movable(bare(at), loop):
            return True
        at = at.parent
    return False


def _before(source: Source, node: Node, declaration: str, technique: str, swaps: list[tuple[Node, str]]) -> str:
    indent = source.indent_of(node)
    body = substituted(node, swaps).split("\n")
    kept = [text_of(each).strip() for each in reversed(directives(node))]
    lines = [f"{declaration}  // {technique}", *kept, body[0], *(line.removeprefix(indent) for line in body[1:])]
    return replaced(source, node, lines)

"""Matmul written as i-k-j, accumulating into its output: turned into i-j-k with an accumulator, then register-blocked.

``for i { for j C[i, j] = start; for k { locals; for j C[i, j] += term; } }`` adds the same terms in the same order as
``for i for j { float sum = start; for k { sum += term; } C[i, j] = sum; }``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import accesses, element_type
from roles.techniques.cpp.effects import plain, volatile_free
from roles.techniques.cpp.loops import Loop, loop_of, loops_in
from roles.techniques.cpp.nests import constant_locals, rectangular
from roles.techniques.cpp.register_block import RegisterBlock
from roles.techniques.cpp.render import nest, renamed, replaced
from roles.techniques.cpp.scopes import declarations
from roles.techniques.cpp.syntax import Source, field, substituted_text, text_of
from roles.techniques.transform import Match, Site, TreeTransform


@dataclass(frozen=True)
class Accumulated:
    """The parts of an i-k-j nest; ``term`` is what is added to ``target`` for every k."""

    i: Loop
    before: tuple[Node, ...]
    start: Node
    j: Loop
    k: Loop
    locals: tuple[Node, ...]
    target: Node
    term: str


def accumulated_of(i: Loop) -> Accumulated | None:
    """The i-k-j nest whose outer loop is ``i``, or None."""
    *before, last = i.statements or [i.node]
    k, zero = loop_of(last), loop_of(before[-1]) if before else None
    if k is None or zero is None or not plain(i.body) or not volatile_free(i.node) or not k.statements:
        return None
    *inside, innermost = k.statements
    j = loop_of(innermost)
    if (
        j is None
        or not rectangular(i, zero, k, j)
        or not all(constant_locals(each) for each in (*before[:-1], *inside))
    ):
        return None
    started, update = _assigned(zero, "="), _assigned(j, "+=")
    if started is None or update is None or not _same_range(zero, j):
        return None
    target, term = update
    same = renamed(started[0], {zero.variable: j.variable}) == text_of(target)
    found = accesses(target)
    known = bool(found) and element_type(found[0].array, target) == "float"
    own = any(zero.variable in text_of(each) for each in (started[1],))
    if not same or not known or own:
        return None
    return Accumulated(i, tuple(before[:-1]), started[1], j, k, tuple(inside), target, text_of(term))


def _assigned(loop: Loop, operator: str) -> tuple[Node, Node] | None:
    """Target and value of a loop whose body is one assignment to an array element."""
    body = loop.statements
    if len(body) != 1 or body[0].type != "expression_statement" or not body[0].named_children:
        return None
    assignment = body[0].named_children[0]
    if assignment.type != "assignment_expression" or text_of(field(assignment, "operator")) != operator:
        return None
    left = field(assignment, "left")
    return (left, field(assignment, "right")) if left.type == "subscript_expression" else None


def _same_range(first: Loop, second: Loop) -> bool:
    ends = [(first.start, second.start), (first.bound, second.bound)]
    return all(text_of(left) == text_of(right) for left, right in ends)


def _canonical(source: Source, found: Accumulated) -> str:
    """The text with the nest as i-j-k around one accumulator. Locals of k that the term reads are substituted."""
    term = found.term
    for each in reversed(found.locals):
        for one in declarations(each):
            if one.value is not None:
                term = substituted_text(term, one.name, text_of(one.value))
    name, unit = source.fresh("sum"), source.indent_unit
    header = source.data[found.k.node.start_byte : found.k.body.start_byte].decode().rstrip()
    over_j = source.data[found.j.node.start_byte : found.j.body.start_byte].decode().rstrip()
    over_i = source.data[found.i.node.start_byte : found.i.body.start_byte].decode().rstrip()
    inner = [
        f"float {name} = {text_of(found.start)};",
        *nest(header, [f"{name} += {term};"], unit),
        f"{text_of(found.target)} = {name};",
    ]
    rows = [line for each in found.before for line in source.lines_of(each)]
    return replaced(source, found.i.node, nest(over_i, [*rows, *nest(over_j, inner, unit)], unit))


class BlockAccumulated(TreeTransform):
    """Register blocking of an i-k-j nest."""

    choices = RegisterBlock.choices

    def matches(self, source: Source) -> Iterator[Match]:
        """Nests that register_block takes once they are written with an accumulator."""
        for loop in loops_in(source.root):
            found = accumulated_of(loop)
            if found is not None and self._blocked_site(source, found) is not None:
                subject = f"the {loop.variable}, {found.k.variable}, {found.j.variable} nest that adds into memory"
                evidence = f"line {loop.line}: `{text_of(found.target)}` is loaded and stored for every multiplication"
                yield Match(loop.node, subject, evidence, found)

    def _blocked_site(self, source: Source, found: Accumulated) -> tuple[str, Site] | None:
        text = _canonical(source, found)
        sites = [each for each in RegisterBlock().applies(text) if each.line == found.i.line]
        return (text, sites[0]) if sites else None

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """First the accumulator, then the tiles."""
        blocked = self._blocked_site(source, match.data)
        if blocked is None:
            raise LookupError("the nest is not the one that was matched")
        text, site = blocked
        return RegisterBlock().apply(text, site, parameters)

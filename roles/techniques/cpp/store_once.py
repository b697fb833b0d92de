"""Compute an expensive value once: store it in the output while it is summed, and scale the stored value afterwards."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import Access, accesses, distinct, element_type
from roles.techniques.cpp.affine import ONE, stride
from roles.techniques.cpp.effects import plain, pure_call, volatile_free
from roles.techniques.cpp.loops import Loop, loop_of, loops_in
from roles.techniques.cpp.reductions import Reduction, reduction_of
from roles.techniques.cpp.render import nest, renamed, substituted
from roles.techniques.cpp.scopes import written_names
from roles.techniques.cpp.syntax import Edit, Source, field, identifiers, indented, of_type, statements, text_of
from roles.techniques.cpp.value_types import value_type
from roles.techniques.transform import Match, TreeTransform


@dataclass(frozen=True)
class Repeat:
    """The same call in a summing loop and in a later storing loop over the same range."""

    reduction: Reduction
    second: Loop
    store: Access
    first_call: Node
    second_call: Node


def _same_text(left: str, right: str) -> bool:
    return "".join(left.split()) == "".join(right.split())


def repeat_of(first: Loop) -> Repeat | None:
    """The repeated computation that starts with the loop ``first``, or None."""
    reduction = reduction_of(first)
    parent = first.node.parent
    if reduction is None or reduction.update.kind != "sum" or reduction.update.fused or parent is None:
        return None
    between: list[Node] = []
    for sibling in (each for each in statements(parent) if each.start_byte >= first.node.end_byte):
        *before, last = statements(sibling) or [sibling]
        second = loop_of(last)
        between += before if second is not None else [sibling]
        if second is not None:
            return _paired(reduction, second, between)
    return None


def _paired(reduction: Reduction, second: Loop, between: list[Node]) -> Repeat | None:
    store = _single_store(second)
    if store is None or not _same_range(reduction.loop, second) or not plain(*between):
        return None
    pair = _repeated_call(reduction, second)
    if pair is None or not _store_is_free(reduction, second, store, between, pair[0]):
        return None
    return Repeat(reduction, second, store, *pair)


def _single_store(loop: Loop) -> Access | None:
    """The one store of a loop whose body is one assignment to a contiguous float array."""
    body = loop.statements
    if len(body) != 1 or body[0].type != "expression_statement" or not plain(loop.body) or not volatile_free(loop.body):
        return None
    assignment = body[0].named_children[0]
    if assignment.type != "assignment_expression" or text_of(field(assignment, "operator")) != "=":
        return None
    found = accesses(field(assignment, "left"))
    if not found or len(found) != 1 or not found[0].write or found[0].index is None:
        return None
    contiguous = stride(found[0].index, loop.variable) == ONE
    return found[0] if contiguous and element_type(found[0].array, found[0].node) == "float" else None


def _same_range(first: Loop, second: Loop) -> bool:
    ends = [(first.start, second.start), (first.bound, second.bound)]
    same = all(_same_text(text_of(left), text_of(right)) for left, right in ends)
    return same and first.step == second.step == "1" and first.type == second.type


def _repeated_call(reduction: Reduction, second: Loop) -> tuple[Node, Node] | None:
    first_calls = [call for call in of_type(reduction.loop.body, "call_expression") if _expensive(call)]
    names = {second.variable: reduction.loop.variable}
    for later in of_type(second.body, "call_expression"):
        for call in first_calls:
            if _same_text(renamed(later, names), text_of(call)):
                return call, later
    return None


def _expensive(call: Node) -> bool:
    name = text_of(field(call, "function"))
    cheap = ("min", "max", "abs", "fabs", "static_cast")
    return pure_call(call) and value_type(call) == "float" and not name.split("::")[-1].startswith(cheap)


def _store_is_free(reduction: Reduction, second: Loop, store: Access, between: list[Node], call: Node) -> bool:
    """The output is not read before it is stored, cannot overlap the inputs, and the call's operands do not change."""
    others = accesses(reduction.loop.body, *between, second.body)
    if others is None:
        return False
    touched = [each for each in others if each.node.id != store.node.id]
    changed = set().union(*(written_names(each) for each in (*between, second.node)))
    changed |= {reduction.update.accumulator}
    steady = not (identifiers(call) - {reduction.loop.variable}) & (changed - {second.variable})
    index = (identifiers(store.node) - {second.variable}) & (changed | written_names(reduction.loop.node))
    apart = all(each.array != store.array for each in touched)
    unwritten = not any(each.write for each in touched)
    known = all(distinct(each.array, second.node) for each in others)
    local = identifiers(call) & written_names(reduction.loop.body)
    return steady and not index and apart and unwritten and known and not local


class StoreOnce(TreeTransform):
    """Softmax-shaped rows: the exponentials of the sum are kept in the output instead of being computed again."""

    def matches(self, source: Source) -> Iterator[Match]:
        """A sum whose term contains a call that a later loop over the same range computes again."""
        for loop in loops_in(source.root):
            found = repeat_of(loop)
            if found is not None:
                call = text_of(found.first_call)
                subject = f"`{call}` over {loop.variable}"
                evidence = f"lines {loop.line} and {found.second.line}: `{call}` is computed twice for every element"
                yield Match(loop.node, subject, evidence, found)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The first loop stores the value; the second reads it back."""
        found: Repeat = match.data
        loop = found.reduction.loop
        value = source.fresh_in("value", loop.node)
        target = renamed(found.store.node, {found.second.variable: loop.variable})
        body = [
            f"// store_once: keep the value in {found.store.array} instead of computing it again.",
            f"const float {value} = {text_of(found.first_call)};",
            f"{target} = {value};",
        ]
        for each in loop.statements:
            inside = found.first_call.start_byte >= each.start_byte and found.first_call.end_byte <= each.end_byte
            swaps = [(found.first_call, value)] if inside else []
            body += substituted(each, swaps).split("\n")
        opening = source.data[loop.node.start_byte : loop.body.start_byte].decode().rstrip()
        indent = source.indent_of(loop.node)
        first, *rest = nest(opening, body, source.indent_unit)
        return source.replace(
            Edit(loop.node.start_byte, loop.node.end_byte, "\n".join([first, *indented(rest, indent)])),
            Edit(found.second_call.start_byte, found.second_call.end_byte, text_of(found.store.node)),
        )

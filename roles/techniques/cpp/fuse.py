"""Fusing two neighbouring loops over the same range, so that what the first wrote is still in a register."""

from collections.abc import Iterator, Mapping

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import Access, accesses, distinct
from roles.techniques.cpp.affine import Polynomial, stride
from roles.techniques.cpp.independence import independent_iterations
from roles.techniques.cpp.loops import Loop, loop_of, loops_in
from roles.techniques.cpp.reductions import reduction_of
from roles.techniques.cpp.render import nest, renamed
from roles.techniques.cpp.scopes import written_names
from roles.techniques.cpp.split_accumulator import constant_trip, continues_another
from roles.techniques.cpp.syntax import Edit, Source, identifiers, statements, text_of
from roles.techniques.transform import Match, TreeTransform


def neighbour(first: Loop) -> Loop | None:
    """The canonical loop that follows directly, over the same range."""
    parent = first.node.parent
    if parent is None or parent.type != "compound_statement":
        return None
    later = [each for each in statements(parent) if each.start_byte >= first.node.end_byte]
    second = loop_of(later[0]) if later else None
    if second is None or second.type != first.type or second.step != first.step:
        return None
    ends = [(first.start, second.start), (first.bound, second.bound)]
    same = all("".join(text_of(a).split()) == "".join(text_of(b).split()) for a, b in ends)
    return second if same else None


def _workable(loop: Loop) -> bool:
    skipped = constant_trip(loop) or continues_another(loop) or not loop.innermost
    return not skipped and (independent_iterations(loop) or reduction_of(loop) is not None)


def _turned(index: Polynomial | None, old: str, new: str) -> Polynomial | None:
    if index is None:
        return None
    return {tuple(sorted(new if name == old else name for name in term)): factor for term, factor in index.items()}


def fusible(first: Loop, second: Loop) -> bool:
    """True when iteration c of the second loop needs nothing but iteration c of the first one, and the reverse."""
    if not (_workable(first) and _workable(second)):
        return False
    left, right = accesses(first.body), accesses(second.body)
    if left is None or right is None:
        return False
    moved = [(each.array, _turned(each.index, second.variable, first.variable), each.write) for each in right]
    every = [(each.array, each.index, each.write) for each in left] + moved
    shared = {array for array, _, write in every if write}
    indices = {array: [index for name, index, _ in every if name == array] for array in shared}
    own = all(
        index is not None and stride(index, first.variable) and index == found[0]
        for found in indices.values()
        for index in found
    )
    return own and _scalars_apart(first, second) and all(distinct(each.array, first.node) for each in left + right)


def _scalars_apart(first: Loop, second: Loop) -> bool:
    """Neither loop mentions a variable that the other one changes or declares."""
    ones, others = written_names(first.body), written_names(second.body)
    clash = ones & identifiers(second.node) | others & identifiers(first.node)
    captured = second.variable != first.variable and first.variable in identifiers(second.node)
    return not clash and not captured


def _shared_arrays(first: list[Access] | None, second: list[Access] | None) -> bool:
    return bool({each.array for each in first or []} & {each.array for each in second or []})


class FuseLoops(TreeTransform):
    """One pass instead of two."""

    def matches(self, source: Source) -> Iterator[Match]:
        """Neighbouring innermost loops over one range that touch a common array."""
        for first in loops_in(source.root):
            second = neighbour(first)
            if second is None or not fusible(first, second):
                continue
            if _shared_arrays(accesses(first.body), accesses(second.body)):
                evidence = f"lines {first.line} and {second.line}: two passes over the same elements"
                yield Match(first.node, f"the two loops over {first.variable}", evidence, (first, second))

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The second body follows the first one; the second loop goes."""
        first, second = match.data
        header = source.data[first.node.start_byte : first.body.start_byte].decode().rstrip()
        body = [line for each in first.statements for line in source.lines_of(each)]
        for each in second.statements:
            body += _unindented(source, each, renamed(each, {second.variable: first.variable}))
        lines = ["// fuse_loops: one pass over the elements.", *nest(header, body, source.indent_unit)]
        indent = source.indent_of(first.node)
        text = "\n".join([lines[0], *(indent + line for line in lines[1:])])
        return source.replace(
            Edit(first.node.start_byte, first.node.end_byte, text), Edit(*_whole_lines(source, second.node), "")
        )


def _unindented(source: Source, node: Node, text: str) -> list[str]:
    indent = source.indent_of(node)
    first, *rest = text.split("\n")
    return [first, *(line.removeprefix(indent) for line in rest)]


def _whole_lines(source: Source, node: Node) -> tuple[int, int]:
    """The span of a statement with the blank before it and its line end."""
    start = source.data.rfind(b"\n", 0, node.start_byte) + 1
    if source.data[start : node.start_byte].strip():
        return node.start_byte, node.end_byte
    end = node.end_byte
    return start, end + (source.data[end : end + 1] == b"\n")

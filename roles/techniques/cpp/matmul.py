"""Recognising matmul-shaped nests: for each (i, j), reduce over k, then an epilogue that stores.

``out[i, j] = g(sum over k of f(A[i, k], B[k, j]))`` where f uses only +, - and *, written with any names, as long as
the iterations over i and j are provably independent of their order.
"""

from dataclasses import dataclass

from tree_sitter import Node

from roles.techniques.cpp.accesses import Access, accesses, distinct, element_type
from roles.techniques.cpp.affine import ONE, Polynomial, polynomial, stride, symbols
from roles.techniques.cpp.effects import plain, pure_expression, volatile_free
from roles.techniques.cpp.loops import Loop, loop_of
from roles.techniques.cpp.reductions import Reduction, reduction_of
from roles.techniques.cpp.scopes import Declaration, declaration_of, declarations, written_names
from roles.techniques.cpp.syntax import bare, field, identifiers, of_type, text_of

_ARITHMETIC = ("+", "-", "*")


@dataclass(frozen=True)
class Matmul:
    """One nest i, j, k. ``row_reads`` do not depend on j; ``column_reads`` depend on j and not on i."""

    i: Loop
    j: Loop
    reduction: Reduction
    initial: Node
    accumulator: Node
    i_preamble: tuple[Node, ...]
    j_preamble: tuple[Node, ...]
    epilogue: tuple[Node, ...]
    row_reads: tuple[Access, ...]
    column_reads: tuple[Access, ...]

    @property
    def k(self) -> Loop:
        """The reduction loop."""
        return self.reduction.loop


def matmul_of(i: Loop) -> Matmul | None:
    """The matmul-shaped nest whose outermost loop is ``i``, or None."""
    i_preamble, inner = _split(i)
    j = loop_of(inner) if inner is not None else None
    if j is None or i.statements[-1].id != j.node.id or not plain(i.body) or not volatile_free(i.node):
        return None
    before, k_node = _split(j)
    k = loop_of(k_node) if k_node is not None else None
    reduction = reduction_of(k) if k is not None else None
    if k is None or reduction is None or reduction.before or reduction.update.kind != "sum":
        return None
    declared = [each for each in before if _declares(each, reduction.update.accumulator)]
    epilogue = tuple(each for each in j.statements if each.start_byte >= k.node.end_byte)
    if len(declared) != 1 or not epilogue or not _rectangular(i, j, k):
        return None
    return _checked(i, j, reduction, declared[0], i_preamble, before, epilogue)


def _checked(
    i: Loop,
    j: Loop,
    reduction: Reduction,
    accumulator: Node,
    i_preamble: tuple[Node, ...],
    before: tuple[Node, ...],
    epilogue: tuple[Node, ...],
) -> Matmul | None:
    initial = declarations(accumulator)[0].value
    j_preamble = tuple(each for each in before if each.id != accumulator.id)
    reads = _classified(reduction, i, j)
    if initial is None or not pure_expression(initial) or reads is None or not _products_only(reduction):
        return None
    preambles = i_preamble + j_preamble
    if not all(_constant(each) for each in preambles):
        return None
    if not _ordered_freely(i, j, reduction, (initial, *preambles), epilogue):
        return None
    return Matmul(i, j, reduction, initial, accumulator, i_preamble, j_preamble, epilogue, *reads)


def _split(loop: Loop) -> tuple[tuple[Node, ...], Node | None]:
    """Statements before the first inner loop, and that loop."""
    before: list[Node] = []
    for statement in loop.statements:
        if statement.type == "for_statement":
            return tuple(before), statement
        before.append(statement)
    return tuple(before), None


def _declares(statement: Node, name: str) -> bool:
    found = declarations(statement)
    return len(found) == 1 and found[0].name == name and found[0].type == "float"


def _constant(statement: Node) -> bool:
    """A declaration of locals that are never changed afterwards, from a pure value."""
    found = declarations(statement)
    scope = statement.parent
    return bool(found) and scope is not None and all(_fixed(each, scope) for each in found)


def _fixed(declared: Declaration, scope: Node) -> bool:
    changed = {text_of(field(each, "left")) for each in of_type(scope, "assignment_expression")}
    changed |= {text_of(field(each, "argument")) for each in of_type(scope, "update_expression")}
    return declared.value is not None and pure_expression(declared.value) and declared.name not in changed


def _rectangular(i: Loop, j: Loop, k: Loop) -> bool:
    """Unit steps, and bounds that do not depend on anything the nest changes."""
    changed = written_names(i.node)
    ends = [end for loop in (i, j, k) for end in (loop.start, loop.bound)]
    fixed = all(pure_expression(end) and not identifiers(end) & changed for end in ends)
    return fixed and all(loop.step == "1" for loop in (i, j, k)) and not any(_memory(end) for end in ends)


def _memory(node: Node) -> bool:
    return any(of_type(node, "subscript_expression"))


def _classified(reduction: Reduction, i: Loop, j: Loop) -> tuple[tuple[Access, ...], tuple[Access, ...]] | None:
    rows: dict[str, Access] = {}
    columns: dict[str, Access] = {}
    for each in reduction.accesses:
        if each.index is None or each.write or element_type(each.array, each.node) != "float":
            return None
        names = symbols(each.index)
        if j.variable in names and i.variable in names:
            return None
        (columns if j.variable in names else rows).setdefault(text_of(each.node), each)
    single = len(columns) == 1 and len(rows) == 1
    return (tuple(rows.values()), tuple(columns.values())) if single else None


def _products_only(reduction: Reduction) -> bool:
    """The term is built from float reads, float scalars and literals with +, - and * alone."""
    parts = reduction.update.fused or (reduction.update.term,)
    return all(_arithmetic(part) for part in parts)


def _arithmetic(node: Node) -> bool:
    node = bare(node)
    if node.type == "binary_expression":
        known = text_of(field(node, "operator")) in _ARITHMETIC
        return known and _arithmetic(field(node, "left")) and _arithmetic(field(node, "right"))
    if node.type == "identifier":
        declared = declaration_of(text_of(node), node)
        return declared is not None and declared.type == "float" and declared.real and declared.parameter
    return node.type == "subscript_expression" or (node.type == "number_literal" and text_of(node)[-1] in "fF")


def _ordered_freely(
    i: Loop, j: Loop, reduction: Reduction, before: tuple[Node, ...], epilogue: tuple[Node, ...]
) -> bool:
    """Every (i, j) writes elements of its own, and what the reduction reads is never written."""
    stored = accesses(*epilogue)
    first = accesses(*before)
    if stored is None or first is None or not _only_stores(epilogue, reduction.update.accumulator):
        return False
    written = {each.array for each in stored if each.write}
    read = {each.array for each in (*reduction.accesses, *first)}
    same = all(each.index == stored_at(each.array, stored) for each in stored if each.array in written)
    apart = not written & read and all(distinct(array, i.node) for array in written | read)
    ours = all(each.index is not None and injective(each.index, i, j) for each in stored if each.write)
    others = all(distinct(each.array, i.node) for each in stored)
    return bool(written) and same and apart and ours and others


def stored_at(array: str, stored: list[Access]) -> Polynomial | None:
    """The index at which ``array`` is first written."""
    return next((each.index for each in stored if each.write and each.array == array), None)


def _only_stores(epilogue: tuple[Node, ...], accumulator: str) -> bool:
    """Statements change nothing but array elements, locals of their own, and the accumulator."""
    own = {each.name for one in epilogue for each in declarations(one)}
    targets = [field(each, "left") for one in epilogue for each in of_type(one, "assignment_expression")]
    targets += [field(each, "argument") for one in epilogue for each in of_type(one, "update_expression")]
    scalars = {text_of(each) for each in targets if each.type != "subscript_expression"}
    return scalars <= own | {accumulator} and not any(True for one in epilogue for _ in of_type(one, "for_statement"))


def injective(index: Polynomial, i: Loop, j: Loop) -> bool:
    """True when different (i, j) give different indices: unit stride in one, the other's stride spans its extent."""
    for minor, major in ((j, i), (i, j)):
        step, span, extent = (
            stride(index, minor.variable),
            stride(index, major.variable),
            polynomial(minor.bound),
        )
        from_zero = polynomial(minor.start) == {}
        if step == ONE and from_zero and extent and span == extent:
            return True
    return False

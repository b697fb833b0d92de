"""Recognising matmul-shaped nests: for each (i, j), reduce over k, then an epilogue that stores.

``out[i, j] = g(sum over k of f(A[i, k], B[k, j]))`` where f uses only +, - and *, written with any names, as long as
the iterations over i and j are provably independent of their order.
"""

from dataclasses import dataclass

from tree_sitter import Node

from roles.techniques.cpp.accesses import Access, accesses, element_type
from roles.techniques.cpp.affine import ONE, Polynomial, polynomial, stride, symbols
from roles.techniques.cpp.effects import plain, volatile_free
from roles.techniques.cpp.loops import Loop
from roles.techniques.cpp.nests import Nest, constant_locals, nest_of, rectangular, split_at_loop, stores_of
from roles.techniques.cpp.reductions import Reduction
from roles.techniques.cpp.scopes import declaration_of
from roles.techniques.cpp.syntax import bare, field, text_of


@dataclass(frozen=True)
class Matmul:
    """One nest i, j, k. The row read does not depend on j; the column read depends on j and not on i."""

    i: Loop
    inner: Nest
    i_preamble: tuple[Node, ...]
    row_read: Access
    column_read: Access


def matmul_of(i: Loop) -> Matmul | None:
    """The matmul-shaped nest whose outermost loop is ``i``, or None."""
    i_preamble, j = split_at_loop(i)
    if j is None or i.statements[-1].id != j.node.id or not plain(i.body) or not volatile_free(i.node):
        return None
    inner = nest_of(j)
    if inner is None or inner.reduction.update.kind != "sum" or inner.reduction.type != "float":
        return None
    if not rectangular(i, j, inner.k) or not all(constant_locals(each) for each in i_preamble):
        return None
    reads = _classified(inner.reduction, i, j)
    if reads is None or not _products_only(inner.reduction) or not _any_order(i, inner, i_preamble):
        return None
    return Matmul(i, inner, i_preamble, *reads)


def _classified(reduction: Reduction, i: Loop, j: Loop) -> tuple[Access, Access] | None:
    rows: dict[str, Access] = {}
    columns: dict[str, Access] = {}
    for each in reduction.accesses:
        if each.index is None or each.write or element_type(each.array, each.node) != "float":
            return None
        names = symbols(each.index)
        if j.variable in names and i.variable in names:
            return None
        (columns if j.variable in names else rows).setdefault(text_of(each.node), each)
    if len(columns) != 1 or len(rows) != 1:
        return None
    return next(iter(rows.values())), next(iter(columns.values()))


def _products_only(reduction: Reduction) -> bool:
    """The term is built from float reads, float parameters and float literals with +, - and * alone."""
    return all(_arithmetic(part) for part in reduction.update.fused or (reduction.update.term,))


def _arithmetic(node: Node) -> bool:
    node = bare(node)
    if node.type == "binary_expression":
        known = text_of(field(node, "operator")) in ("+", "-", "*")
        return known and _arithmetic(field(node, "left")) and _arithmetic(field(node, "right"))
    if node.type == "identifier":
        declared = declaration_of(text_of(node), node)
        return declared is not None and declared.type == "float" and declared.real and declared.parameter
    return node.type == "subscript_expression" or (node.type == "number_literal" and text_of(node)[-1] in "fF")


def _any_order(i: Loop, inner: Nest, i_preamble: tuple[Node, ...]) -> bool:
    """Different (i, j) store different elements, and what the outer locals read is not written."""
    stored, first = stores_of(inner), accesses(*i_preamble)
    if stored is None or first is None:
        return False
    written = {each.array for each in stored if each.write}
    ours = all(each.index is not None and injective(each.index, i, inner.j) for each in stored if each.write)
    return ours and not written & {each.array for each in first}


def injective(index: Polynomial, i: Loop, j: Loop) -> bool:
    """True when different (i, j) give different indices: unit stride in one, the other's stride spans its extent."""
    for minor, major in ((j, i), (i, j)):
        extent = polynomial(minor.bound)
        unit = stride(index, minor.variable) == ONE and polynomial(minor.start) == {}
        if unit and extent and stride(index, major.variable) == extent:
            return True
    return False

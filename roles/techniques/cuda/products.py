"""Matrix products with one thread an output: ``out[row, col] = g(sum over k of a[row, k] * b[k, col])``."""

from dataclasses import dataclass

from tree_sitter import Node

from roles.techniques.cpp.accesses import Access
from roles.techniques.cpp.affine import symbols
from roles.techniques.cpp.effects import pure_expression
from roles.techniques.cpp.loops import loop_of
from roles.techniques.cpp.reductions import Reduction, reduction_of
from roles.techniques.cpp.scopes import declarations
from roles.techniques.cpp.syntax import bare, field, of_type, text_of
from roles.techniques.cuda.planes import Plane, all_accesses, apart


@dataclass(frozen=True)
class Product:
    """A product: the read that depends on the first index alone, and the one that depends on the second alone."""

    plane: Plane
    row: str
    col: str
    reduction: Reduction
    initial: Node
    epilogue: tuple[Node, ...]
    row_read: Access
    col_read: Access

    @property
    def depth(self) -> str:
        """The loop variable of the reduction."""
        return self.reduction.loop.variable

    @property
    def accumulator(self) -> str:
        """Name of the sum."""
        return self.reduction.update.accumulator


def product_of(plane: Plane) -> Product | None:
    """The product that a plane computes, or None. ``row`` is the index that runs along y."""
    if len(plane.body) < 3:
        return None
    declared, loop = declarations(plane.body[0]), loop_of(plane.body[1])
    reduction = reduction_of(loop) if loop is not None and loop.step == "1" else None
    if reduction is None or reduction.before or reduction.update.kind != "sum" or reduction.type != "float":
        return None
    initial = declared[0].value if len(declared) == 1 and declared[0].name == reduction.update.accumulator else None
    if initial is None or not pure_expression(initial) or text_of(reduction.loop.start) != "0":
        return None
    reads = _operands(reduction, plane)
    bound = text_of(reduction.loop.bound)
    if reads is None or not plane.kernel.is_parameter(bound) or not _vanishes(reduction):
        return None
    product = Product(plane, plane.y, plane.x, reduction, initial, plane.body[2:], *reads)
    return product if _epilogue_stores(product) else None


def _operands(reduction: Reduction, plane: Plane) -> tuple[Access, Access] | None:
    rows: dict[str, Access] = {}
    cols: dict[str, Access] = {}
    for each in reduction.accesses:
        names = symbols(each.index) if each.index is not None else {plane.x, plane.y}
        if plane.x in names and plane.y in names:
            return None
        (cols if plane.x in names else rows).setdefault(text_of(each.node), each)
    if len(rows) != 1 or len(cols) != 1:
        return None
    return next(iter(rows.values())), next(iter(cols.values()))


def _vanishes(reduction: Reduction) -> bool:
    """The term is made of the reads with +, - and * alone, so that it is zero where both are zero."""
    return all(_reads_only(each) for each in reduction.update.fused or (reduction.update.term,))


def _reads_only(node: Node) -> bool:
    node = bare(node)
    if node.type == "binary_expression" and text_of(field(node, "operator")) in ("+", "-", "*"):
        return _reads_only(field(node, "left")) and _reads_only(field(node, "right"))
    return node.type == "subscript_expression"


def is_plain_product(product: Product) -> bool:
    """True when the term is the product of the two reads."""
    update = product.reduction.update
    if update.fused:
        return all(bare(each).type == "subscript_expression" for each in update.fused)
    term = bare(update.term)
    if term.type != "binary_expression" or text_of(field(term, "operator")) != "*":
        return False
    sides = {text_of(bare(field(term, side))) for side in ("left", "right")}
    return sides == {text_of(product.row_read.node), text_of(product.col_read.node)}


def _epilogue_stores(product: Product) -> bool:
    """Every array is a float buffer of its own, and only the output's own element is written."""
    found = all_accesses(product.plane)
    if found is None or not apart(product.plane, found):
        return False
    written = {each.array for each in found if each.write}
    place = product.plane.matrix(product.row, product.col, product.plane.bound[product.col])
    own = all(each.index == place for each in found if each.array in written)
    read = {product.row_read.array, product.col_read.array}
    loops = any(True for each in product.epilogue for _ in of_type(each, "for_statement", "return_statement"))
    return bool(written) and own and not written & read and not loops

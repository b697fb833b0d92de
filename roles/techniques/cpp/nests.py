"""Loops that reduce once an iteration: for each j, start an accumulator, reduce over k, then store.

The iterations over j are proven independent: each stores elements of its own, and nothing that is read is written.
"""

from dataclasses import dataclass

from tree_sitter import Node

from roles.techniques.cpp.accesses import Access, accesses, distinct
from roles.techniques.cpp.affine import Polynomial, stride
from roles.techniques.cpp.effects import plain, pure_expression, volatile_free
from roles.techniques.cpp.loops import Loop, loop_of
from roles.techniques.cpp.reductions import Reduction, reduction_of
from roles.techniques.cpp.scopes import Declaration, declarations, written_names
from roles.techniques.cpp.syntax import field, identifiers, of_type, text_of


@dataclass(frozen=True)
class Nest:
    """``for j { preamble; float acc = initial; for k acc = acc <op> term; epilogue }``."""

    j: Loop
    reduction: Reduction
    initial: Node
    preamble: tuple[Node, ...]
    epilogue: tuple[Node, ...]

    @property
    def k(self) -> Loop:
        """The reduction loop."""
        return self.reduction.loop

    @property
    def accumulator(self) -> str:
        """Name of the accumulator."""
        return self.reduction.update.accumulator


def split_at_loop(loop: Loop) -> tuple[tuple[Node, ...], Loop | None]:
    """Statements before the first inner loop, and that loop when it is canonical."""
    before: list[Node] = []
    for statement in loop.statements:
        if statement.type == "for_statement":
            return tuple(before), loop_of(statement)
        before.append(statement)
    return tuple(before), None


def nest_of(j: Loop) -> Nest | None:
    """The nest whose outer loop is ``j``, or None."""
    before, k = split_at_loop(j)
    reduction = reduction_of(k) if k is not None and plain(j.body) and volatile_free(j.node) else None
    if k is None or reduction is None or reduction.before:
        return None
    declared = [each for each in before if _declares(each, reduction)]
    epilogue = tuple(each for each in j.statements if each.start_byte >= k.node.end_byte)
    initial = declarations(declared[0])[0].value if len(declared) == 1 else None
    if initial is None or not epilogue or not pure_expression(initial) or not rectangular(j, k):
        return None
    nest = Nest(j, reduction, initial, tuple(each for each in before if each.id != declared[0].id), epilogue)
    return nest if all(constant_locals(each) for each in nest.preamble) and _stores_its_own(nest) else None


def _declares(statement: Node, reduction: Reduction) -> bool:
    found = declarations(statement)
    return len(found) == 1 and found[0].name == reduction.update.accumulator and found[0].type == reduction.type


def constant_locals(statement: Node) -> bool:
    """True for a declaration of locals that are never changed afterwards, each from a pure value."""
    found = declarations(statement)
    scope = statement.parent
    return bool(found) and scope is not None and all(_fixed(each, scope) for each in found)


def _fixed(declared: Declaration, scope: Node) -> bool:
    changed = {text_of(field(each, "left")) for each in of_type(scope, "assignment_expression")}
    changed |= {text_of(field(each, "argument")) for each in of_type(scope, "update_expression")}
    return declared.value is not None and pure_expression(declared.value) and declared.name not in changed


def rectangular(outer: Loop, *inner: Loop) -> bool:
    """Unit steps, and bounds that neither read memory nor depend on anything the nest changes."""
    changed = written_names(outer.node)
    ends = [end for loop in (outer, *inner) for end in (loop.start, loop.bound)]
    fixed = all(pure_expression(end) and not identifiers(end) & changed for end in ends)
    memory = any(True for end in ends for _ in of_type(end, "subscript_expression"))
    return fixed and not memory and all(loop.step == "1" for loop in (outer, *inner))


def stores_of(nest: Nest) -> list[Access] | None:
    """Accesses of the epilogue; None when one is not understood."""
    return accesses(*nest.epilogue)


def _stores_its_own(nest: Nest) -> bool:
    stored = stores_of(nest)
    first = accesses(nest.initial, *nest.preamble)
    if stored is None or first is None or not _only_stores(nest):
        return False
    written = {each.array for each in stored if each.write}
    read = {each.array for each in (*nest.reduction.accesses, *first)}
    inside = [each for each in stored if each.array in written]
    own = all(each.index is not None and stride(each.index, nest.j.variable) for each in inside)
    same = all(each.index == _first_store(each.array, stored) for each in inside)
    apart = all(distinct(array, nest.j.node) for array in written | read | {each.array for each in stored})
    return bool(written) and own and same and apart and not written & read


def _first_store(array: str, stored: list[Access]) -> Polynomial | None:
    return next((each.index for each in stored if each.write and each.array == array), None)


def _only_stores(nest: Nest) -> bool:
    """The epilogue changes nothing but array elements, locals of its own, and the accumulator."""
    own = {each.name for one in nest.epilogue for each in declarations(one)}
    targets = [field(each, "left") for one in nest.epilogue for each in of_type(one, "assignment_expression")]
    targets += [field(each, "argument") for one in nest.epilogue for each in of_type(one, "update_expression")]
    scalars = {text_of(each) for each in targets if each.type != "subscript_expression"}
    loops = any(True for one in nest.epilogue for _ in of_type(one, "for_statement"))
    return scalars <= own | {nest.accumulator} and not loops

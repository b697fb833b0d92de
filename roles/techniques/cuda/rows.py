"""Kernels that walk a row with one thread: their passes over the columns and the scalar steps between them.

A row program runs the same whether one thread or a group of threads owns the row: a pass visits every column once,
in any order, and combines its accumulators; a scalar step computes the same value in every thread of the group.
"""

from dataclasses import dataclass

from tree_sitter import Node

from roles.techniques.cpp.accesses import Access, accesses, distinct
from roles.techniques.cpp.affine import Polynomial, add, polynomial
from roles.techniques.cpp.effects import plain, pure_expression, volatile_free
from roles.techniques.cpp.loops import Loop, loop_of
from roles.techniques.cpp.reductions import Update, update_of
from roles.techniques.cpp.scopes import declaration_of, declarations
from roles.techniques.cpp.syntax import field, identifiers, of_type, statements, text_of
from roles.techniques.cuda.launches import Kernel
from roles.techniques.cuda.threads import guard_of, index_declared, serial, uses_threads


@dataclass(frozen=True)
class Pass:
    """One loop over the columns. ``updates`` are its accumulators."""

    loop: Loop
    updates: tuple[Update, ...]
    accesses: tuple[Access, ...]

    @property
    def writes(self) -> frozenset[str]:
        """Arrays that the pass stores to."""
        return frozenset(each.array for each in self.accesses if each.write)


@dataclass(frozen=True)
class Scalar:
    """A statement that every thread of a row may run, or a store that one of them makes."""

    node: Node
    accesses: tuple[Access, ...]
    stores: bool


Step = Pass | Scalar


@dataclass(frozen=True)
class RowProgram:
    """What a thread does with its row. ``row`` and ``rows`` are names; ``cols`` is a parameter's name."""

    kernel: Kernel
    row: str
    type: str
    rows: str
    cols: str
    steps: tuple[Step, ...]

    @property
    def passes(self) -> list[Pass]:
        """The loops, in order."""
        return [step for step in self.steps if isinstance(step, Pass)]

    def own(self, access: Access, variable: str) -> bool:
        """True for the element of the thread's row in the column that ``variable`` names."""
        return access.index == row_index(self.row, self.cols, variable)


def row_index(row: str, cols: str, variable: str) -> Polynomial:
    """``row * cols + variable``."""
    return {tuple(sorted((row, cols))): 1, (variable,): 1}


def row_program(kernel: Kernel) -> RowProgram | None:
    """The row program of a kernel with one thread a row, or None."""
    body = statements(kernel.body)
    declared = index_declared(body[0]) if body else None
    guard = guard_of(body[1:]) if declared is not None and declared[1] == "x" else None
    if declared is None or guard is None or len(kernel.launch.configuration) != 2 or not volatile_free(kernel.node):
        return None
    limits, rest = guard
    row = declared[0].name
    bound = limits.get(row)
    if len(limits) != 1 or bound is None or not kernel.is_parameter(text_of(bound)):
        return None
    steps = [_step(each, kernel) for each in serial(rest)]
    known = tuple(step for step in steps if step is not None)
    cols = _common_bound(known, kernel)
    if len(known) != len(steps) or not cols:
        return None
    program = RowProgram(kernel, row, declared[0].type, text_of(bound), cols, known)
    return program if _stores_its_own(program) else None


def _step(node: Node, kernel: Kernel) -> Step | None:
    if uses_threads(node) or not plain(node):
        return None
    return _pass(node, kernel) if node.type == "for_statement" else _scalar(node)


def _pass(node: Node, kernel: Kernel) -> Pass | None:
    loop = loop_of(node)
    found = accesses(loop.body) if loop is not None and loop.innermost and loop.step == "1" else None
    if loop is None or found is None or loop.type != "int" or set(polynomial(loop.start) or {}) - {()}:
        return None
    updates: list[Update] = []
    for statement in loop.statements:
        update = update_of(statement)
        if update is not None:
            updates.append(update)
        elif not (_constant(statement) or _stored(statement)):
            return None
    names = [each.accumulator for each in updates]
    alone = all(_alone(each, loop) for each in updates) and len(set(names)) == len(names)
    return Pass(loop, tuple(updates), tuple(found)) if alone else None


def _constant(statement: Node) -> bool:
    found = declarations(statement)
    return bool(found) and all(
        each.value is not None and pure_expression(each.value) and not each.array for each in found
    )


def _stored(statement: Node) -> bool:
    """True for ``array[index] = value`` with a pure value."""
    if statement.type != "expression_statement" or not statement.named_children:
        return False
    assignment = statement.named_children[0]
    if assignment.type != "assignment_expression" or text_of(field(assignment, "operator")) != "=":
        return False
    return field(assignment, "left").type == "subscript_expression" and pure_expression(field(assignment, "right"))


def _alone(update: Update, loop: Loop) -> bool:
    """The accumulator is a local real number of the kernel that only its own update mentions in the loop."""
    name = update.accumulator
    declared = declaration_of(name, loop.node)
    others = [each for each in loop.statements if each.id != update.node.id]
    parts = update.fused or (update.term,)
    own = all(pure_expression(part) and name not in identifiers(part) for part in parts)
    local = declared is not None and declared.real and not declared.parameter
    return local and own and not any(name in identifiers(each) for each in others)


def _scalar(node: Node) -> Scalar | None:
    """A declaration, an assignment to locals, or one store."""
    found = accesses(node)
    if found is None or node.type not in ("declaration", "expression_statement", "if_statement"):
        return None
    writes = [each for each in found if each.write]
    if writes and not (len(writes) == 1 and _stored(node)):
        return None
    if any(of_type(node, "for_statement", "return_statement")) or any(each.array for each in declarations(node)):
        return None
    return Scalar(node, tuple(found), bool(writes))


def _common_bound(steps: tuple[Step, ...], kernel: Kernel) -> str:
    found = {text_of(step.loop.bound) for step in steps if isinstance(step, Pass)}
    name = next(iter(found)) if len(found) == 1 else ""
    return name if kernel.is_parameter(name) else ""


def _stores_its_own(program: RowProgram) -> bool:
    """Every written array is written either by passes at the thread's own columns, or once, by a scalar store."""
    inside = [(each, step.loop.variable) for step in program.passes for each in step.accesses]
    outside = [each for step in program.steps if isinstance(step, Scalar) for each in step.accesses]
    written = {each.array for each, _ in inside if each.write}
    scalar = {each.array for each in outside if each.write}
    own = all(program.own(each, variable) for each, variable in inside if each.array in written)
    apart = not written & {each.array for each in outside} and not scalar & {each.array for each, _ in inside}
    never_read = not scalar & {each.array for each in outside if not each.write}
    place = all(program.row in text_of(each.node) for each in outside if each.write)
    lent = all(distinct(each.array, program.kernel.body) for each in (*outside, *(one for one, _ in inside)))
    return bool(written | scalar) and own and apart and never_read and place and lent


def offset_of(access: Access, variable: str) -> Polynomial | None:
    """Where the array's row starts: the index without the column."""
    return add(access.index, {(variable,): 1}, -1) if access.index is not None else None

"""OpenMP over the core set: ``parallel for`` on an outermost loop of which every iteration owns its outputs."""

from collections.abc import Iterator, Mapping

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import Access, accesses, distinct
from roles.techniques.cpp.affine import Polynomial, add, polynomial, stride, without
from roles.techniques.cpp.effects import plain, volatile_free
from roles.techniques.cpp.loops import Loop, enclosing_loops, loops_in
from roles.techniques.cpp.scopes import declarations, written_names
from roles.techniques.cpp.syntax import Edit, Source, directives, of_type, text_of
from roles.techniques.transform import Match, TreeTransform


def owns_its_outputs(loop: Loop) -> bool:
    """True when no iteration writes what another one reads or writes."""
    if not plain(loop.body) or not volatile_free(loop.body):
        return False
    found = accesses(loop.body)
    own = {each.name for one in of_type(loop.body, "declaration") for each in declarations(one)}
    if found is None:
        return False
    shared = [each for each in found if each.array not in own]
    stores = {text_of(each.node) for each in found if each.write}
    if not any(each.write for each in shared) or not written_names(loop.body) <= own | stores:
        return False
    written = {each.array for each in shared if each.write}
    apart = all(distinct(each.array, loop.node) for each in shared)
    return apart and all(_slices(array, shared, loop) for array in written)


def _slices(array: str, found: list[Access], loop: Loop) -> bool:
    """Iteration r touches only elements r * S to r * S + S - 1 of the array, for one S."""
    touched = [each for each in found if each.array == array]
    if any(each.index is None for each in touched):
        return False
    indices = [each.index for each in touched if each.index is not None]
    width = stride(indices[0], loop.variable)
    if not width or any(stride(each, loop.variable) != width for each in indices):
        return False
    return all(_within(each, width, loop) for each in touched)


def _within(access: Access, width: Polynomial, loop: Loop) -> bool:
    """True when the part of the index that does not come from the outer loop lies in [0, width)."""
    rest = without(access.index or {}, {loop.variable})
    if set(width) == {()} and set(rest) <= {()}:
        return 0 <= rest.get((), 0) < width[()]
    inner = [each for each in enclosing_loops(access.node) if rest == {(each.variable,): 1}]
    if len(inner) != 1 or inner[0].step != "1":
        return False
    start, end = polynomial(inner[0].start), polynomial(inner[0].bound)
    return start is not None and set(start) <= {()} and end is not None and add(end, width, -1) == {}


class OmpParallel(TreeTransform):
    """``#pragma omp parallel for`` on the outermost loop."""

    def matches(self, source: Source) -> Iterator[Match]:
        """Outermost loops of unit step without a directive."""
        for loop in loops_in(source.root):
            parent = loop.node.parent
            outermost = parent is not None and parent.type == "compound_statement" and not enclosing_loops(loop.node)
            worth = not loop.innermost and loop.step == "1" and not directives(loop.node)
            if outermost and worth and owns_its_outputs(loop):
                evidence = (
                    f"line {loop.line}: the iterations over {loop.variable} own their outputs; one core runs them"
                )
                yield Match(loop.node, f"the loop over {loop.variable}", evidence, loop)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The directive on a line of its own before the loop."""
        indent = source.indent_of(match.node)
        directive = f"#pragma omp parallel for schedule(static)\n{indent}"
        return source.replace(Edit(match.node.start_byte, match.node.start_byte, directive))

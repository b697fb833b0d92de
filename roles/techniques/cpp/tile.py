"""Cache blocking of a two-deep nest in which one array is contiguous along one loop and another along the other."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import accesses
from roles.techniques.cpp.affine import ONE, stride
from roles.techniques.cpp.independence import independent_iterations
from roles.techniques.cpp.loops import Loop, loop_of, loops_in
from roles.techniques.cpp.matmul import injective
from roles.techniques.cpp.nests import rectangular
from roles.techniques.cpp.render import nest, replaced
from roles.techniques.cpp.syntax import Source, text_of
from roles.techniques.transform import Choices, Match, TreeTransform


def tileable(i: Loop) -> Loop | None:
    """The inner loop of a perfect nest whose iterations may run in any order and that would gain from tiles."""
    j = loop_of(i.statements[0]) if len(i.statements) == 1 else None
    if j is None or not j.innermost or not rectangular(i, j) or not independent_iterations(j):
        return None
    found = accesses(j.body) or []
    own = all(each.index is not None and injective(each.index, i, j) for each in found if each.write)
    along = [
        (stride(each.index, i.variable) == ONE, stride(each.index, j.variable) == ONE)
        for each in found
        if each.index is not None
    ]
    conflict = (True, False) in along and (False, True) in along
    return j if own and conflict else None


class TileNest(TreeTransform):
    """Square tiles, so that the cache lines of both arrays are used up before they are evicted."""

    choices: ClassVar[Choices] = {"tile": (32, 16, 64, 8)}

    def matches(self, source: Source) -> Iterator[Match]:
        """Perfect nests of independent iterations with conflicting directions, such as a transpose."""
        for i in loops_in(source.root):
            j = tileable(i)
            if j is not None:
                evidence = f"line {i.line}: one array is contiguous along {i.variable}, another along {j.variable}"
                yield Match(i.node, f"the loops over {i.variable} and {j.variable}", evidence, (i, j))

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """Two loops over tiles around the original two."""
        i, j = match.data
        unit, size = source.indent_unit, source.fresh("tile")
        body = [line for each in j.statements for line in source.lines_of(each)]
        for loop in (j, i):
            first, last, v = source.fresh(f"{loop.variable}0"), source.fresh(f"{loop.variable}_end"), loop.variable
            body = nest(f"for ({loop.type} {v} = {first}; {v} < {last}; {v}++)", body, unit)
        for loop in (j, i):
            first, last = source.fresh(f"{loop.variable}0"), source.fresh(f"{loop.variable}_end")
            end = f"const {loop.type} {last} = std::min<{loop.type}>({first} + {size}, {text_of(loop.bound)});"
            opening = (
                f"for ({loop.type} {first} = {text_of(loop.start)}; {first} < {loop.bound_text}; {first} += {size})"
            )
            body = nest(opening, [end, *body], unit)
        head = [
            "// tile_nest: square tiles keep the cache lines of both arrays until they are used up.",
            f"constexpr int {size} = {parameters['tile']};  // knob: {size} in {{8, 16, 32, 64}}",
        ]
        return replaced(source, match.node, [*head, *body], ("algorithm",))

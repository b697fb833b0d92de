"""Contiguous unroll: U neighbouring elements an iteration, with a loop for the remainder."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import accesses
from roles.techniques.cpp.affine import ONE, stride
from roles.techniques.cpp.effects import plain, volatile_free
from roles.techniques.cpp.loops import Loop, loops_in
from roles.techniques.cpp.render import nest, replaced
from roles.techniques.cpp.split_accumulator import constant_trip, continues_another
from roles.techniques.cpp.syntax import Source, text_of
from roles.techniques.transform import Choices, Match, TreeTransform


def contiguous(loop: Loop) -> bool:
    """True when the body is plain and every access moves by one element an iteration, or stays where it is."""
    found = accesses(loop.body) if plain(loop.body) and volatile_free(loop.body) else None
    if not found:
        return False
    steps = [stride(each.index, loop.variable) if each.index is not None else None for each in found]
    return ONE in steps and all(step in (ONE, {}) for step in steps)


class ContiguousUnroll(TreeTransform):
    """The iterations keep their order, so every result keeps its bits."""

    choices: ClassVar[Choices] = {"unroll": (8, 16, 4, 32)}

    def matches(self, source: Source) -> Iterator[Match]:
        """Innermost loops of unit step over contiguous elements, whole ranges only."""
        for loop in loops_in(source.root):
            whole = not constant_trip(loop) and not continues_another(loop)
            if loop.innermost and loop.step == "1" and whole and contiguous(loop):
                evidence = f"line {loop.line}: contiguous elements, one an iteration"
                yield Match(loop.node, f"the loop over {loop.variable}", evidence, loop)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """Blocks of U elements, then the rest."""
        return replaced(source, match.node, _lines(source, match.data, parameters["unroll"]))


def _lines(source: Source, loop: Loop, count: Parameter) -> list[str]:
    unit, v = source.indent_unit, loop.variable
    first, size = source.fresh(f"{v}_block"), source.fresh(f"{v}_unroll")
    lane = source.fresh_in("lane", loop.node)
    body = [line for each in loop.statements for line in source.lines_of(each)]
    element = [f"const {loop.type} {v} = {first} + {lane};", *body]
    block = ["#pragma GCC unroll 32", *nest(f"for (int {lane} = 0; {lane} < {size}; {lane}++)", element, unit)]
    return [
        f"// contiguous_unroll: {count} neighbouring elements an iteration, then the rest.",
        f"constexpr int {size} = {count};  // knob: {size} in {{4, 8, 16, 32}}",
        f"{loop.type} {first} = {text_of(loop.start)};",
        *nest(f"for (; {first} + {size} <= {text_of(loop.bound)}; {first} += {size})", block, unit),
        *nest(f"for ({loop.type} {v} = {first}; {v} < {loop.bound_text}; {v}++)", body, unit),
    ]

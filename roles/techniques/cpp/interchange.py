"""Loop interchange of a reduction by scalar expansion: the contiguous loop runs innermost over many accumulators."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.affine import ONE, stride
from roles.techniques.cpp.loops import loops_in
from roles.techniques.cpp.nests import Nest, nest_of
from roles.techniques.cpp.render import needed, nest, replaced
from roles.techniques.cpp.syntax import Source, text_of
from roles.techniques.transform import Choices, Match, TreeTransform


def _strides(found: Nest, variable: str) -> list[bool]:
    """For each read of the reduction, whether it moves by exactly one element with ``variable``."""
    return [each.index is not None and stride(each.index, variable) == ONE for each in found.reduction.accesses]


def gains_contiguity(found: Nest) -> bool:
    """True when a read is contiguous in j but strided in k, so that running j innermost helps."""
    along_j, along_k = _strides(found, found.j.variable), _strides(found, found.k.variable)
    understood = all(
        each.index is not None and stride(each.index, found.j.variable) in (ONE, {})
        for each in found.reduction.accesses
    )
    return understood and any(j and not k for j, k in zip(along_j, along_k, strict=True))


class LoopInterchange(TreeTransform):
    """``for j for k`` becomes ``for k for j``; each accumulator still adds its terms in the source's order."""

    choices: ClassVar[Choices] = {"tile": (256, 128, 512, 64)}

    def matches(self, source: Source) -> Iterator[Match]:
        """Nests of a reduction that read contiguously along the outer loop only."""
        for loop in loops_in(source.root):
            found = nest_of(loop)
            if found is not None and gains_contiguity(found):
                j, k = found.j.variable, found.k.variable
                subject = f"the loops over {j} and {k} around `{found.accumulator}`"
                evidence = (
                    f"lines {loop.line}-{loop.node.end_point[0] + 1}: the innermost loop over {k} reads with a stride"
                )
                yield Match(loop.node, subject, evidence, found)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """Tiles of j; inside one, the accumulators start, reduce and are stored."""
        return replaced(source, match.node, _lines(source, match.data, parameters["tile"]), ("algorithm",))


def _lines(source: Source, found: Nest, tile: Parameter) -> list[str]:
    j, name, unit = found.j, found.accumulator, source.indent_unit
    size, array = source.fresh(f"{name}_tile"), source.fresh(f"{name}s")
    first, last = source.fresh(f"{j.variable}0"), source.fresh(f"{j.variable}_end")
    over_j = f"for ({j.type} {j.variable} = {first}; {j.variable} < {last}; {j.variable}++)"
    slot = f"{array}[{j.variable} - {first}]"
    kind = found.reduction.type

    def with_locals(*users: Node) -> list[str]:
        return [line for each in needed(found.preamble, *users) for line in source.lines_of(each)]

    update = found.reduction.update
    term = update.term_text
    value = [] if update.kind == "sum" else [f"const {kind} {source.fresh_in('value', j.node)} = {term};"]
    target = term if update.kind == "sum" else source.fresh_in("value", j.node)
    reduce = [*with_locals(update.node), *value, update.applied(slot, target)]
    header = source.data[found.k.node.start_byte : found.k.body.start_byte].decode().rstrip()
    store = [*with_locals(*found.epilogue), f"{kind} {name} = {slot};", *_verbatim(source, found.epilogue)]
    body = [
        f"const {j.type} {last} = std::min<{j.type}>({first} + {size}, {text_of(j.bound)});",
        *nest(over_j, [*with_locals(found.initial), f"{slot} = {text_of(found.initial)};"], unit),
        *nest(header, nest(over_j, reduce, unit), unit),
        *nest(over_j, store, unit),
    ]
    opening = f"for ({j.type} {first} = {text_of(j.start)}; {first} < {j.bound_text}; {first} += {size})"
    return [
        f"// loop_interchange: {j.variable} runs innermost over a tile of accumulators, so that reads are contiguous.",
        f"constexpr int {size} = {tile};  // knob: {size} in {{64, 128, 256, 512}}",
        f"{kind} {array}[{size}];",
        *nest(opening, body, unit),
    ]


def _verbatim(source: Source, nodes: tuple[Node, ...]) -> list[str]:
    return [line for each in nodes for line in source.lines_of(each)]

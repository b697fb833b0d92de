"""Online softmax: the maximum and the sum of exponentials in one pass, rescaling the sum when the maximum grows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.effects import math_name
from roles.techniques.cpp.loops import Loop, loop_of, loops_in
from roles.techniques.cpp.reductions import Reduction, reduction_of
from roles.techniques.cpp.render import nest, renamed
from roles.techniques.cpp.scopes import declaration_of, declarations
from roles.techniques.cpp.split_accumulator import constant_trip, continues_another
from roles.techniques.cpp.syntax import Edit, Source, bare, field, indented, start_with_directives, statements, text_of
from roles.techniques.transform import Match, TreeTransform


@dataclass(frozen=True)
class TwoPasses:
    """A maximum, the declaration of a sum, and the sum of exp(value - maximum) over the same elements."""

    peak: Reduction
    total: Reduction
    declared: Node
    function: str


def _same(left: str, right: str) -> bool:
    return "".join(left.split()) == "".join(right.split())


def two_passes_of(first: Loop) -> TwoPasses | None:
    """The two passes that begin with the loop ``first``, or None."""
    peak, parent = reduction_of(first), first.node.parent
    if peak is None or peak.update.kind != "max" or peak.before or parent is None:
        return None
    later = [each for each in statements(parent) if each.start_byte >= first.node.end_byte]
    second = loop_of(later[1]) if len(later) > 1 else None
    total = reduction_of(second) if second is not None else None
    if second is None or total is None or total.before or total.update.kind != "sum" or total.update.fused:
        return None
    declared = declarations(later[0])
    if len(declared) != 1 or declared[0].name != total.update.accumulator or declared[0].value is None:
        return None
    if text_of(declared[0].value).rstrip("fF").strip("0.") or continues_another(first) or constant_trip(first):
        return None
    function = _exponential(total, peak)
    return TwoPasses(peak, total, later[0], function) if function and _covers(peak, second) else None


def _exponential(total: Reduction, peak: Reduction) -> str:
    """The function called in ``sum += exp(value - maximum)``, empty when the term is another one."""
    call = bare(total.update.term)
    arguments = field(call, "arguments").named_children if call.type == "call_expression" else []
    known = bool(arguments) and math_name(call).rstrip("0123456789") in ("exp", "expf", "vector_exp")
    if not known or len(arguments) != 1 or arguments[0].type != "binary_expression":
        return ""
    difference = arguments[0]
    value = renamed(field(difference, "left"), {total.loop.variable: peak.loop.variable})
    minus = text_of(field(difference, "operator")) == "-"
    right = text_of(field(difference, "right")) == peak.update.accumulator
    return text_of(field(call, "function")) if minus and right and _same(value, peak.update.term_text) else ""


def _covers(peak: Reduction, second: Loop) -> bool:
    """The second range is the first one, or the first one plus the element 0 that the maximum starts from."""
    first = peak.loop
    if not _same(text_of(first.bound), text_of(second.bound)) or first.step != second.step or second.step != "1":
        return False
    start, other = text_of(first.start), text_of(second.start)
    if start == other:
        return True
    declared = declaration_of(peak.update.accumulator, first.node)
    initial = text_of(declared.value).replace(" ", "") if declared is not None and declared.value is not None else ""
    zeroth = renamed(peak.update.term, {first.variable: "0"}).replace(" ", "").replace("+0]", "]")
    return (start, other) == ("1", "0") and initial in (zeroth, f"{zeroth[:-1]}+0]")


class OnlineSoftmax(TreeTransform):
    """Two passes become one."""

    def matches(self, source: Source) -> Iterator[Match]:
        """A maximum followed by the sum of exponentials of differences from it."""
        for loop in loops_in(source.root):
            found = two_passes_of(loop)
            if found is not None:
                name = found.peak.update.accumulator
                evidence = f"lines {loop.line} and {found.total.loop.line}: one pass for `{name}`, another for the sum"
                yield Match(
                    loop.node, f"the passes for `{name}` and `{found.total.update.accumulator}`", evidence, found
                )

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The second loop finds both; the first one goes."""
        found: TwoPasses = match.data
        loop, peak, total = found.total.loop, found.peak.update.accumulator, found.total.update.accumulator
        value, unit = source.fresh_in("value", match.node), source.indent_unit
        term = renamed(found.peak.update.term, {found.peak.loop.variable: loop.variable})
        grow = [f"{total} *= {found.function}({peak} - {value});", f"{peak} = {value};"]
        header = source.data[loop.node.start_byte : loop.body.start_byte].decode().rstrip()
        body = [
            f"const {found.peak.type} {value} = {term};",
            *nest(f"if ({value} > {peak})", grow, unit),
            f"{total} += {found.function}({value} - {peak});",
        ]
        opening = f"// online_softmax: `{total}` is rescaled whenever `{peak}` grows."
        lines = [opening, text_of(found.declared), *nest(header, body, unit)]
        text = "\n".join([lines[0], *indented(lines[1:], source.indent_of(match.node))])
        return source.replace(Edit(start_with_directives(match.node), loop.node.end_byte, text))

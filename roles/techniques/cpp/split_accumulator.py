"""Split a reduction's one accumulator into independent lanes, so that the loop vectorises and its latency is hidden."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from protocol.messages import Parameter
from roles.techniques.cpp.affine import ONE, polynomial, stride, symbols
from roles.techniques.cpp.effects import math_name
from roles.techniques.cpp.loops import Loop, loops_in
from roles.techniques.cpp.reductions import Reduction, reduction_of
from roles.techniques.cpp.render import nest, replaced
from roles.techniques.cpp.scopes import fixed_value
from roles.techniques.cpp.store_once import repeat_of
from roles.techniques.cpp.syntax import Source, of_type, text_of
from roles.techniques.transform import Choices, Match, TreeTransform

_REPEATED = 0.5  # a call that a later loop repeats is better stored first: the lanes would hide the repetition
_SCALAR_CALLS = ("exp", "expf", "log", "logf", "tanh", "tanhf", "pow", "powf", "sin", "cos", "erf", "erff")


def continues_another(loop: Loop) -> bool:
    """True when the loop starts where another one stopped: it is a remainder, not worth a second treatment."""
    if loop.start.type != "identifier":
        return False
    name = text_of(loop.start)
    return fixed_value(name, loop.node) is None and symbols(polynomial(loop.start) or {}) == {name}


def constant_trip(loop: Loop) -> bool:
    """True when the number of iterations is written in the source."""
    bound = polynomial(loop.bound)
    return bound is not None and not symbols(bound)


def lanes_gain(found: Reduction) -> float:
    """Expected log gain: large when every read is contiguous and nothing in the term resists vectorising."""
    calls = {math_name(call) for call in of_type(found.loop.body, "call_expression")}
    steps = [stride(each.index, found.loop.variable) if each.index is not None else None for each in found.accesses]
    if any(step is None or step not in (ONE, {}) for step in steps):
        return 0.15
    return 0.1 if calls & set(_SCALAR_CALLS) else 1.1


class SplitAccumulator(TreeTransform):
    """W x U independent partial results for a sum, a maximum or a minimum."""

    choices: ClassVar[Choices] = {"lanes": (16, 32, 64, 8)}

    def matches(self, source: Source) -> Iterator[Match]:
        """Innermost reductions of unit step that run over a whole range."""
        for loop in loops_in(source.root):
            found = reduction_of(loop)
            if found is None or loop.step != "1" or constant_trip(loop) or continues_another(loop):
                continue
            subject = f"the {found.update.kind} `{found.update.accumulator}` over {loop.variable}"
            evidence = f"line {loop.line}: one scalar accumulator, every update waits for the last one"
            gain = lanes_gain(found) * (_REPEATED if repeat_of(loop) is not None else 1.0)
            yield Match(loop.node, subject, evidence, found, gain)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """Lanes for the bulk, the original body for the rest, then the lanes combined."""
        found: Reduction = match.data
        return replaced(source, match.node, _lines(source, found, parameters["lanes"]))


def _lines(source: Source, found: Reduction, lanes: Parameter) -> list[str]:
    loop, name = found.loop, found.update.accumulator
    width, array = source.fresh(f"{name}_width"), source.fresh(f"{name}_lanes")
    first, lane = source.fresh(f"{loop.variable}_next"), source.fresh_in("lane", loop.node)
    over_lanes = f"for (int {lane} = 0; {lane} < {width}; {lane}++)"
    unit = source.indent_unit
    inner = [
        f"const {loop.type} {loop.variable} = {first} + {lane};",
        *(line for each in found.before for line in source.lines_of(each)),
        *_update(source, found, f"{array}[{lane}]"),
    ]
    bulk = f"for (; {first} + {width} <= {text_of(loop.bound)}; {first} += {width})"
    rest = f"for ({loop.type} {loop.variable} = {first}; {loop.variable} < {loop.bound_text}; {loop.variable}++)"
    return [
        f"// split_accumulator: {lanes} independent partial results for `{name}`.",
        f"constexpr int {width} = {lanes};  // knob: {width} in {{8, 16, 32, 64}}",
        *_started(found, array, width, over_lanes, lane, unit),
        f"{loop.type} {first} = {text_of(loop.start)};",
        *nest(bulk, nest(over_lanes, inner, unit), unit),
        *nest(rest, _body(source, loop), unit),
        *_combined(found, array, width, lane, unit),
        found.update.applied(name, f"{array}[0]"),
    ]


def _combined(found: Reduction, array: str, width: str, lane: str, unit: str) -> list[str]:
    """The lanes folded in halves: a chain of log2(width) steps; the directive lets the compiler use vectors for it."""
    fold = found.update.applied(f"{array}[{lane}]", f"{array}[{lane} + half]")
    lanes = nest(f"for (int {lane} = 0; {lane} < half; {lane}++)", [fold], unit)
    return ["#pragma GCC unroll 8", *nest(f"for (int half = {width} / 2; half > 0; half /= 2)", lanes, unit)]


def _started(found: Reduction, array: str, width: str, over_lanes: str, lane: str, unit: str) -> list[str]:
    if found.update.kind == "sum":
        return [f"{found.type} {array}[{width}] = {{}};"]
    fill = nest(over_lanes, [f"{array}[{lane}] = {found.update.accumulator};"], unit)
    return [f"{found.type} {array}[{width}];", *fill]


def _update(source: Source, found: Reduction, target: str) -> list[str]:
    term = found.update.term_text
    if found.update.kind == "sum" or found.update.term.type == "identifier":
        return [found.update.applied(target, term)]
    value = source.fresh_in("value", found.loop.node)
    return [f"const {found.type} {value} = {term};", found.update.applied(target, value)]


def _body(source: Source, loop: Loop) -> list[str]:
    return [line for each in loop.statements for line in source.lines_of(each)]

"""Vector loads and stores for elementwise kernels: V neighbours a vector, a few vectors a thread, a scalar tail."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import Access
from roles.techniques.cpp.render import nest, renamed, substituted
from roles.techniques.cpp.syntax import Source, identifiers, line_of, text_of
from roles.techniques.cuda.cache_hints import LOADS, STORES, loaded, stored
from roles.techniques.cuda.design import constants
from roles.techniques.cuda.elements import ElementProgram, element_program
from roles.techniques.cuda.enter import Enter
from roles.techniques.cuda.launches import Kernel, kernels_in, rewritten
from roles.techniques.cuda.signature import restricted
from roles.techniques.transform import Choices

_AT = (
    "place",
    "stride",
    "begin",
    "leap",
)  # of a period: where a vector begins in it, how far the next one is; per turn
_RESERVED = frozenset(["first", "count", "part", "slot", "float4", "V", "turn", "turns", "at"])


class ElementsFamily:
    """The judge lends 256-byte aligned buffers, so every fourth element starts a vector."""

    name: ClassVar[str] = "vectorise_elements"
    title: ClassVar[str] = "vectors of elements"
    promise: ClassVar[float] = 0.25
    core: ClassVar[tuple[str, ...]] = ("vectors", "block")
    options: ClassVar[Choices] = {
        "vectors": (2, 4, 1, 8),
        "block": (256, 128, 512, 64, 1024),
        "width": (4, 2),
        "blocks": (1, 2, 4, 8),
        "persist": (0, 8, 4, 16, 2),
        "span": ("strided", "neighbours"),
        "load": LOADS,
        "store": STORES,
    }

    def problems(self, source: Source) -> Iterator[tuple[Kernel, str]]:
        """See ``Family``."""
        for program in _programs(source):
            line = line_of(program.kernel.node)
            yield program.kernel, f"line {line}: 32-bit accesses, one element a thread"

    def write(self, source: Source, kernel: str, setting: Mapping[str, Parameter]) -> str | None:
        """A new body and a grid of a quarter of the threads, or fewer."""
        program = next((each for each in _programs(source) if each.kernel.name == kernel), None)
        if program is None:
            return None
        persist = ["persist"] if int(setting["persist"]) else []
        shown = constants(kernel, self, setting, ["vectors", "block", "blocks", *persist])
        writer = ElementWriter(source, program, setting)
        return rewritten(source, program.kernel, [*shown, "", *writer.kernel()], writer.launch())

    def sound(self, setting: Mapping[str, Parameter]) -> bool:
        """See ``Family``: the blocks asked for fit, with registers for the vectors in flight."""
        threads = int(setting["block"]) * int(setting["blocks"])
        return threads <= 2048 and threads * (24 + 3 * int(setting["vectors"]) * int(setting["width"])) <= 65536


@lru_cache(maxsize=32)
def _programs(source: Source) -> tuple[ElementProgram, ...]:
    usable = [each for each in kernels_in(source.root) if not _RESERVED & identifiers(each.node)]
    found = (program for each in usable if (program := element_program(each)) is not None)
    return tuple(each for each in found if not {f"{n}_{word}" for n in _periods(each) for word in _AT} & source.names)


def _periods(program: ElementProgram) -> list[str]:
    """The periods of reads that become registers, each once."""
    found = (program.period(each) for each in program.accesses if _vector(program, each))
    return list(dict.fromkeys(period for period in found if period))


@dataclass(frozen=True)
class ElementWriter:
    """Renders one element program."""

    source: Source
    program: ElementProgram
    setting: Mapping[str, Parameter]

    @property
    def _unit(self) -> str:
        return self.source.indent_unit

    @property
    def _name(self) -> str:
        return self.program.kernel.name

    @property
    def _width(self) -> int:
        return int(self.setting["width"])

    def launch(self) -> list[str]:
        """The host's statement: as many blocks as it takes, or a fixed number that walk the elements."""
        kernel, name = self.program.kernel, self._name
        names = {each.name: kernel.argument_of(each.name) for each in kernel.parameters}
        count = renamed(self.program.count, names)
        blocks = f"({count} - 1) / ({name}_block * {name}_vectors * {self._width}) + 1"
        body = [f"{name}<<<{blocks}, {name}_block>>>({kernel.argument_text});"]
        if int(self.setting["persist"]):
            most = f"132 * {name}_persist"
            grid = f"{blocks} < {most} ? {blocks} : {most}"
            body = [f"{name}<<<{grid}, {name}_block>>>({kernel.argument_text});"]
        return nest(f"if ({count} > 0)", body, self._unit)

    def kernel(self) -> list[str]:
        """The kernel: all loads of a thread, then its work and its stores."""
        program, name = self.program, self._name
        count = f"const {program.type} count = {text_of(program.count)};"
        begun, strides, moved = self._places("blockIdx.x")
        body = [count, *begun, *strides, *self._vectors("blockIdx.x", moved)]
        if int(self.setting["persist"]):
            turns = f"(count - 1) / ({name}_block * {name}_vectors * V) + 1"
            walk = f"for ({program.type} turn = blockIdx.x; turn < turns; turn += gridDim.x)"
            first, again, leaps = self._turned(begun)
            steps = [*again, *self._vectors("turn", moved), *leaps]
            turned = [*first, *strides, *nest(walk, steps, self._unit)]
            body = [count, f"const {program.type} turns = {turns};", *turned]
        body.insert(0, f"constexpr int V = {self._width};")
        bounds = f"__launch_bounds__({name}_block, {name}_blocks)"
        head = f"__global__ void {bounds} {name}{restricted(program.kernel)}"
        return [
            "// vectorise_elements: V neighbours a vector; the last ones one by one.",
            *nest(head, body, self._unit),
        ]

    def _vectors(self, turn: str, moved: list[str]) -> list[str]:
        program, name, unit = self.program, self._name, self._unit
        direct = _distinct([each for each in program.accesses if program.direct(each)])
        periodic = _distinct([each for each in program.accesses if _vector(program, each) and program.period(each)])
        read = [each for each in direct if any(not one.write for one in program.accesses if one.array == each.array)]
        written = [each for each in direct if self._written(each)]
        arrays = [f"alignas(16) float {each.array}_items[{name}_vectors][V];" for each in (*direct, *periodic)]
        loads = [line for each in read for line in self._load(each)]
        loads += [line for each in periodic for line in self._periodic(each)]
        over, whole = f"for (int part = 0; part < {name}_vectors; part++)", "if (first + V <= count)"
        swaps = [(each.node, f"{each.array}_items[part][slot]") for each in program.accesses if _vector(program, each)]
        element = self._body(swaps)
        if any(re.search(rf"\b{program.index}\b", line) for line in element):
            element.insert(0, f"const {program.type} {program.index} = first + slot;")
        work = ["#pragma unroll", *nest("for (int slot = 0; slot < V; slot++)", element, unit)]
        work += [line for each in written for line in self._store(each)]
        index = program.index
        tail = nest(f"for ({program.type} {index} = first; {index} < count; {index}++)", self._body([]), unit)
        place = f"const {program.type} first = {self._place(turn)};"
        return [
            *arrays,
            "#pragma unroll",
            *nest(over, [place, *nest(whole, loads, unit), *moved], unit),
            "#pragma unroll",
            *nest(over, [place, *nest(whole, work, unit)[:-1], *nest("} else", tail, unit)], unit),
        ]

    def _place(self, turn: str) -> str:
        """First element of vector number ``part``: a block's vectors side by side, or a thread's."""
        name = self._name
        if self.setting["span"] == "neighbours":
            return f"(({turn} * {name}_block + threadIdx.x) * {name}_vectors + part) * V"
        return f"(({turn} * {name}_vectors + part) * {name}_block + threadIdx.x) * V"

    def _written(self, access: Access) -> bool:
        return any(each.write for each in self.program.accesses if each.array == access.array)

    def _address(self, access: Access) -> str:
        return f"&{renamed(access.node, {self.program.index: 'first'})}"

    def _load(self, access: Access) -> list[str]:
        kind, load = f"float{self._width}", "plain" if self._written(access) else str(self.setting["load"])
        value = loaded(load, kind, self._address(access))
        return [f"*reinterpret_cast<{kind}*>({access.array}_items[part]) = {value};"]

    def _store(self, access: Access) -> list[str]:
        kind = f"float{self._width}"
        return [stored(str(self.setting["store"]), kind, self._address(access), f"{access.array}_items[part]")]

    def _places(self, turn: str) -> tuple[list[str], list[str], list[str]]:
        """Where the first vector of a thread begins in each period, the step to its next one, and how it is taken: two
        divisions a thread, whatever the number of its vectors."""
        kind, name = self.program.type, self._name
        far = "V" if self.setting["span"] == "neighbours" else f"{name}_block * V"
        start = self._place(turn).replace("part", "0")
        periods = _periods(self.program)
        begun = [f"{kind} {n}_place = ({start}) % {n};" for n in periods]
        return begun, [f"const {kind} {n}_stride = {far} % {n};" for n in periods], [_moved(n) for n in periods]

    def _turned(self, begun: list[str]) -> tuple[list[str], list[str], list[str]]:
        """The same for a block that takes turns: a third division for all of them, then additions."""
        kind, name, periods = self.program.type, self._name, _periods(self.program)
        far = f"(gridDim.x * {name}_block * {name}_vectors * V)"
        first = [line.replace("_place = ", "_begin = ", 1) for line in begun]
        first += [f"const {kind} {n}_leap = {far} % {n};" for n in periods]
        return first, [f"{kind} {n}_place = {n}_begin;" for n in periods], [_moved(n, "begin", "leap") for n in periods]

    def _periodic(self, access: Access) -> list[str]:
        """A read at ``i % n``: when n is a multiple of the width the neighbours stay together."""
        kind, n = f"float{self._width}", self.program.period(access)
        together = [
            f"*reinterpret_cast<{kind}*>({access.array}_items[part]) = "
            f"*reinterpret_cast<const {kind}*>(&{access.array}[{n}_place]);"
        ]
        one = [f"{access.array}_items[part][slot] = {access.array}[at];", f"at = at + 1 < {n} ? at + 1 : 0;"]
        each = [
            f"{self.program.type} at = {n}_place;",
            "#pragma unroll",
            *nest("for (int slot = 0; slot < V; slot++)", one, self._unit),
        ]
        inside = nest(f"if ({n} % V == 0)", together, self._unit)
        return [*inside[:-1], *nest("} else", each, self._unit)]

    def _body(self, swaps: list[tuple[Node, str]]) -> list[str]:
        lines: list[str] = []
        for node in self.program.body:
            mine = [(at, new) for at, new in swaps if node.start_byte <= at.start_byte and at.end_byte <= node.end_byte]
            first, *rest = substituted(node, mine).split("\n")
            lines += [first, *(line.removeprefix(self.source.indent_of(node)) for line in rest)]
        return lines


def _moved(period: str, place: str = "place", step: str = "stride") -> str:
    """A place in a period moved on by a step within it."""
    at, by = f"{period}_{place}", f"{period}_{step}"
    return f"{at} = {at} < {period} - {by} ? {at} + {by} : {at} - ({period} - {by});"


def _vector(program: ElementProgram, access: Access) -> bool:
    """True when the access becomes a register: at ``i``, or at ``i % n`` if its array is read nowhere else."""
    alike = {text_of(each.node) for each in program.accesses if each.array == access.array}
    return program.direct(access) or (bool(program.period(access)) and len(alike) == 1)


def _distinct(found: list[Access]) -> list[Access]:
    return list({each.array: each for each in reversed(found)}.values())[::-1]


ELEMENTS = ElementsFamily()


class VectoriseElements(Enter):
    """An elementwise kernel, in vectors."""

    def __init__(self) -> None:
        super().__init__(ELEMENTS)

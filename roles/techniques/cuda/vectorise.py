"""128-bit loads and stores for elementwise kernels: four elements a vector, a few vectors a thread, a scalar tail."""

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import Access
from roles.techniques.cpp.render import nest, renamed, substituted
from roles.techniques.cpp.syntax import Edit, Grammar, Source, identifiers, indented, line_of, text_of
from roles.techniques.cuda.elements import ElementProgram, element_program
from roles.techniques.cuda.launches import kernels_in, without_leftovers
from roles.techniques.transform import Choices, Match, TreeTransform

_RESERVED = frozenset(("first", "count", "part", "slot", "float4"))


class VectoriseElements(TreeTransform):
    """The judge lends 256-byte aligned buffers, so every fourth element starts a vector."""

    grammar: ClassVar[Grammar] = "cuda"
    choices: ClassVar[Choices] = {"vectors": (1, 2, 4), "block": (256, 128, 512)}

    def matches(self, source: Source) -> Iterator[Match]:
        """Kernels with one thread an element."""
        for kernel in kernels_in(source.root):
            program = element_program(kernel)
            if program is not None and not _RESERVED & identifiers(kernel.node):
                evidence = f"line {line_of(kernel.node)}: 32-bit accesses, one element a thread"
                yield Match(kernel.node, f"the kernel `{kernel.name}`", evidence, program)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """A new body and a grid of a quarter of the threads, or fewer."""
        program: ElementProgram = match.data
        kernel = program.kernel
        lines = [*_constants(kernel.name, parameters), "", *_kernel(source, program)]
        launch = kernel.launch.statement
        host = indented(_launch(source, program), source.indent_of(launch))
        return without_leftovers(
            source.replace(
                Edit(kernel.node.start_byte, kernel.node.end_byte, "\n".join(lines)),
                Edit(launch.start_byte, launch.end_byte, "\n".join(host).lstrip()),
            )
        )


def _constants(name: str, parameters: Mapping[str, Parameter]) -> list[str]:
    return [
        f"constexpr int {name}_block = {parameters['block']};  // knob: {name}_block in {{64, 128, 256, 512, 1024}}",
        f"constexpr int {name}_vectors = {parameters['vectors']};  // knob: {name}_vectors in {{1, 2, 4, 8}}",
    ]


def _launch(source: Source, program: ElementProgram) -> list[str]:
    kernel, unit = program.kernel, source.indent_unit
    names = {each.name: kernel.argument_of(each.name) for each in kernel.parameters}
    count = renamed(program.count, names)
    size = f"{kernel.name}_block * {kernel.name}_vectors * 4"
    call = f"{kernel.name}<<<({count} - 1) / ({size}) + 1, {kernel.name}_block>>>({kernel.argument_text});"
    return nest(f"if ({count} > 0)", [call], unit)


def _kernel(source: Source, program: ElementProgram) -> list[str]:
    kernel, unit, name = program.kernel, source.indent_unit, program.kernel.name
    direct = _distinct([each for each in program.accesses if program.direct(each)])
    periodic = _distinct([each for each in program.accesses if _vector(program, each) and program.period(each)])
    read = [each for each in direct if any(not one.write for one in program.accesses if one.array == each.array)]
    written = [each for each in direct if any(one.write for one in program.accesses if one.array == each.array)]
    arrays = [f"alignas(16) float {each.array}_items[{name}_vectors][4];" for each in (*direct, *periodic)]
    place = f"const {program.type} first = ((blockIdx.x * {name}_vectors + part) * {name}_block + threadIdx.x) * 4;"
    loads = [line for each in read for line in _moved(program, each, load=True)]
    loads += [line for each in periodic for line in _periodic(program, each, unit)]
    over = f"for (int part = 0; part < {name}_vectors; part++)"
    whole = "if (first + 4 <= count)"
    swaps = [(each.node, f"{each.array}_items[part][slot]") for each in program.accesses if _vector(program, each)]
    element = _body(source, program, swaps)
    if any(re.search(rf"\b{program.index}\b", line) for line in element):
        element.insert(0, f"const {program.type} {program.index} = first + slot;")
    work = ["#pragma unroll", *nest("for (int slot = 0; slot < 4; slot++)", element, unit)]
    work += [line for each in written for line in _moved(program, each, load=False)]
    tail = nest(
        f"for ({program.type} {program.index} = first; {program.index} < count; {program.index}++)",
        _body(source, program, []),
        unit,
    )
    body = [
        f"const {program.type} count = {text_of(program.count)};",
        *arrays,
        "#pragma unroll",
        *nest(over, [place, *nest(whole, loads, unit)], unit),
        "#pragma unroll",
        *nest(over, [place, *nest(whole, work, unit)[:-1], *nest("} else", tail, unit)], unit),
    ]
    head = f"__global__ void __launch_bounds__({name}_block) {name}{kernel.parameter_text}"
    return ["// vectorise_elements: four neighbours a vector; the last ones one by one.", *nest(head, body, unit)]


def _vector(program: ElementProgram, access: Access) -> bool:
    """True when the access becomes a register: at ``i``, or at ``i % n`` if its array is read nowhere else."""
    alike = {text_of(each.node) for each in program.accesses if each.array == access.array}
    return program.direct(access) or (bool(program.period(access)) and len(alike) == 1)


def _distinct(found: list[Access]) -> list[Access]:
    return list({each.array: each for each in reversed(found)}.values())[::-1]


def _moved(program: ElementProgram, access: Access, load: bool) -> list[str]:
    address = f"&{renamed(access.node, {program.index: 'first'})}"
    items = f"{access.array}_items[part]"
    if load:
        return [f"*reinterpret_cast<float4*>({items}) = *reinterpret_cast<const float4*>({address});"]
    return [f"*reinterpret_cast<float4*>({address}) = *reinterpret_cast<const float4*>({items});"]


def _periodic(program: ElementProgram, access: Access, unit: str) -> list[str]:
    """A read at ``i % n``: when n is a multiple of four the four neighbours stay together."""
    element = renamed(access.node, {program.index: "(first + slot)"})
    each = [
        "#pragma unroll",
        *nest("for (int slot = 0; slot < 4; slot++)", [f"{access.array}_items[part][slot] = {element};"], unit),
    ]
    together = nest(f"if ({program.period(access)} % 4 == 0)", _moved(program, access, load=True), unit)
    return [*together[:-1], *nest("} else", each, unit)]


def _body(source: Source, program: ElementProgram, swaps: list[tuple[Node, str]]) -> list[str]:
    lines: list[str] = []
    for node in program.body:
        mine = [(at, new) for at, new in swaps if node.start_byte <= at.start_byte and at.end_byte <= node.end_byte]
        first, *rest = substituted(node, mine).split("\n")
        lines += [first, *(line.removeprefix(source.indent_of(node)) for line in rest)]
    return lines

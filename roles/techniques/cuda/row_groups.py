"""A group of threads a row in place of one thread a row: a warp for short rows, a block for long ones."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from protocol.messages import Parameter
from roles.techniques.cpp.render import nest
from roles.techniques.cpp.syntax import Edit, Grammar, Source, identifiers, indented, line_of, parse
from roles.techniques.cuda.block_rows import as_thread_rows
from roles.techniques.cuda.launches import kernels_in, without_leftovers
from roles.techniques.cuda.row_functions import COLUMN, LOAD, STORE, combine
from roles.techniques.cuda.row_writer import RowWriter
from roles.techniques.cuda.rows import RowProgram, row_program
from roles.techniques.transform import Choices, Match, TreeTransform

_BLOCK_GAIN = 0.5  # the loads are coalesced already; what is left is their width and the reduction
_RESERVED = ("lane", "item", "column", "load_row", "store_row", "LANES", "ITEMS", "ALIGNED", "float4")


class RowGroups(TreeTransform):
    """Rows that fit stay in registers between the passes; the group's size is chosen by row length at launch."""

    grammar: ClassVar[Grammar] = "cuda"
    choices: ClassVar[Choices] = {
        "items": (16, 8, 32),
        "block": (256, 128, 512),
        "groups": ("32 128 512 1024", "32 64 256 1024", "128 256 512 1024", "64 128 256 512"),
    }

    def matches(self, source: Source) -> Iterator[Match]:
        """Kernels with one thread a row, or with one block a row and trees in shared memory."""
        if set(_RESERVED) & identifiers(source.root):
            return
        for kernel in kernels_in(source.root):
            program, text = row_program(kernel), source.text
            evidence, gain = "neighbouring threads read rows that lie a whole row apart", None
            if program is None:
                text = as_thread_rows(source, kernel)
                program = _program_in(text, kernel.name)
                evidence, gain = "one block a row, 32-bit loads, a fixed number of threads", _BLOCK_GAIN
            if program is not None and program.passes and text is not None:
                line = f"line {line_of(kernel.node)}: {evidence}"
                yield Match(kernel.node, f"the kernel `{kernel.name}`", line, (text, program), gain)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The kernel becomes two, with a launcher; the launch in ``solve`` becomes a choice by row length."""
        text, program = match.data
        source = parse(text, "cuda")
        kernel = program.kernel
        writer = RowWriter(source, program)
        text = "\n".join([*_functions(program, writer), *_kernels(source, writer, parameters)])
        launch = kernel.launch.statement
        indent = source.indent_of(launch)
        choice = _choice(source, program, parameters)
        return without_leftovers(
            source.replace(
                Edit(kernel.node.start_byte, kernel.node.end_byte, text),
                Edit(launch.start_byte, launch.end_byte, "\n".join([choice[0], *indented(choice[1:], indent)])),
            )
        )


def _program_in(text: str | None, name: str) -> RowProgram | None:
    """The row program of one kernel of a text."""
    kernels = kernels_in(parse(text, "cuda").root) if text is not None else []
    return next((row_program(each) for each in kernels if each.name == name), None)


def _functions(program: RowProgram, writer: RowWriter) -> list[str]:
    cached = writer.cached()
    reads = any(not each.write for step in program.passes for each in step.accesses if each.array in cached)
    writes = any(step.writes & set(cached) for step in program.passes)
    kinds = sorted({update.kind for step in program.passes for update in step.updates})
    parts = [COLUMN, *([LOAD] if reads else []), *([STORE] if writes else []), *(combine(kind) for kind in kinds)]
    return ["\n".join(parts)]


def _constants(name: str, parameters: Mapping[str, Parameter]) -> list[str]:
    """The knobs of a kernel: values a thread, smallest block, and threads a row from short rows to long ones."""
    groups = str(parameters["groups"]).split()
    lines = [
        f"constexpr int {name}_items = {parameters['items']};  // knob: {name}_items in {{4, 8, 16, 32}}",
        f"constexpr int {name}_block = {parameters['block']};  // knob: {name}_block in {{64, 128, 256, 512}}",
    ]
    for number, lanes in enumerate(groups):
        values = "32, 64, 128" if int(lanes) < 128 else "128, 256, 512, 1024"
        lines.append(f"constexpr int {name}_lanes{number} = {lanes};  // knob: {name}_lanes{number} in {{{values}}}")
    return lines


def _kernels(source: Source, writer: RowWriter, parameters: Mapping[str, Parameter]) -> list[str]:
    program, unit = writer.program, source.indent_unit
    name, signature = program.kernel.name, program.kernel.parameter_text
    names = ", ".join(each.name for each in program.kernel.parameters)
    body = [
        f"constexpr int ROWS = LANES == 32 ? {name}_block / 32 : 1;  // rows a block",
        f"const int blocks = ({program.rows} + ROWS - 1) / ROWS;",
        *nest(
            f"if ({program.cols} % 4 == 0)",
            [f"{name}_resident<LANES, true><<<blocks, dim3(LANES, ROWS)>>>({names});"],
            unit,
        )[:-1],
        *nest("} else", [f"{name}_resident<LANES, false><<<blocks, dim3(LANES, ROWS)>>>({names});"], unit),
    ]
    return [
        *_constants(name, parameters),
        "",
        *writer.resident(),
        "",
        *writer.long(),
        "",
        "template <int LANES>",
        *nest(f"static void launch_{name}{signature}", body, unit),
    ]


def _choice(source: Source, program: RowProgram, parameters: Mapping[str, Parameter]) -> list[str]:
    """The host's choice by row length."""
    kernel, unit = program.kernel, source.indent_unit
    rows, cols = kernel.argument_of(program.rows), kernel.argument_of(program.cols)
    arguments, name = kernel.argument_text, kernel.name
    lines: list[str] = []
    for number in range(len(str(parameters["groups"]).split())):
        fits = f"if ({cols} <= {name}_lanes{number} * {name}_items)"
        lines += nest(
            f"}} else {fits}" if lines else fits, [f"launch_{name}<{name}_lanes{number}>({arguments});"], unit
        )[:-1]
    lines += nest("} else", [f"{name}_long<512><<<{rows}, 512>>>({arguments});"], unit)
    head = "// row_groups: a warp for short rows, a block for long ones; a row that fits stays in registers."
    return [head, *nest(f"if ({rows} > 0)", lines, unit)]

"""A grid-stride loop: a fixed number of blocks walks all elements, however many there are."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from protocol.messages import Parameter
from roles.techniques.cpp.render import nest, renamed
from roles.techniques.cpp.syntax import Edit, Grammar, Source, indented, line_of, statements, text_of
from roles.techniques.cuda.elements import ElementProgram, element_program
from roles.techniques.cuda.launches import kernels_in
from roles.techniques.transform import Choices, Match, TreeTransform


class GridStride(TreeTransform):
    """One thread an element becomes a loop over elements that lie a whole grid apart."""

    grammar: ClassVar[Grammar] = "cuda"
    choices: ClassVar[Choices] = {"blocks": (1056, 528, 2112, 264)}

    def matches(self, source: Source) -> Iterator[Match]:
        """Guarded elementwise kernels; those that loop already are left alone."""
        for kernel in kernels_in(source.root):
            program = element_program(kernel)
            loops = statements(kernel.body)[0].type == "for_statement"
            if program is not None and not loops:
                evidence = f"line {line_of(kernel.node)}: a thread is started for every element"
                yield Match(kernel.node, f"the grid of `{kernel.name}`", evidence, program)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The loop, and a grid of at most so many blocks."""
        program: ElementProgram = match.data
        kernel, unit, i = program.kernel, source.indent_unit, program.index
        body = [line for each in program.body for line in source.lines_of(each)]
        place = f"{program.type} {i} = blockIdx.x * blockDim.x + threadIdx.x"
        loop = nest(f"for ({place}; {i} < {text_of(program.count)}; {i} += blockDim.x * gridDim.x)", body, unit)
        name = f"{kernel.name}_grid"
        values = "132, 264, 528, 1056, 2112"
        constant = f"constexpr int {name} = {parameters['blocks']};  // knob: {name} in {{{values}}}\n\n"
        names = {each.name: kernel.argument_of(each.name) for each in kernel.parameters}
        grid, block = kernel.launch.configuration
        count = renamed(program.count, names)
        needed = text_of(grid)
        choice = f"({needed}) < {name} ? ({needed}) : {name}"
        head = text_of(kernel.node)[: kernel.body.start_byte - kernel.node.start_byte].rstrip()
        call = f"{kernel.name}<<<{choice}, {text_of(block)}>>>({kernel.argument_text});"
        launch = kernel.launch.statement
        host = indented(nest(f"if ({count} > 0)", [call], unit), source.indent_of(launch))
        return source.replace(
            Edit(
                kernel.node.start_byte,
                kernel.node.end_byte,
                "\n".join([constant + f"{head} {{", *indented(loop, unit), "}"]),
            ),
            Edit(launch.start_byte, launch.end_byte, "\n".join(host).lstrip()),
        )

"""What the compiler may know about a kernel: pointers that do not overlap, read-only data, block size, unrolling."""

from collections.abc import Iterator, Mapping
from math import prod
from typing import ClassVar

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import Access, accesses
from roles.techniques.cpp.loops import loops_in
from roles.techniques.cpp.scopes import Declaration
from roles.techniques.cpp.split_accumulator import constant_trip
from roles.techniques.cpp.syntax import Edit, Grammar, Source, directives, field, line_of, of_type, text_of
from roles.techniques.cuda.design import design_in
from roles.techniques.cuda.launches import Kernel, kernels_in, lent
from roles.techniques.cuda.threads import block_shape
from roles.techniques.transform import Choices, Match, TreeTransform


def _name_node(parameter: Declaration) -> Node:
    return next(iter(of_type(field(parameter.node, "declarator"), "identifier")))


def _only_subscripted(name: str, kernel: Kernel) -> bool:
    """True when the pointer occurs in the body as the array of a subscript and in no other way."""
    uses = [each for each in of_type(kernel.body, "identifier") if text_of(each) == name]
    subscripts = [
        each for each in of_type(kernel.body, "subscript_expression") if text_of(field(each, "argument")) == name
    ]
    return bool(uses) and len(uses) == len(subscripts)


class CudaRestrict(TreeTransform):
    """``__restrict__`` on the pointers of a kernel, ``const`` on those that it only reads."""

    grammar: ClassVar[Grammar] = "cuda"

    def matches(self, source: Source) -> Iterator[Match]:
        """Kernels that ``solve`` gives different buffers."""
        for kernel in kernels_in(source.root):
            bare = [each for each in kernel.parameters if each.pointer and not each.array and not each.restrict]
            several = sum(each.pointer for each in kernel.parameters) > 1
            if bare and several and lent(kernel.node):
                names = ", ".join(each.name for each in bare)
                evidence = f"line {line_of(kernel.node)}: {names} may overlap as far as the compiler knows"
                yield Match(kernel.node, f"the pointers of `{kernel.name}`", evidence, (kernel, bare))

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """Qualifiers alone."""
        kernel, bare = match.data
        found = accesses(kernel.body)
        written = {each.array for each in found if each.write} if found is not None else None
        edits = [Edit(_name_node(each).start_byte, _name_node(each).start_byte, "__restrict__ ") for each in bare]
        for each in bare:
            read_only = written is not None and each.name not in written and _only_subscripted(each.name, kernel)
            if read_only and not each.constant:
                edits.append(Edit(each.node.start_byte, each.node.start_byte, "const "))
        return source.replace(*edits)


class LaunchBounds(TreeTransform):
    """``__launch_bounds__(threads, blocks)``: the compiler fits the registers to the block that is launched."""

    grammar: ClassVar[Grammar] = "cuda"
    choices: ClassVar[Choices] = {"blocks": (1, 2, 4, 8)}

    def matches(self, source: Source) -> Iterator[Match]:
        """Kernels whose block size is a constant and that declare no bounds."""
        for kernel in kernels_in(source.root):
            shape = block_shape(kernel.launch.configuration, kernel.launch.node)
            head = text_of(kernel.node).split("{")[0]
            if shape is not None and "__launch_bounds__" not in head and 0 < prod(shape) <= 1024:
                evidence = f"line {line_of(kernel.node)}: the compiler must allow for blocks of 1024 threads"
                yield Match(kernel.node, f"the bounds of `{kernel.name}`", evidence, prod(shape))

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """Before the kernel's name."""
        at = field(match.node, "declarator").start_byte
        return source.replace(Edit(at, at, f"__launch_bounds__({match.data}, {parameters['blocks']}) "))


class CudaUnroll(TreeTransform):
    """``#pragma unroll N`` on innermost loops."""

    grammar: ClassVar[Grammar] = "cuda"
    choices: ClassVar[Choices] = {"factor": (4, 8, 2, 16)}

    def matches(self, source: Source) -> Iterator[Match]:
        """Canonical innermost loops of kernels, without a directive, whose length is not a constant. A design says for
        itself how its loops are unrolled."""
        from roles.techniques.cuda.families import FAMILIES

        if design_in(source.text, FAMILIES) is not None:
            return
        for kernel in kernels_in(source.root):
            for loop in loops_in(kernel.body):
                parent = loop.node.parent
                block = parent is not None and parent.type == "compound_statement"
                if block and loop.innermost and not constant_trip(loop) and not directives(loop.node):
                    evidence = f"line {loop.line}: an innermost loop of unknown length"
                    yield Match(loop.node, f"the loop over {loop.variable}", evidence, loop)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The directive on a line of its own before the loop."""
        indent, at = source.indent_of(match.node), match.node.start_byte
        return source.replace(Edit(at, at, f"#pragma unroll {parameters['factor']}\n{indent}"))


class ReadOnlyLoads(TreeTransform):
    """Loads of data that the kernel never writes, through the read-only path or as streaming loads."""

    grammar: ClassVar[Grammar] = "cuda"
    choices: ClassVar[Choices] = {"load": ("__ldg", "__ldcs")}

    def matches(self, source: Source) -> Iterator[Match]:
        """Kernels of which every access is understood."""
        for kernel in kernels_in(source.root):
            reads = _read_only(kernel)
            if reads and lent(kernel.node):
                names = ", ".join(sorted({each.array for each in reads}))
                evidence = f"line {line_of(kernel.node)}: {names} are read and never written"
                yield Match(kernel.node, f"the reads of `{kernel.name}`", evidence, reads)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """Each read becomes a call with the element's address."""
        reads: list[Access] = match.data
        load = parameters["load"]
        return source.replace(
            *(Edit(each.node.start_byte, each.node.end_byte, f"{load}(&{text_of(each.node)})") for each in reads)
        )


def _read_only(kernel: Kernel) -> list[Access]:
    """Reads of pointer parameters that the kernel does not write, none of them inside another."""
    found = accesses(kernel.body)
    if found is None or "__ld" in text_of(kernel.body):
        return []
    written = {each.array for each in found if each.write}
    reads = [each for each in found if each.array not in written and kernel.is_parameter(each.array)]
    inner = [each for each in reads if any(_inside(each.node, other.node) for other in found)]
    return [] if inner else reads


def _inside(node: Node, outer: Node) -> bool:
    return node.id != outer.id and outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte

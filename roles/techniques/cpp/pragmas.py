"""Compiler directives before a loop: ``omp simd`` and ``GCC unroll``; and taking one away again."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.independence import independent_iterations
from roles.techniques.cpp.loops import Loop, loops_in
from roles.techniques.cpp.reductions import reduction_of
from roles.techniques.cpp.scopes import declaration_of
from roles.techniques.cpp.split_accumulator import constant_trip, continues_another, lanes_gain
from roles.techniques.cpp.syntax import Edit, Source, directives, line_of, of_type, text_of
from roles.techniques.transform import Choices, Match, TreeTransform

_OPERATORS = {"sum": "+", "max": "max", "min": "min"}


def _with_directive(source: Source, node: Node, directive: str) -> str:
    indent = source.indent_of(node)
    return source.replace(Edit(node.start_byte, node.start_byte, f"{directive}\n{indent}"))


def _open(loop: Loop) -> bool:
    """A loop that can take a directive: a statement of a block, none before it, and worth one."""
    parent = loop.node.parent
    worth = not constant_trip(loop) and not continues_another(loop) and not _counted(loop)
    return parent is not None and parent.type == "compound_statement" and worth and not directives(loop.node)


def _counted(loop: Loop) -> bool:
    """True when the bound is another loop's variable: a short, shrinking range."""
    declared = declaration_of(text_of(loop.bound), loop.node)
    return declared is not None and declared.node.parent is not None and declared.node.parent.type == "for_statement"


class OmpSimd(TreeTransform):
    """``#pragma omp simd`` on innermost loops whose iterations are independent or form a reduction."""

    def matches(self, source: Source) -> Iterator[Match]:
        """Proven loops of unit step without a directive."""
        for loop in loops_in(source.root):
            if not loop.innermost or loop.step != "1" or not _open(loop):
                continue
            found = reduction_of(loop)
            if found is not None:
                clause = f" reduction({_OPERATORS[found.update.kind]} : {found.update.accumulator})"
                gain, what = 0.7 * lanes_gain(found), f"the {found.update.kind} `{found.update.accumulator}`"
            elif independent_iterations(loop):
                clause, gain, what = "", 0.03, "the independent loop"
            else:
                continue
            evidence = f"line {loop.line}: nothing tells the compiler that the iterations may be combined"
            yield Match(loop.node, f"{what} over {loop.variable}", evidence, clause, gain)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The directive on a line of its own before the loop."""
        return _with_directive(source, match.node, f"#pragma omp simd{match.data}")


class UnrollPragma(TreeTransform):
    """``#pragma GCC unroll N`` on innermost loops."""

    choices: ClassVar[Choices] = {"factor": (4, 8, 2)}

    def matches(self, source: Source) -> Iterator[Match]:
        """Canonical innermost loops without a directive."""
        for loop in loops_in(source.root):
            if loop.innermost and _open(loop):
                evidence = f"line {loop.line}: an innermost loop that the compiler does not unroll at -O3"
                yield Match(loop.node, f"the loop over {loop.variable}", evidence, loop)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The directive on a line of its own before the loop."""
        return _with_directive(source, match.node, f"#pragma GCC unroll {parameters['factor']}")


class DropPragma(TreeTransform):
    """Deletes one optimisation directive, to see whether it matters."""

    def matches(self, source: Source) -> Iterator[Match]:
        """Every ``omp simd`` and ``GCC unroll`` directive."""
        for each in of_type(source.root, "preproc_call"):
            text = " ".join(text_of(each).split())
            if text.startswith(("#pragma omp simd", "#pragma GCC unroll", "#pragma GCC ivdep")):
                evidence = f"line {line_of(each)}: `{text}` has not been shown to matter on this base"
                yield Match(each, f"`{text}`", evidence, each)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The whole line goes."""
        start = source.data.rfind(b"\n", 0, match.node.start_byte) + 1
        end = match.node.end_byte
        end += not text_of(match.node).endswith("\n") and source.data[end : end + 1] == b"\n"
        return source.replace(Edit(start, end, ""))

"""What the judge guarantees about the pointers of ``solve``, told to the compiler: no overlap, 64-byte alignment."""

from collections.abc import Iterator, Mapping

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.scopes import Declaration, assignments_to, function_name, parameters_of
from roles.techniques.cpp.syntax import Edit, Source, field, line_of, of_type
from roles.techniques.transform import Match, TreeTransform


def _solves(source: Source) -> Iterator[tuple[Node, list[Declaration]]]:
    for function in of_type(source.root, "function_definition"):
        if function_name(function) == "solve":
            yield function, [each for each in parameters_of(function) if each.pointer and not each.array]


def _name_node(parameter: Declaration) -> Node:
    return next(each for each in of_type(field(parameter.node, "declarator"), "identifier"))


class Restrict(TreeTransform):
    """``__restrict__`` on every pointer parameter of ``solve``."""

    def matches(self, source: Source) -> Iterator[Match]:
        """``solve`` when one of its pointers lacks the qualifier and it has more than one."""
        for function, pointers in _solves(source):
            bare = [each for each in pointers if not each.restrict]
            if bare and len(pointers) > 1:
                names = ", ".join(each.name for each in bare)
                evidence = f"line {line_of(function)}: {names} may overlap as far as the compiler knows"
                yield Match(function, "the pointer parameters", evidence, bare)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The qualifier goes right before each name."""
        at = [_name_node(each).start_byte for each in match.data]
        return source.replace(*(Edit(start, start, "__restrict__ ") for start in at))


class AssumeAligned(TreeTransform):
    """``__builtin_assume_aligned(p, 64)`` at the top of ``solve``: the judge lends 64-byte aligned buffers."""

    def matches(self, source: Source) -> Iterator[Match]:
        """``solve`` when none of its pointers has been declared aligned or is moved."""
        for function, pointers in _solves(source):
            known = [each for each in pointers if each.type == "float"]
            if known and not any(assignments_to(each) for each in known):
                evidence = f"line {line_of(function)}: the alignment of the buffers is not visible to the compiler"
                yield Match(function, "the pointer parameters", evidence, known)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """One line a pointer, first thing in the body."""
        body = field(match.node, "body")
        lines = ["// assume_aligned: the judge lends 64-byte aligned buffers."]
        for each in match.data:
            kind = "const float*" if each.constant else "float*"
            lines.append(f"{each.name} = static_cast<{kind}>(__builtin_assume_aligned({each.name}, 64));")
        text = "".join(f"\n{source.indent_of(match.node)}{source.indent_unit}{line}" for line in lines)
        return source.replace(Edit(body.start_byte + 1, body.start_byte + 1, text))

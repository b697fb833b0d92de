"""Writing code back: replacing a loop by lines, renaming within verbatim text, and the includes that new code needs."""

import re
from collections.abc import Iterable, Mapping, Sequence

from tree_sitter import Node

from roles.techniques.cpp.scopes import declarations
from roles.techniques.cpp.syntax import Edit, Source, identifiers, indented, of_type, start_with_directives, text_of


def replaced(source: Source, node: Node, lines: Sequence[str], includes: Iterable[str] = ()) -> str:
    """The text with ``node``, and the pragmas before it, replaced by ``lines``.

    Several statements get braces: their names then clash with nothing, not even with the same edit made elsewhere in
    the function by another branch.
    """
    body = list(lines) if _one_statement(lines) else ["{", *indented(list(lines), source.indent_unit), "}"]
    first, *rest = body
    text = "\n".join([first, *indented(rest, source.indent_of(node))])
    start = start_with_directives(node)
    indent = source.indent_of(node) if start != node.start_byte and not _indented_at(source, start) else ""
    return with_includes(source.replace(Edit(start, node.end_byte, indent + text)), includes)


def _one_statement(lines: Sequence[str]) -> bool:
    own = [line for line in lines if line and not line[0].isspace() and not line.startswith(("//", "#", "}"))]
    return len(own) <= 1


def _indented_at(source: Source, at: int) -> bool:
    line = source.data.rfind(b"\n", 0, at) + 1
    return at > line


def with_includes(text: str, headers: Iterable[str]) -> str:
    """``text`` with the standard headers that it lacks, after its last include or its leading comment."""
    present = set(re.findall(r"^\s*#\s*include\s*<([\w./]+)>", text, re.MULTILINE))
    missing = [f"#include <{header}>" for header in sorted(set(headers) - present)]
    if not missing:
        return text
    lines = text.split("\n")
    included = [number for number, line in enumerate(lines) if re.match(r"\s*#\s*include\b", line)]
    at = included[-1] + 1 if included else _after_comment(lines)
    gap = [] if included or (at < len(lines) and not lines[at].strip()) else [""]
    return "\n".join([*lines[:at], *missing, *gap, *lines[at:]])


def _after_comment(lines: list[str]) -> int:
    at = 0
    while at < len(lines) and lines[at].startswith("//"):
        at += 1
    return at


def renamed(node: Node, names: Mapping[str, str]) -> str:
    """The text of ``node`` with variables renamed."""
    swaps = [(each, names[text_of(each)]) for each in of_type(node, "identifier") if text_of(each) in names]
    return substituted(node, swaps)


def substituted(node: Node, swaps: Iterable[tuple[Node, str]]) -> str:
    """The text of ``node`` with some of its descendants replaced."""
    data = node.text or b""
    for each, new in sorted(swaps, key=lambda swap: swap[0].start_byte, reverse=True):
        start, end = each.start_byte - node.start_byte, each.end_byte - node.start_byte
        data = data[:start] + new.encode() + data[end:]
    return data.decode()


def needed(preamble: Sequence[Node], *users: Node) -> list[Node]:
    """Those declarations of a preamble that the users mention, directly or through each other, in order."""
    wanted = set().union(*(identifiers(user) for user in users)) if users else set()
    chosen: list[Node] = []
    for statement in reversed(preamble):
        if any(each.name in wanted for each in declarations(statement)):
            chosen.insert(0, statement)
            wanted |= identifiers(statement)
    return chosen


def nest(opening: str, body: Sequence[str], unit: str) -> list[str]:
    """A braced block."""
    return [f"{opening} {{", *indented(list(body), unit), "}"]

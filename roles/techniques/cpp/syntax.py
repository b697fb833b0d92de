"""C++ source as a syntax tree: parsing, walking, verbatim text, and replacing spans.

Positions are byte offsets of the UTF-8 text, as tree-sitter counts them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import tree_sitter_cpp
import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

Grammar = Literal["cpp", "cuda"]


@lru_cache(maxsize=2)
def _parser(grammar: Grammar) -> Parser:
    return Parser(Language((tree_sitter_cuda if grammar == "cuda" else tree_sitter_cpp).language()))


@dataclass(frozen=True)
class Edit:
    """Replace bytes [start, end) by ``text``."""

    start: int
    end: int
    text: str


class Source:
    """One C++ or CUDA text and its syntax tree."""

    def __init__(self, text: str, grammar: Grammar = "cpp") -> None:
        self.text = text
        self.data = text.encode()
        self.root = _parser(grammar).parse(self.data).root_node

    @property
    def broken(self) -> bool:
        """True when the grammar could not follow the text; no transform may touch it then."""
        return self.root.has_error

    @cached_property
    def names(self) -> frozenset[str]:
        """Every word of the text: no new name may be one of them."""
        return frozenset(re.findall(r"[A-Za-z_]\w*", self.text))

    def fresh(self, wanted: str) -> str:
        """``wanted``, numbered when the text already uses it."""
        name, number = wanted, 2
        while name in self.names:
            name, number = f"{wanted}{number}", number + 1
        return name

    @staticmethod
    def fresh_in(wanted: str, node: Node) -> str:
        """``wanted``, numbered when ``node`` mentions it; for a name whose scope holds nothing but ``node``'s code."""
        name, number = wanted, 2
        while name in identifiers(node):
            name, number = f"{wanted}{number}", number + 1
        return name

    @cached_property
    def indent_unit(self) -> str:
        """The step of indentation that the text uses; four spaces when it shows none."""
        steps = re.findall(r"\n( +|\t+)\S", self.text)
        if any(step.startswith("\t") for step in steps):
            return "\t"
        return " " * min((len(step) for step in steps if len(step) > 1), default=4)

    def indent_of(self, node: Node) -> str:
        """Leading whitespace of the line on which ``node`` starts."""
        line = self.data.rfind(b"\n", 0, node.start_byte) + 1
        match = re.match(rb"[ \t]*", self.data[line:])
        return match.group().decode() if match else ""

    def lines_of(self, node: Node) -> list[str]:
        """The text of ``node`` with its own indentation taken off every line."""
        indent = self.indent_of(node)
        first, *rest = text_of(node).split("\n")
        return [first, *(line.removeprefix(indent) for line in rest)]

    def replace(self, *edits: Edit) -> str:
        """The text after non-overlapping edits."""
        data = self.data
        for edit in sorted(edits, key=lambda each: each.start, reverse=True):
            data = data[: edit.start] + edit.text.encode() + data[edit.end :]
        return data.decode()


@lru_cache(maxsize=64)
def parse(text: str, grammar: Grammar = "cpp") -> Source:
    """The syntax tree of ``text``; parsed once."""
    return Source(text, grammar)


def text_of(node: Node) -> str:
    """The exact text of a node."""
    return (node.text or b"").decode()


def walk(node: Node) -> Iterator[Node]:
    """``node`` and everything under it, in source order."""
    waiting = [node]
    while waiting:
        at = waiting.pop()
        yield at
        waiting.extend(reversed(at.children))


def of_type(node: Node, *types: str) -> Iterator[Node]:
    """Nodes of the given grammar types, ``node`` included, in source order."""
    return (each for each in walk(node) if each.type in types)


def field(node: Node, name: str) -> Node:
    """A field that the grammar guarantees."""
    child = node.child_by_field_name(name)
    if child is None:
        raise LookupError(f"a {node.type} without a {name} at line {node.start_point[0] + 1}")
    return child


def line_of(node: Node) -> int:
    """Line of the first character, from 1."""
    return node.start_point[0] + 1


def bare(node: Node) -> Node:
    """The expression inside any parentheses."""
    while node.type in ("parenthesized_expression", "condition_clause"):
        node = next(child for child in node.named_children if child.type != "comment")
    return node


def statements(body: Node) -> list[Node]:
    """The statements of a loop or function body, comments left out; a single statement is a body too."""
    if body.type != "compound_statement":
        return [body]
    return [child for child in body.named_children if child.type != "comment"]


def identifiers(node: Node) -> set[str]:
    """Names of variables that occur under ``node``."""
    return {text_of(each) for each in of_type(node, "identifier")}


def indented(lines: list[str], by: str) -> list[str]:
    """Lines moved right; empty ones stay empty, preprocessor lines too."""
    return [by + line if line else line for line in lines]


def directives(node: Node) -> list[Node]:
    """The pragmas directly before a statement, nearest first."""
    found: list[Node] = []
    at = node.prev_named_sibling
    while at is not None and at.type == "preproc_call" and text_of(at).lstrip().startswith("#pragma"):
        found.append(at)
        at = at.prev_named_sibling
    return found


def start_with_directives(node: Node) -> int:
    """Where a statement starts, the pragmas that belong to it included."""
    before = directives(node)
    return before[-1].start_byte if before else node.start_byte


def substituted_text(text: str, name: str, value: str) -> str:
    """``text`` with every use of the word ``name`` replaced by ``value``, in parentheses unless it is one operand."""
    operand = re.fullmatch(r"[\w.]+(\[[^\[\]]*\])?", value) is not None
    return re.sub(rf"\b{name}\b", lambda _: value if operand else f"({value})", text)

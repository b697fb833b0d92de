"""How simple a tree's code is, counted from its syntax and never asked for.

C++ and CUDA by tree-sitter, Python by the standard tokenizer and parser; every other file counts nothing.
"""

import ast
import io
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

import tree_sitter_cpp
import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

from protocol.simplicity import MEASURES

Count = tuple[int, int, int]
"""Tokens, branches, knobs of one file or node."""

_GRAMMARS = {
    **dict.fromkeys((".cpp", ".cc", ".cxx", ".h", ".hpp", ".c"), tree_sitter_cpp),
    **dict.fromkeys((".cu", ".cuh"), tree_sitter_cuda),
}
_BRANCHES = {
    "if_statement",
    "for_statement",
    "for_range_loop",
    "while_statement",
    "do_statement",
    "case_statement",
    "conditional_expression",
}
_DEFINES = {"preproc_def", "preproc_function_def"}
_INTEGERS = {"int", "unsigned", "signed", "long", "short", "char", "bool", "size_t", "auto"}
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def simplicity(files: Mapping[str, str]) -> dict[str, int]:
    """Tokens, branches and knobs over all files (path -> text). Comments and whitespace are not counted.

    Branches are if, for, while, switch cases, ``?:``, ``&&`` and ``||``. Knobs are ``#define`` of a value and constexpr
    integers; in Python, upper-case integers and ``tl.constexpr`` parameters. Unparsable Python counts words only.
    """
    counts = [_count(path, text) for path, text in files.items()]
    return {measure: sum(count[index] for count in counts) for index, measure in enumerate(MEASURES)}


def compared(base: Mapping[str, str], candidate: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """``Measurement.simplicity`` of two trees: measure -> (base, candidate)."""
    before, after = simplicity(base), simplicity(candidate)
    return {measure: (before[measure], after[measure]) for measure in MEASURES}


def _count(path: str, text: str) -> Count:
    suffix = PurePosixPath(path).suffix
    if suffix == ".py":
        return _count_python(text)
    if suffix in _GRAMMARS:
        return _count_c(text.encode(), suffix)
    return 0, 0, 0


# ---------------------------------------------------------------- C++ and CUDA


def _count_c(source: bytes, suffix: str) -> Count:
    parser = Parser(Language(_GRAMMARS[suffix].language()))
    nodes = list(_walk(parser.parse(source).root_node))
    return (
        sum(_tokens_at(node) for node in nodes),
        sum(_is_branch(node) for node in nodes),
        sum(_knobs_at(node) for node in nodes),
    )


def _walk(root: Node) -> Iterator[Node]:
    """Every node but comments, and nothing inside a literal, which is one token however it is quoted."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type != "comment":
            yield node
            if not _is_literal(node):
                waiting.extend(node.children)


def _is_literal(node: Node) -> bool:
    return node.type in ("string_literal", "raw_string_literal", "char_literal", "system_lib_string")


def _tokens_at(node: Node) -> int:
    """Tokens that this node holds itself. The text of a macro is one opaque node: it counts by its words and signs."""
    if node.type == "preproc_arg":
        return _macro_tokens(node.text or b"")
    return 1 if (node.child_count == 0 or _is_literal(node)) and node.text and node.text.strip() else 0


def _macro_tokens(text: bytes) -> int:
    parser = Parser(Language(tree_sitter_cpp.language()))
    return sum(_tokens_at(node) for node in _walk(parser.parse(text).root_node) if node.type != "preproc_arg")


def _is_branch(node: Node) -> bool:
    if node.type == "case_statement":
        return node.children[0].type == "case"
    if node.type == "binary_expression":
        operator = node.child_by_field_name("operator")
        return operator is not None and operator.type in ("&&", "||")
    return node.type in _BRANCHES


def _knobs_at(node: Node) -> int:
    if node.type in _DEFINES:
        return node.child_by_field_name("value") is not None
    if node.type in ("declaration", "field_declaration") and _is_constexpr(node) and _is_integer(node):
        return max(1, sum(child.type == "init_declarator" for child in node.children))
    return 0


def _is_constexpr(node: Node) -> bool:
    return any(child.type == "type_qualifier" and child.text == b"constexpr" for child in node.children)


def _is_integer(node: Node) -> bool:
    kind = node.child_by_field_name("type")
    words = (kind.text or b"").decode().split() if kind else []
    return any(word in _INTEGERS or word.removeprefix("std::").startswith(("int", "uint", "size_t")) for word in words)


# ---------------------------------------------------------------- Python


def _count_python(text: str) -> Count:
    try:
        tree = ast.parse(text)
        found = tokenize.generate_tokens(io.StringIO(text).readline)
        tokens = sum(token.type not in _LAYOUT for token in found)
    except (SyntaxError, tokenize.TokenError, ValueError):
        return len(text.split()), 0, 0
    nodes = list(ast.walk(tree))
    return tokens - _docstring_tokens(nodes), sum(map(_python_branches, nodes)), sum(map(_python_knobs, nodes))


def _docstring_tokens(nodes: list[ast.AST]) -> int:
    """A string that stands alone is a comment."""
    return sum(
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for node in nodes
    )


def _python_branches(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    return isinstance(node, ast.If | ast.For | ast.While | ast.IfExp | ast.match_case)


def _python_knobs(node: ast.AST) -> int:
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, int):
        return sum(isinstance(target, ast.Name) and target.id.isupper() for target in node.targets)
    return isinstance(node, ast.arg) and node.annotation is not None and "constexpr" in ast.unparse(node.annotation)

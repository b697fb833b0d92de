"""Copies of exhibits that only look different: every name of their own renamed, independent code reordered.

Names that the text declares get new ones, all but ``solve``; top-level definitions and runs of local declarations that
do not depend on each other change places; comparisons are turned round; constants, blanks and comments are spelled
differently. What the code does stays the same.
"""

import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Literal

import tree_sitter
import tree_sitter_cpp
import tree_sitter_cuda

Language = Literal["cpp", "cuda"]
_KEPT = frozenset({"solve"})
_NAMES = ("identifier", "field_identifier", "type_identifier", "namespace_identifier")
_TYPES = {"struct_specifier": "body", "class_specifier": "body", "alias_declaration": "type"}
_HOLDERS = ("reference_declarator", "structured_binding_declarator")
_MOVING = ("call_expression", "update_expression")
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
_SPOKEN = ("ka", "lo", "mi", "nu", "pe", "ra", "so", "ti", "vu", "ze")


def disguised(text: str, language: Language, seed: int = 1) -> str:
    """A copy of ``text`` that does the same under other names and in another order."""
    dice = random.Random(seed)
    for change in (_renamed, _turned, _reordered, _respelled):
        text = change(text, language, dice)
    return text


@cache
def _parser(language: Language) -> tree_sitter.Parser:
    grammar = tree_sitter_cuda if language == "cuda" else tree_sitter_cpp
    return tree_sitter.Parser(tree_sitter.Language(grammar.language()))


def _tree(text: str, language: Language) -> tree_sitter.Node:
    return _parser(language).parse(text.encode()).root_node


def _said(node: tree_sitter.Node) -> str:
    return (node.text or b"").decode()


def _every(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    yield node
    for child in node.children:
        yield from _every(child)


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    """``text`` with byte spans replaced."""
    data = text.encode()
    for start, end, new in sorted(edits, reverse=True):
        data = data[:start] + new.encode() + data[end:]
    return data.decode()


def _declared(root: tree_sitter.Node) -> tuple[set[str], set[str]]:
    """Names of functions, variables and types that the text declares, and names of members."""
    names: set[str] = set()
    members: set[str] = set()
    for node in _every(root):
        named = node.child_by_field_name("name")
        if node.type in _TYPES and named is not None and node.child_by_field_name(_TYPES[node.type]) is not None:
            names.add(_said(named))
        for number, child in enumerate(node.children):
            if node.field_name_for_child(number) == "declarator" or node.type in _HOLDERS:
                (members if child.type == "field_identifier" else names).update(_own(child))
    return names - _KEPT, members - _KEPT


def _own(node: tree_sitter.Node) -> set[str]:
    return {_said(node)} if node.type in ("identifier", "field_identifier") else set()


def _renamed(text: str, language: Language, dice: random.Random) -> str:
    root = _tree(text, language)
    names, members = _declared(root)
    macros = {
        _said(named)
        for node in _every(root)
        if node.type in ("preproc_def", "preproc_function_def") and (named := node.child_by_field_name("name"))
    }
    new: dict[str, str] = {}
    for name in sorted(names | members | macros):
        new[name] = "".join(dice.choice(_SPOKEN) for _ in range(4)) + str(len(new))
    edits: list[tuple[int, int, str]] = []
    for node in _every(root):
        own = members if node.type == "field_identifier" else names | macros
        if node.type in _NAMES and _said(node) in own:
            edits.append((node.start_byte, node.end_byte, new[_said(node)]))
        elif node.type == "preproc_arg":  # a pragma's clauses, or a macro's body
            said = re.sub(r"[A-Za-z_]\w*", lambda word: new.get(word.group(), word.group()), _said(node))
            edits.append((node.start_byte, node.end_byte, said))
    return _edited(text, edits)


def _turned(text: str, language: Language, dice: random.Random) -> str:
    """Comparisons without side effects, turned round."""
    edits: list[tuple[int, int, str]] = []
    until = -1
    for node in _every(_tree(text, language)):
        left, sign, right = (node.child_by_field_name(field) for field in ("left", "operator", "right"))
        if node.type != "binary_expression" or left is None or sign is None or right is None:
            continue
        plain = {"identifier", "number_literal", "field_expression", "subscript_expression"}
        if _said(sign) in _TURNED and left.type in plain and right.type in plain and node.start_byte >= until:
            edits.append((node.start_byte, node.end_byte, f"{_said(right)} {_TURNED[_said(sign)]} {_said(left)}"))
            until = node.end_byte
    return _edited(text, edits)


def _words(node: tree_sitter.Node) -> set[str]:
    return {_said(one) for one in _every(node) if one.type in _NAMES}


def _shuffled(nodes: list[tree_sitter.Node], dice: random.Random) -> list[tree_sitter.Node]:
    """Another order in which whatever shares a name with something keeps its place relative to it."""
    left = list(nodes)
    order: list[tree_sitter.Node] = []
    while left:
        free = [one for at, one in enumerate(left) if not any(_bound(before, one) for before in left[:at])]
        order.append(dice.choice(free[1:]) if len(free) > 1 and not order else dice.choice(free))
        left.remove(order[-1])
    return order


def _bound(first: tree_sitter.Node, second: tree_sitter.Node) -> bool:
    """Whether two pieces of code may not change places."""
    ours = _words(first) & _words(second) & (_names_made(first) | _names_made(second))
    both_call = all(any(one.type in _MOVING for one in _every(node)) for node in (first, second))
    local = first.type == "declaration" and first.parent is not None and first.parent.type == "compound_statement"
    return bool(ours) or (local and both_call)


def _names_made(node: tree_sitter.Node) -> set[str]:
    """What a definition or declaration gives a name to; of a function, its own name alone."""
    if node.type in ("function_definition", "linkage_specification"):
        for one in _every(node):
            if one.type == "function_declarator":
                named = one.child_by_field_name("declarator")
                return set() if named is None else {_said(named)}
    names, members = _declared(node)
    return names | members


def _reordered(text: str, language: Language, dice: random.Random) -> str:
    for kind in ("translation_unit", "compound_statement"):
        edits: list[tuple[int, int, str]] = []
        until = -1
        for block in _every(_tree(text, language)):
            if block.type != kind or block.start_byte < until:
                continue
            for run in _runs(block):
                if run[0].start_byte < until:
                    continue
                for old, new in zip(run, _shuffled(run, dice), strict=True):
                    edits.append((old.start_byte, old.end_byte, _said(new)))
                until = run[-1].end_byte
        text = _edited(text, edits)
    return text


def _runs(block: tree_sitter.Node) -> list[list[tree_sitter.Node]]:
    """Neighbouring definitions of a file, or neighbouring declarations of a block, that may be shuffled."""
    movable = (
        ("function_definition", "linkage_specification", "declaration", "template_declaration", "alias_declaration")
        if block.type == "translation_unit"
        else ("declaration",)
    )
    runs: list[list[tree_sitter.Node]] = [[]]
    for child in block.children:
        if child.type in movable:
            runs[-1].append(child)
        elif child.type != "comment":
            runs.append([])
    return [run for run in runs if len(run) > 1]


def _respelled(text: str, language: Language, dice: random.Random) -> str:
    """Numbers in hexadecimal, comments gone, other blanks."""
    edits: list[tuple[int, int, str]] = []
    for node in _every(_tree(text, language)):
        if node.type == "comment":
            edits.append((node.start_byte, node.end_byte, ""))
        elif node.type == "number_literal":
            edits.append((node.start_byte, node.end_byte, _number(_said(node))))
    text = _edited(text, edits)
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(re.sub(r"^ +", lambda blank: "\t" * (len(blank.group()) // 2), line) for line in lines) + "\n"


def _number(text: str) -> str:
    if text.isdigit() and (text == "0" or text[0] != "0"):
        return hex(int(text))
    plain = re.fullmatch(r"(\d+\.\d*)([fF]?)", text)
    return text if plain is None else float(plain.group(1)).hex() + plain.group(2)

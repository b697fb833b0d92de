"""The arithmetic type of an expression, as far as declarations and literals tell it."""

from typing import Literal

from tree_sitter import Node

from roles.techniques.cpp.effects import math_name
from roles.techniques.cpp.scopes import declaration_of
from roles.techniques.cpp.syntax import bare, field, text_of

ValueType = Literal["int", "float", "double", "unknown"]
_RANK: dict[ValueType, int] = {"int": 0, "float": 1, "double": 2, "unknown": 3}


def _widest(*types: ValueType) -> ValueType:
    widest: ValueType = "int" if types else "unknown"
    for each in types:
        widest = each if _RANK[each] > _RANK[widest] else widest
    return widest


def value_type(node: Node) -> ValueType:
    """Type of an expression after the usual conversions; 'unknown' when any part is."""
    node = bare(node)
    match node.type:
        case "number_literal":
            return _literal(text_of(node))
        case "identifier":
            return _named(text_of(node), node, element=False)
        case "subscript_expression":
            array = bare(field(node, "argument"))
            return _named(text_of(array), node, element=True) if array.type == "identifier" else "unknown"
        case "binary_expression":
            return _widest(value_type(field(node, "left")), value_type(field(node, "right")))
        case "unary_expression":
            return value_type(field(node, "argument"))
        case "conditional_expression":
            return _widest(value_type(field(node, "consequence")), value_type(field(node, "alternative")))
        case "call_expression":
            return _called(node)
        case "cast_expression":
            return _spelled(text_of(field(node, "type")))
    return "unknown"


def _literal(text: str) -> ValueType:
    if text[-1] in "fF" and not text.lower().startswith("0x"):
        return "float"
    return "double" if "." in text or ("e" in text.lower() and not text.lower().startswith("0x")) else "int"


def _spelled(text: str) -> ValueType:
    known: dict[str, ValueType] = {"float": "float", "double": "double", "int": "int", "long": "int", "size_t": "int"}
    return known.get(text, "unknown")


def _named(name: str, use: Node, element: bool) -> ValueType:
    declared = declaration_of(name, use)
    if declared is None or (declared.pointer or declared.array) != element:
        return "unknown"
    return "int" if declared.integer else _spelled(declared.type)


def _called(node: Node) -> ValueType:
    name = math_name(node)
    written = text_of(field(node, "function"))
    arguments: list[ValueType] = [value_type(each) for each in field(node, "arguments").named_children]
    if (name.endswith("f") and name not in ("erf",)) or name.startswith("vector_exp"):
        return "float"
    if written in ("float", "double", "int"):
        return _spelled(written)
    if written.startswith("static_cast<"):
        return _spelled(written.removeprefix("static_cast<").removesuffix(">"))
    wide = _widest(*arguments)
    return wide if written.startswith("std::") and wide == "float" else "unknown"

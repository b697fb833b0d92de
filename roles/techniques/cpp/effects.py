"""What a piece of code may do besides computing: only code made of known, pure parts may be moved or repeated."""

from functools import lru_cache

from tree_sitter import Node

from roles.techniques.cpp.scopes import declaration_of, function_name, parameters_of, written_names
from roles.techniques.cpp.syntax import bare, field, identifiers, of_type, text_of

_MATH = frozenset(
    [
        "exp",
        "expf",
        "exp2",
        "exp2f",
        "log",
        "logf",
        "log2",
        "log2f",
        "sqrt",
        "sqrtf",
        "cbrt",
        "cbrtf",
        "sin",
        "sinf",
        "cos",
        "cosf",
        "tanh",
        "tanhf",
        "erf",
        "erff",
        "pow",
        "powf",
        "abs",
        "fabs",
        "fabsf",
        "fma",
        "fmaf",
        "max",
        "min",
        "fmax",
        "fmaxf",
        "fmin",
        "fminf",
        "rint",
        "rintf",
        "floor",
        "floorf",
        "ceil",
        "ceilf",
        "round",
        "roundf",
        "rsqrt",
        "rsqrtf",
        "expm1f",
        "log1pf",
        "tanf",
        "sinhf",
        "coshf",
        "__expf",
        "__logf",
        "__fdividef",
    ]
)
_CASTS = ("static_cast", "float", "double", "int")
_FORBIDDEN = frozenset(
    [
        "goto_statement",
        "break_statement",
        "continue_statement",
        "return_statement",
        "labeled_statement",
        "switch_statement",
        "while_statement",
        "do_statement",
        "lambda_expression",
        "new_expression",
        "delete_expression",
        "throw_statement",
        "try_statement",
        "gnu_asm_expression",
        "comma_expression",
        "for_range_loop",
        "co_await_expression",
        "co_return_statement",
    ]
)


def math_name(call: Node) -> str:
    """Name of the called function without ``std::``, ``::`` and template arguments."""
    name = text_of(field(call, "function"))
    return name.removeprefix("::").removeprefix("std::").split("<")[0].strip()


def pure_call(call: Node) -> bool:
    """True for a mathematical function of the library or a small pure function of this file."""
    name = math_name(call)
    return name in _MATH or name in _CASTS or name in pure_functions(_root(call))


@lru_cache(maxsize=64)
def pure_functions(root: Node) -> set[str]:
    """Functions of the file that take values, touch only their own variables and call nothing unknown."""
    return {function_name(each) for each in of_type(root, "function_definition") if _is_pure(each)}


def _is_pure(function: Node) -> bool:
    parameters = parameters_of(function)
    if not parameters or any(each.pointer or each.array for each in parameters):
        return False
    body = field(function, "body")
    own = {each.name for each in parameters} | {
        text_of(name) for one in of_type(body, "declaration") for name in of_type(one, "identifier")
    }
    around = function.parent
    if around is not None and around.type == "template_declaration":
        own |= identifiers(field(around, "parameters"))
    calls = [math_name(call) for call in of_type(body, "call_expression")]
    known = all(name in _MATH or name in ("memcpy", *_CASTS) for name in calls)
    static = any(of_type(body, "storage_class_specifier", "subscript_expression", "for_statement"))
    return known and not static and identifiers(body) - own <= set(calls) | {"HUGE_VALF", "INFINITY"}


def _root(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node


def plain(*nodes: Node) -> bool:
    """True when the code has no jumps, no unknown calls, no volatile, no raw pointers and no hidden memory access."""
    return all(_plain(each) for node in nodes for each in of_type(node, *_SUSPECT))


_SUSPECT = (*sorted(_FORBIDDEN), "call_expression", "pointer_expression", "field_expression", "type_qualifier")


def _plain(node: Node) -> bool:
    if node.type == "call_expression":
        return pure_call(node)
    if node.type == "pointer_expression":
        return text_of(node.children[0]) == "&" and bare(field(node, "argument")).type == "subscript_expression"
    if node.type == "type_qualifier":
        return text_of(node) != "volatile"
    return False


def pure_expression(node: Node) -> bool:
    """True when evaluating the expression changes nothing."""
    changes = any(of_type(node, "assignment_expression", "update_expression"))
    return plain(node) and not changes


def volatile_free(node: Node) -> bool:
    """True when no name under ``node`` is declared volatile."""
    for name in identifiers(node):
        declared = declaration_of(name, node)
        if declared is not None and "volatile" in text_of(declared.node).split("=")[0]:
            return False
    return True


def invariant(node: Node, region: Node) -> bool:
    """True when the expression reads nothing that ``region`` changes; array reads never count as invariant."""
    reads_memory = any(of_type(node, "subscript_expression", "pointer_expression", "field_expression"))
    return not reads_memory and not (identifiers(node) & written_names(region))

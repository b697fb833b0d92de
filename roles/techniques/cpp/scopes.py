"""What a name means where it is used: its declaration, its type, and its value when it never changes."""

from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from roles.techniques.cpp.syntax import field, identifiers, of_type, text_of

_WIDTHS = ("int32_t", "int64_t", "uint32_t", "uint64_t", "size_t", "ptrdiff_t")
INTEGER_TYPES = frozenset(
    ("int", "long", "unsigned", "unsigned int", "long long", *_WIDTHS, *(f"std::{width}" for width in _WIDTHS))
)
_WRITERS = {"assignment_expression": "left", "update_expression": "argument"}


@dataclass(frozen=True)
class Declaration:
    """One declared name. ``type`` has no qualifiers; ``pointer`` and ``array`` say what the declarator adds."""

    name: str
    type: str
    node: Node
    value: Node | None
    pointer: bool
    array: bool
    constant: bool
    restrict: bool
    parameter: bool

    @property
    def integer(self) -> bool:
        """True for a plain integer variable."""
        return self.type in INTEGER_TYPES and not self.pointer and not self.array

    @property
    def real(self) -> bool:
        """True for a plain float or double variable."""
        return self.type in ("float", "double") and not self.pointer and not self.array


def _declarators(node: Node) -> list[Node]:
    return node.children_by_field_name("declarator")


def declarations(node: Node) -> list[Declaration]:
    """The names that one ``declaration`` or ``parameter_declaration`` introduces."""
    if node.type not in ("declaration", "parameter_declaration"):
        return []
    return [each for each in (_declaration(node, one) for one in _declarators(node)) if each is not None]


def _declaration(node: Node, declarator: Node) -> Declaration | None:
    value, pointer, array = None, False, False
    qualifiers = [text_of(child) for child in node.children if child.type == "type_qualifier"]
    if declarator.type == "init_declarator":
        value, declarator = field(declarator, "value"), field(declarator, "declarator")
    restrict = False
    while declarator.type in ("pointer_declarator", "array_declarator"):
        pointer = pointer or declarator.type == "pointer_declarator"
        array = array or declarator.type == "array_declarator"
        restrict = restrict or any("restrict" in text_of(child) for child in declarator.children if child.is_named)
        declarator = field(declarator, "declarator")
    if declarator.type != "identifier":
        return None
    constant = any(word in ("const", "constexpr") for word in qualifiers)
    type_text = " ".join(text_of(field(node, "type")).split())
    parameter = node.type == "parameter_declaration"
    return Declaration(text_of(declarator), type_text, node, value, pointer, array, constant, restrict, parameter)


def function_of(node: Node) -> Node | None:
    """The function definition around ``node``."""
    at: Node | None = node
    while at is not None and at.type != "function_definition":
        at = at.parent
    return at


def function_name(function: Node) -> str:
    """Name of a function definition, empty when it has none of its own."""
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "identifier":
        declarator = declarator.child_by_field_name("declarator")
    return text_of(declarator) if declarator is not None else ""


def parameters_of(function: Node) -> list[Declaration]:
    """Declared parameters of a function, in order."""
    lists = list(of_type(field(function, "declarator"), "parameter_list"))
    return [each for child in lists[:1] for one in child.named_children for each in declarations(one)]


def declaration_of(name: str, use: Node) -> Declaration | None:
    """The declaration that ``name`` refers to at ``use``: innermost scope first, then parameters, then the file."""
    at = use
    while at.parent is not None:
        scope = at.parent
        for candidate in _visible(scope, at):
            for each in declarations(candidate):
                if each.name == name:
                    return each
        if scope.type == "function_definition":
            for each in parameters_of(scope):
                if each.name == name:
                    return each
        at = scope
    return None


def _visible(scope: Node, before: Node) -> list[Node]:
    if scope.type == "for_statement":
        initializer = scope.child_by_field_name("initializer")
        return [initializer] if initializer is not None and initializer.id != before.id else []
    if scope.type not in ("compound_statement", "translation_unit", "declaration_list"):
        return []
    earlier = [child for child in scope.named_children if child.end_byte <= before.start_byte]
    return list(reversed([child for child in earlier if child.type == "declaration"]))


def written_names(node: Node) -> set[str]:
    """Names that code under ``node`` changes: assigned, incremented, declared, or whose address is taken."""
    names = {each.name for one in of_type(node, "declaration") for each in declarations(one)}
    for each in of_type(node, *_WRITERS):
        names.add(text_of(field(each, _WRITERS[each.type])))
    for each in of_type(node, "pointer_expression"):
        if each.children and text_of(each.children[0]) == "&":
            names.add(text_of(field(each, "argument")))
    return names


def assignments_to(declaration: Declaration) -> list[Node]:
    """Everything that changes the variable after its declaration, taking its address included."""
    function = function_of(declaration.node)
    return _changes(function).get(declaration.name, []) if function is not None else []


@lru_cache(maxsize=256)
def _changes(function: Node) -> dict[str, list[Node]]:
    """For each target text in a function, what assigns to it, increments it or takes its address."""
    found: dict[str, list[Node]] = {}
    for each in of_type(function, *_WRITERS, "pointer_expression"):
        if each.type == "pointer_expression" and text_of(each.children[0]) != "&":
            continue
        target = field(each, _WRITERS.get(each.type, "argument"))
        found.setdefault(text_of(target), []).append(each)
    return found


def reassigned(declaration: Declaration) -> bool:
    """True when the variable is changed after its declaration, or its address is taken."""
    if function_of(declaration.node) is None:
        return not declaration.constant
    return bool(assignments_to(declaration))


def fixed_value(name: str, use: Node) -> Node | None:
    """The initialiser of a local that never changes after it; None for anything else."""
    declaration = declaration_of(name, use)
    if declaration is None or declaration.value is None or declaration.array:
        return None
    inside_for = declaration.node.parent is not None and declaration.node.parent.type == "for_statement"
    if inside_for or reassigned(declaration):
        return None
    return declaration.value if all(_steady(each, declaration) for each in identifiers(declaration.value)) else None


def _steady(name: str, user: Declaration) -> bool:
    """True when an operand of an initialiser keeps its value as long as the variable lives."""
    declared = declaration_of(name, user.node)
    if declared is None:
        return True
    changes = assignments_to(declared) if declared.node.id != user.node.id else []
    loop = declared.node.parent
    counts = loop is not None and loop.type == "for_statement"
    return all(counts and each.parent is not None and each.parent.type == "for_statement" for each in changes)

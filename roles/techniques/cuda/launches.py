"""Kernels and their launches: which function is launched where, with which grid, block and arguments."""

from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from roles.techniques.cpp.scopes import Declaration, declarations, function_name, function_of, parameters_of
from roles.techniques.cpp.syntax import Edit, Source, field, indented, of_type, parse, statements, text_of


@dataclass(frozen=True)
class Launch:
    """One ``kernel<<<grid, block>>>(arguments);`` statement."""

    node: Node
    statement: Node
    configuration: tuple[Node, ...]
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Kernel:
    """A ``__global__`` function that is launched once, from ``solve``, without templates."""

    node: Node
    name: str
    parameters: tuple[Declaration, ...]
    launch: Launch

    @property
    def body(self) -> Node:
        """The compound statement of the kernel."""
        return field(self.node, "body")

    @property
    def parameter_text(self) -> str:
        """The parameter list as it is written, in parentheses."""
        return text_of(next(of_type(field(self.node, "declarator"), "parameter_list")))

    @property
    def argument_text(self) -> str:
        """The launch's arguments as they are written, without parentheses."""
        return ", ".join(text_of(each) for each in self.launch.arguments)

    def argument_of(self, parameter: str) -> str:
        """What the host passes for a parameter; an expression gets parentheses, to be a part of a larger one."""
        names = [each.name for each in self.parameters]
        found = self.launch.arguments[names.index(parameter)]
        whole = found.type in ("identifier", "number_literal", "parenthesized_expression", "call_expression")
        return text_of(found) if whole else f"({text_of(found)})"

    def is_parameter(self, name: str) -> bool:
        """True for the name of a parameter."""
        return any(each.name == name for each in self.parameters)


def _root(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node


def _is_kernel(function: Node) -> bool:
    template = function.parent is not None and function.parent.type == "template_declaration"
    return not template and text_of(function).split("(")[0].find("__global__") >= 0


@lru_cache(maxsize=32)
def _launches(root: Node) -> dict[str, list[Launch]]:
    found: dict[str, list[Launch]] = {}
    for call in of_type(root, "call_expression"):
        configuration = [child for child in call.children if child.type == "kernel_call_syntax"]
        statement = call.parent
        if configuration and statement is not None and statement.type == "expression_statement":
            launch = Launch(
                call,
                statement,
                tuple(configuration[0].named_children),
                tuple(field(call, "arguments").named_children),
            )
            found.setdefault(text_of(field(call, "function")), []).append(launch)
    return found


def kernels_in(root: Node) -> list[Kernel]:
    """The kernels of a file, in order, that are launched exactly once and from ``solve`` itself."""
    found: list[Kernel] = []
    for function in of_type(root, "function_definition"):
        name = function_name(function)
        launches = _launches(root).get(name, [])
        host = function_of(launches[0].node) if len(launches) == 1 else None
        if _is_kernel(function) and host is not None and function_name(host) == "solve":
            parameters = tuple(parameters_of(function))
            if len(parameters) == len(launches[0].arguments):
                found.append(Kernel(function, name, parameters, launches[0]))
    return found


def kernel_of(function: Node) -> Kernel | None:
    """The kernel that a function is, or None."""
    return next((each for each in kernels_in(_root(function)) if each.node.id == function.id), None)


@lru_cache(maxsize=64)
def lent(function: Node) -> bool:
    """True for a kernel whose pointers are different pointer parameters of ``solve``: the judge lends them apart."""
    kernel = kernel_of(function)
    host = function_of(kernel.launch.node) if kernel is not None else None
    if kernel is None or host is None:
        return False
    buffers = {each.name for each in parameters_of(host) if each.pointer}
    passed = [text_of(a) for a, p in zip(kernel.launch.arguments, kernel.parameters, strict=True) if p.pointer]
    return len(set(passed)) == len(passed) and set(passed) <= buffers


def _outermost(node: Node) -> list[Node]:
    """Function definitions that stand at the top of a file, ``extern "C"`` ones included."""
    found: list[Node] = []
    for child in node.named_children:
        if child.type == "function_definition":
            found.append(child)
        elif child.type in ("linkage_specification", "declaration_list"):
            found += _outermost(child)
    return found


def rewritten(source: Source, kernel: Kernel, lines: list[str], host: list[str]) -> str:
    """The text with the kernel replaced by ``lines`` and its launch by ``host``, without what ``solve`` then lacks use
    for. The kernel goes in last, so that nothing long is parsed."""
    launch = kernel.launch.statement
    called = "\n".join([host[0], *indented(host[1:], source.indent_of(launch))])
    text = without_leftovers(source.replace(Edit(launch.start_byte, launch.end_byte, called)))
    source = parse(text, "cuda")
    node = next(each for each in _outermost(source.root) if function_name(each) == kernel.name)
    return source.replace(Edit(node.start_byte, node.end_byte, "\n".join(lines)))


@lru_cache(maxsize=64)
def without_leftovers(text: str) -> str:
    """The text without the integers and ``dim3`` of ``solve`` that a rewritten launch no longer uses."""
    source = parse(text, "cuda")
    hosts = [each for each in _outermost(source.root) if function_name(each) == "solve"]
    for statement in (each for host in hosts for each in statements(field(host, "body"))):
        found = declarations(statement)
        counted = found and all(each.integer or each.type == "dim3" for each in found)
        words = [text_of(each) for host in hosts for each in of_type(host, "identifier")]
        if counted and all(words.count(each.name) == 1 for each in found):
            start = source.data.rfind(b"\n", 0, statement.start_byte) + 1
            end = statement.end_byte + (source.data[statement.end_byte : statement.end_byte + 1] == b"\n")
            return without_leftovers(source.replace(Edit(start, end, "")))
    return text

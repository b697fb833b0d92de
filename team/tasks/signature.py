"""The one parser of C signatures: finds the definition of ``extern "C" void solve(...)`` in C++ or CUDA source.

Trusted: this reads text only and never runs it. The source itself may be a candidate's, so every shape of it must end
in a ``Signature`` or a ``SignatureError``. The syntax tree says where the definition and its parameters are (comments,
prototypes and ``#if 0`` do not count); the words of one parameter are then read left to right.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import tree_sitter
import tree_sitter_cpp
import tree_sitter_cuda

from team.errors import UserError

ENTRY = "solve"
STREAM = "stream"
_QUALIFIERS = frozenset({"const", "volatile", "restrict", "__restrict__", "__restrict", "struct", "std", "::"})
_STREAMS = frozenset({"cudaStream_t", "CUstream", "hipStream_t"})
_NARROW = frozenset({"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"})

# Words of a C type, sorted -> name of the torch dtype with the same bits (LP64: long is 64 bits wide).
_DTYPES: dict[tuple[str, ...], str] = {
    ("float",): "float32",
    ("double",): "float64",
    ("half",): "float16",
    ("__half",): "float16",
    ("_Float16",): "float16",
    ("__bf16",): "bfloat16",
    ("bf16",): "bfloat16",
    ("nv_bfloat16",): "bfloat16",
    ("__nv_bfloat16",): "bfloat16",
    ("__nv_fp8_e4m3",): "float8_e4m3fn",
    ("__nv_fp8_e5m2",): "float8_e5m2",
    ("bool",): "bool",
    ("char",): "int8",
    ("char", "signed"): "int8",
    ("char", "unsigned"): "uint8",
    ("short",): "int16",
    ("int", "short"): "int16",
    ("short", "unsigned"): "uint16",
    ("int", "short", "unsigned"): "uint16",
    ("int",): "int32",
    ("signed",): "int32",
    ("int", "signed"): "int32",
    ("unsigned",): "uint32",
    ("int", "unsigned"): "uint32",
    ("long",): "int64",
    ("int", "long"): "int64",
    ("long", "long"): "int64",
    ("int", "long", "long"): "int64",
    ("long", "unsigned"): "uint64",
    ("int", "long", "unsigned"): "uint64",
    ("long", "long", "unsigned"): "uint64",
    ("int", "long", "long", "unsigned"): "uint64",
    ("size_t",): "uint64",
    ("ssize_t",): "int64",
    ("ptrdiff_t",): "int64",
    ("int8_t",): "int8",
    ("int16_t",): "int16",
    ("int32_t",): "int32",
    ("int64_t",): "int64",
    ("uint8_t",): "uint8",
    ("uint16_t",): "uint16",
    ("uint32_t",): "uint32",
    ("uint64_t",): "uint64",
}


class SignatureError(UserError):
    """The entry point is missing or has a parameter that this contract cannot pass."""


@dataclass(frozen=True)
class Parameter:
    """One parameter. ``dtype`` is a torch dtype's name, or ``stream`` for a trailing ``cudaStream_t``."""

    name: str
    dtype: str
    pointer: bool
    const: bool

    @property
    def is_stream(self) -> bool:
        """True for the stream that the judge passes in."""
        return self.dtype == STREAM

    @property
    def is_integer(self) -> bool:
        """True for a scalar that a workload's ``dims`` must hold."""
        return not self.pointer and (self.dtype.startswith(("int", "uint")) or self.dtype == "bool")

    @property
    def is_real(self) -> bool:
        """True for a scalar that a workload's ``scalars`` must hold."""
        return not self.pointer and self.dtype.startswith("float")


@dataclass(frozen=True)
class Signature:
    """The parameters of ``solve`` in their order."""

    parameters: tuple[Parameter, ...]

    @property
    def pointers(self) -> tuple[Parameter, ...]:
        """The buffers that the judge lends."""
        return tuple(parameter for parameter in self.parameters if parameter.pointer)

    def same_call(self, other: "Signature") -> bool:
        """Whether both can be called alike: same types in the same order, whatever the names; a stream may follow."""
        mine = [(parameter.dtype, parameter.pointer) for parameter in self.without_stream().parameters]
        return mine == [(parameter.dtype, parameter.pointer) for parameter in other.without_stream().parameters]

    def without_stream(self) -> "Signature":
        """The same call without a stream at its end."""
        streamed = bool(self.parameters) and self.parameters[-1].is_stream
        return Signature(self.parameters[:-1]) if streamed else self

    def __str__(self) -> str:
        words = [f"{p.dtype}{'*' if p.pointer else ''} {p.name}" for p in self.parameters]
        return f"{ENTRY}({', '.join(words)})"


def parse_signature(source: str, language: Literal["cpp", "cuda"] = "cpp") -> Signature:
    """The signature of the one definition of ``extern "C" void solve(...)`` in ``source``."""
    root = _parser(language).parse(source.encode()).root_node
    found = {_signature(node) for node in _definitions(root)}
    if not found:
        raise SignatureError(
            f'There is no definition of extern "C" void {ENTRY}(...) in the source.',
            f'Define it, with a body, as: extern "C" void {ENTRY}(const float* x, float* y, int n) {{ ... }}',
        )
    if len(found) > 1:
        raise SignatureError(f"The source defines {ENTRY} more than once, differently.", "Keep one definition.")
    return found.pop()


@cache
def _parser(language: str) -> tree_sitter.Parser:
    grammar = tree_sitter_cuda if language == "cuda" else tree_sitter_cpp
    return tree_sitter.Parser(tree_sitter.Language(grammar.language()))


def _text(node: tree_sitter.Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _definitions(root: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """Function definitions named ``solve`` inside a linkage specification "C", outside ``#if 0``."""
    waiting = [(root, False)]
    while waiting:
        node, in_c = waiting.pop()
        if node.type == "linkage_specification":
            in_c = '"C"' in _text(node.child_by_field_name("value") or node)
        if node.type == "function_definition":
            if in_c and _function_name(node) == ENTRY:
                yield node
            continue
        waiting.extend((child, in_c) for child in _live_children(node))


def _live_children(node: tree_sitter.Node) -> list[tree_sitter.Node]:
    """Children that the compiler sees: of ``#if 0`` only its ``#else`` branch."""
    condition = node.child_by_field_name("condition")
    if node.type == "preproc_if" and condition is not None and _text(condition) == "0":
        alternative = node.child_by_field_name("alternative")
        return [] if alternative is None else [alternative]
    return node.children


def _function_declarator(node: tree_sitter.Node) -> tree_sitter.Node | None:
    """The function declarator of a definition that returns no pointer."""
    inner = node.child_by_field_name("declarator")
    return inner if inner is not None and inner.type == "function_declarator" else None


def _function_name(node: tree_sitter.Node) -> str:
    declarator = _function_declarator(node)
    name = None if declarator is None else declarator.child_by_field_name("declarator")
    return "" if name is None else _text(name)


def _signature(node: tree_sitter.Node) -> Signature:
    """The signature of one definition."""
    declarator = _function_declarator(node)
    listed = None if declarator is None else declarator.child_by_field_name("parameters")
    if listed is None:
        raise SignatureError(f"The parameter list of {ENTRY} does not parse.", "Correct its syntax.")
    returns = node.child_by_field_name("type")
    if returns is None or _text(returns) != "void":
        raise SignatureError(f"{ENTRY} does not return void.", "Write results into an output pointer instead.")
    nodes = [child for child in listed.children if child.type not in ("(", ")", ",", "comment")]
    if [_text(child) for child in nodes] == ["void"]:
        nodes = []
    return _checked(tuple(_parameter(child, number) for number, child in enumerate(nodes, start=1)))


def _checked(parameters: tuple[Parameter, ...]) -> Signature:
    names = [parameter.name for parameter in parameters]
    for name in names:
        if names.count(name) > 1:
            raise SignatureError(f"Two parameters of {ENTRY} are called '{name}'.", "Rename one of them.")
    if not any(parameter.pointer and not parameter.const for parameter in parameters):
        raise SignatureError(f"{ENTRY} has no output: no pointer to non-const data.", "Add one, as in 'float* y'.")
    return Signature(parameters)


def _words(node: tree_sitter.Node) -> list[str]:
    """The words of one parameter, comments left out."""
    if node.type == "comment":
        return []
    if not node.children:
        return [_text(node)]
    return [word for child in node.children for word in _words(child)]


def _parameter(node: tree_sitter.Node, number: int) -> Parameter:
    """One parameter from its words: qualifiers, type words, at most one star, name."""
    words, shown = _words(node), " ".join(_text(node).split())

    def refuse(why: str, remedy: str) -> SignatureError:
        return SignatureError(f"Parameter {number} of {ENTRY}, '{shown}', {why}.", remedy)

    if node.type != "parameter_declaration" or any(word in words for word in ("&", "&&", "[", "(", "<", "=")):
        raise refuse("is neither a plain pointer nor a plain scalar", "Declare it as 'T* name' or 'T name'.")
    stars = words.count("*")
    if stars > 1:
        raise refuse("is a pointer to a pointer", "Pass one flat buffer: 'T* name'.")
    plain = [word for word in words if word not in _QUALIFIERS and word != "*"]
    if len(plain) < 2 or tuple(sorted(plain)) in _DTYPES:
        raise refuse("has no name", "Name it; task.toml refers to parameters by name.")
    *types, name = plain
    if stars == 0 and len(types) == 1 and types[0] in _STREAMS:
        return Parameter(name, STREAM, pointer=False, const=False)
    dtype = _DTYPES.get(tuple(sorted(types)))
    if dtype is None:
        known = "float, double, half, __nv_bfloat16, fp8, bool and the integer types"
        raise refuse(f"has the type '{' '.join(types)}', which is not known", f"Use one of {known}.")
    if not stars and dtype in _NARROW:
        raise refuse("passes a narrow float by value", "Pass it as 'float' and convert it inside.")
    constant = stars > 0 and "const" in words[: words.index("*")]
    return Parameter(name, dtype, pointer=stars > 0, const=constant)

"""Python text as Triton's transforms see it: its tree, where nodes stand in the bytes, and edits at places of it."""

import ast
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

from protocol.messages import Parameter
from roles.techniques.transform import Choices, Site

Found = TypeVar("Found")


def parsed(source: str) -> ast.Module | None:
    """The tree, or None when the text is not Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


class Places:
    """From lines and columns to bytes of the whole text, as Python counts them: bytes of UTF-8."""

    def __init__(self, source: str) -> None:
        self._starts = [0]
        for line in source.encode().splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.expr | ast.stmt | ast.arg) -> tuple[int, int]:
        """First byte of a node, and one past its last."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset


def replaced(source: str, *edits: tuple[ast.expr | ast.stmt | ast.arg, str]) -> str:
    """The text with nodes replaced; none of them lies inside another."""
    places, data = Places(source), source.encode()
    spans = sorted(((*places.span(node), text) for node, text in edits), reverse=True)
    for start, end, text in spans:
        data = data[:start] + text.encode() + data[end:]
    return data.decode()


def called(node: ast.AST) -> str:
    """What a call calls, as it is written; empty for anything else."""
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def kernels_of(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The functions of a file that ``triton.jit`` compiles."""
    for node in tree.body:
        marks = [ast.unparse(each) for each in node.decorator_list] if isinstance(node, ast.FunctionDef) else []
        if isinstance(node, ast.FunctionDef) and marks == ["triton.jit"]:
            yield node


def launches_of(tree: ast.Module, kernel: str) -> list[tuple[ast.FunctionDef, ast.Call]]:
    """Calls ``kernel[grid](...)``, each with the host function around it."""
    hosts = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    calls = [(host, call) for host in hosts for call in ast.walk(host) if isinstance(call, ast.Call)]
    return [(host, call) for host, call in calls if _launches(call, kernel)]


def _launches(call: ast.Call, kernel: str) -> bool:
    target = call.func
    return isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == kernel


class TritonRewrite(ABC, Generic[Found]):
    """An edit: subclasses say where, what each place is called and leaves to choose, and how it reads then."""

    @abstractmethod
    def places(self, source: str) -> Iterator[Found]:
        """Every place where the edit is proven sound."""

    @abstractmethod
    def site(self, source: str, found: Found) -> Site:
        """The site of one place."""

    @abstractmethod
    def rewritten(self, source: str, found: Found, parameters: Mapping[str, Parameter]) -> str:
        """The text with one place rewritten, all parameters given."""

    def applies(self, source: str) -> list[Site]:
        """See ``Transform``."""
        return [self.site(source, each) for each in self.places(source)]

    def apply(self, source: str, site: Site, parameters: Mapping[str, Parameter]) -> str:
        """See ``Transform``."""
        for each in self.places(source):
            if self.site(source, each).key == site.key:
                defaults = {name: values[0] for name, values in site.choices.items()}
                return self.rewritten(source, each, {**defaults, **parameters})
        raise LookupError(f"no site {site.key} in this text")

    def space(self, site: Site) -> Choices:
        """See ``Transform``."""
        return site.choices


def site_at(
    source: str, node: ast.expr | ast.stmt, kernel: str, mark: str, place: str, evidence: str,
    choices: Choices = MappingProxyType({}),
) -> Site:  # fmt: skip
    """The site of a node, known by its kernel, line and text."""
    digest = hashlib.sha256((ast.get_source_segment(source, node) or "").encode()).hexdigest()[:10]
    key = f"{kernel}:{node.lineno}:{mark}:{digest}"
    return Site(key, node.lineno, place, f"line {node.lineno}: {evidence}", None, choices)

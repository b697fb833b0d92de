"""Python text as Triton's transforms see it: its tree, where nodes stand in the bytes, and edits without a choice."""

import ast
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
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

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """First byte of a node, and one past its last."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset


class TritonRewrite(ABC, Generic[Found]):
    """An edit with nothing to choose: subclasses say where, what each place is called, and how it reads then."""

    @abstractmethod
    def places(self, source: str) -> Iterator[Found]:
        """Every place where the edit is proven sound."""

    @abstractmethod
    def site(self, source: str, found: Found) -> Site:
        """The site of one place."""

    @abstractmethod
    def rewritten(self, source: str, found: Found) -> str:
        """The text with one place rewritten."""

    def applies(self, source: str) -> list[Site]:
        """See ``Transform``."""
        return [self.site(source, each) for each in self.places(source)]

    def apply(self, source: str, site: Site, parameters: Mapping[str, Parameter]) -> str:
        """See ``Transform``."""
        for each in self.places(source):
            if self.site(source, each).key == site.key:
                return self.rewritten(source, each)
        raise LookupError(f"no site {site.key} in this text")

    def space(self, site: Site) -> Choices:
        """See ``Transform``."""
        return site.choices


def site_at(source: str, node: ast.stmt, kernel: str, mark: str, place: str, evidence: str) -> Site:
    """The site of a statement, known by its kernel, line and text."""
    digest = hashlib.sha256((ast.get_source_segment(source, node) or "").encode()).hexdigest()[:10]
    key = f"{kernel}:{node.lineno}:{mark}:{digest}"
    return Site(key, node.lineno, place, f"line {node.lineno}: {evidence}")

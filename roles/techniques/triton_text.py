"""Python text as Triton's transforms see it: its tree, and where nodes stand in the bytes."""

import ast


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

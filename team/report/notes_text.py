"""Other people's text made harmless for Markdown."""

from collections.abc import Iterable

from team.report import wording as w


def markdown_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A pipe table; every cell is made harmless."""
    names = list(columns)
    lines = [f"| {' | '.join(names)} |", f"|{'|'.join(' --- ' for _ in names)}|"]
    lines += [f"| {' | '.join(cell(text) for text in row)} |" for row in rows]
    return "\n".join(lines)


def cell(text: str) -> str:
    """Other people's text for Markdown: one line of ASCII that opens no column, code, link or tag."""
    escaped = w.plain(text).replace("\\", "\\\\").replace("](", "]\\(").replace("<", "&lt;")
    return escaped.replace("|", "\\|").replace("`", "\\`")

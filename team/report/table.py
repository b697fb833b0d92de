"""Tables of the page: columns with a class each, and cells that are text, markup or lists of both."""

from collections.abc import Iterable, Sequence

from protocol.messages import Verdict
from team.report.markup import Child, Markup, el

_TAGS = {
    Verdict.KEEP: "good",
    Verdict.KEEP_SIMPLER: "good",
    Verdict.REVERT: "flat",
    Verdict.UNRESOLVED: "flat",
    Verdict.LOST: "odd",
}


def table(columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Child]], empty: str = "Nothing yet.") -> Markup:
    """A table of ``(heading, class)`` columns; a sentence in its place when there is no row."""
    body = [_row(columns, row) for row in rows]
    if not body:
        return el("p", empty, class_="none")
    heads = [el("th", name, class_=look if look == "num" else None, scope="col") for name, look in columns]
    return el("div", el("table", el("thead", el("tr", heads)), el("tbody", body)), class_="table")


def _row(columns: Sequence[tuple[str, str]], row: Sequence[Child]) -> Markup:
    return el("tr", [el("td", cell, class_=look or None) for (_, look), cell in zip(columns, row, strict=True)])


def tag(verdict: Verdict | None) -> Markup:
    """A verdict as a coloured word."""
    if verdict is None:
        return el("span", "running", class_="tag plain")
    return el("span", verdict.value.replace("_", " "), class_=f"tag {_TAGS.get(verdict, 'bad')}")


def small(*children: Child) -> Markup:
    """A second, quieter line of a cell."""
    return el("div", *children, class_="small")


def code(text: str) -> Markup:
    """A commit or another name in monospace."""
    return el("code", text)


def section(title: str, about: Child, *children: Child) -> Markup:
    """A heading, a sentence about what follows, and what follows."""
    return el("section", el("h2", title), el("p", about) if about else None, *children)

"""Building HTML and SVG so that nothing is forgotten: every text is escaped unless it was built here."""

import html
from collections.abc import Iterable
from typing import TypeAlias

from team.report.wording import clean

_VOID = frozenset({"meta", "br", "hr"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"


def el(element: str, *children: Child, **attributes: str | float | None) -> Markup:
    """``<element attributes>children</element>``. ``class_`` stands for ``class``, ``_`` in other names for ``-``.

    An attribute that is None is left out; children may be nested iterables; plain strings are escaped.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if element in _VOID:
        return Markup(f"<{element}{written}>")
    return Markup(f"<{element}{written}>{joined(*children)}</{element}>")


def joined(*children: Child) -> Markup:
    """Children one after the other, escaped where they are plain text."""
    return Markup("".join(_child(child) for child in children))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return html.escape(clean(child), quote=False)
    return "".join(_child(one) for one in child)


def _attribute(key: str, value: str | float) -> str:
    name = key.rstrip("_").replace("_", "-") if key != "viewBox" else key
    text = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f' {name}="{html.escape(clean(text))}"'

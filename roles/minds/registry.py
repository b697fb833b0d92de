"""Minds by name."""

from collections.abc import Callable, Mapping
from typing import Any

from roles.minds.mind import Mind


class UnknownMind(Exception):
    """No mind of that name, or an option that it does not have."""


def _catalog() -> Mind:
    from roles.minds.catalog import CatalogMind

    return CatalogMind()


def _noop() -> Mind:
    from roles.minds.scripted import NoChangeMind

    return NoChangeMind()


_MINDS: dict[str, Callable[[], Mind]] = {"catalog": _catalog, "noop": _noop}


def mind_names() -> tuple[str, ...]:
    """Every known name."""
    return tuple(_MINDS)


def make_mind(name: str, options: Mapping[str, Any] | None = None) -> Mind:
    """The mind of that name; ``UnknownMind`` lists the known ones."""
    if name not in _MINDS:
        raise UnknownMind(f"There is no mind '{name}'. Known minds: {', '.join(_MINDS)}.")
    if options:
        raise UnknownMind(f"The mind '{name}' takes no options, but got: {', '.join(sorted(options))}.")
    return _MINDS[name]()

"""Minds by name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from roles.minds.mind import Mind


class UnknownMind(Exception):
    """No mind of that name, or an option that it does not have."""


def _catalog() -> Mind:
    from roles.minds.catalog import CatalogMind

    return CatalogMind()


def _noop() -> Mind:
    from roles.minds.scripted import NoChangeMind

    return NoChangeMind()


def _scripted(path: str) -> Mind:
    from roles.minds.scripted import ScriptedMind

    try:
        return ScriptedMind.from_file(Path(path))
    except (OSError, ValidationError) as error:
        raise UnknownMind(f"{path} is no script of a mind: {error}") from error


_MINDS: dict[str, Callable[[], Mind]] = {"catalog": _catalog, "noop": _noop}


def mind_names() -> tuple[str, ...]:
    """Every known name."""
    return tuple(_MINDS)


def make_mind(name: str, options: Mapping[str, Any] | None = None) -> Mind:
    """The mind of that name, ``scripted:PATH`` being one on disk; ``UnknownMind`` lists the known ones."""
    kind, _, path = name.partition(":")
    if kind == "scripted" and path:
        return _scripted(path)
    if name not in _MINDS:
        raise UnknownMind(f"There is no mind '{name}'. Known minds: {', '.join(_MINDS)}.")
    if options:
        raise UnknownMind(f"The mind '{name}' takes no options, but got: {', '.join(sorted(options))}.")
    return _MINDS[name]()

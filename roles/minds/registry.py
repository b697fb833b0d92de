"""Minds by name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from roles.minds.mind import Mind, Workshop


class UnknownMind(Exception):
    """No mind of that name, or an option that it does not have."""


Maker = Callable[[Mapping[str, Any], Workshop | None], Mind]


def _catalog(options: Mapping[str, Any], workshop: Workshop | None) -> Mind:
    from roles.minds.catalog import CatalogMind

    _no_options("catalog", options)
    return CatalogMind()


def _noop(options: Mapping[str, Any], workshop: Workshop | None) -> Mind:
    from roles.minds.scripted import NoChangeMind

    _no_options("noop", options)
    return NoChangeMind()


def _scripted(path: str) -> Mind:
    from roles.minds.scripted import ScriptedMind

    try:
        return ScriptedMind.from_file(Path(path))
    except (OSError, ValidationError) as error:
        raise UnknownMind(f"{path} is no script of a mind: {error}") from error


_MINDS: dict[str, Maker] = {"catalog": _catalog, "noop": _noop}


def mind_names() -> tuple[str, ...]:
    """Every known name."""
    return tuple(_MINDS)


def make_mind(name: str, options: Mapping[str, Any], workshop: Workshop | None) -> Mind:
    """The mind of that name, ``scripted:PATH`` being one on disk; ``UnknownMind`` says what is wrong.

    Without a workshop the mind is only looked at, so that a mistake is found before a campaign starts.
    """
    kind, _, path = name.partition(":")
    if kind == "scripted" and path:
        _no_options(kind, options)
        return _scripted(path)
    if name not in _MINDS:
        raise UnknownMind(f"There is no mind '{name}'. Known minds: {', '.join(_MINDS)}.")
    return _MINDS[name](options, workshop)


def _no_options(name: str, options: Mapping[str, Any]) -> None:
    if options:
        raise UnknownMind(f"The mind '{name}' takes no options, but got: {', '.join(sorted(options))}.")

"""Minds by name."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from roles.minds.anthropic.key import NoKey, check_key
from roles.minds.anthropic.options import AnthropicOptions
from roles.minds.anthropic.prices import UnknownPrice
from roles.minds.command import CommandMind, CommandOptions
from roles.minds.mind import Mind, Workshop

Options = TypeVar("Options", bound=BaseModel)
Maker = Callable[[Mapping[str, Any], Workshop], Mind]


class UnknownMind(Exception):
    """No mind of that name, an option that it does not have, or something that it needs and that is not there."""

    def __init__(
        self, what: str, remedy: str = "Name one of them after the role, e.g. --agents explorer:catalog"
    ) -> None:
        super().__init__(what)
        self.remedy = remedy


def _catalog(options: Mapping[str, Any], workshop: Workshop) -> Mind:
    from roles.minds.catalog import CatalogMind

    _no_options("catalog", options)
    return CatalogMind()


def _noop(options: Mapping[str, Any], workshop: Workshop) -> Mind:
    from roles.minds.scripted import NoChangeMind

    _no_options("noop", options)
    return NoChangeMind()


def _command(options: Mapping[str, Any], workshop: Workshop) -> Mind:
    return CommandMind(_command_options(options), workshop)


def _scripted(path: str) -> Mind:
    from roles.minds.scripted import ScriptedMind

    try:
        return ScriptedMind.from_file(Path(path))
    except (OSError, ValidationError) as error:
        raise UnknownMind(f"{path} is no script of a mind: {error}") from error


def _anthropic(options: Mapping[str, Any], workshop: Workshop) -> Mind:
    from roles.minds.anthropic.mind import AnthropicMind

    return AnthropicMind(_anthropic_options(options), workshop)


_MINDS: dict[str, Maker] = {"catalog": _catalog, "noop": _noop, "command": _command, "anthropic": _anthropic}
_FREE = ("catalog", "noop")


def is_free(name: str) -> bool:
    """Whether a mind of this name thinks on this machine alone, so that no call of it costs money."""
    return name in _FREE or name.startswith("scripted:")


def mind_names() -> tuple[str, ...]:
    """Every known name."""
    return tuple(_MINDS)


def make_mind(name: str, options: Mapping[str, Any], workshop: Workshop) -> Mind:
    """The mind of that name, ``scripted:PATH`` being one on disk; ``UnknownMind`` says what is wrong."""
    kind, _, path = name.partition(":")
    if kind == "scripted" and path:
        _no_options(kind, options)
        return _scripted(path)
    if name not in _MINDS:
        raise UnknownMind(f"There is no mind '{name}'. Known minds: {', '.join(_MINDS)}.")
    return _MINDS[name](options, workshop)


def check_mind(name: str, options: Mapping[str, Any]) -> None:
    """Raise ``UnknownMind`` for what would go wrong later on this machine: a name, an option, a missing program."""
    kind, _, path = name.partition(":")
    if kind == "scripted" and path:
        _scripted(path)
    elif name == "command":
        _find(_command_options(options))
    elif name == "anthropic":
        _check_anthropic(_anthropic_options(options))
    elif name in _MINDS:
        _no_options(name, options)
    else:
        raise UnknownMind(f"There is no mind '{name}'. Known minds: {', '.join(_MINDS)}.")


def _anthropic_options(options: Mapping[str, Any]) -> AnthropicOptions:
    return _read(AnthropicOptions, "anthropic", options)


def _check_anthropic(options: AnthropicOptions) -> None:
    try:
        for model in options.models:
            options.price(model)
        if options.replay is None:
            check_key()
        elif not options.replay.is_dir():
            raise UnknownMind(
                f"There is no folder of transcripts '{options.replay}' for the mind 'anthropic'.", "Name one."
            )
    except UnknownPrice as unknown:
        raise UnknownMind(str(unknown), "Then start again.") from None
    except NoKey as missing:
        raise UnknownMind(str(missing), missing.remedy) from None


def _command_options(options: Mapping[str, Any]) -> CommandOptions:
    return _read(CommandOptions, "command", options)


def _read(kind: type[Options], name: str, options: Mapping[str, Any]) -> Options:
    try:
        return kind.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UnknownMind(f"The mind '{name}' has a wrong option: {where}: {first['msg']}.") from None


def _find(options: CommandOptions) -> None:
    if shutil.which(options.words[0]) is None:
        raise UnknownMind(f"There is no program '{options.words[0]}' for the mind 'command'.")
    if missing := [name for name in options.keys if name not in os.environ]:
        raise UnknownMind(f"The mind 'command' is to get the variable {missing[0]}, which is not set.")


def _no_options(name: str, options: Mapping[str, Any]) -> None:
    if options:
        raise UnknownMind(f"The mind '{name}' takes no options, but got: {', '.join(sorted(options))}.")

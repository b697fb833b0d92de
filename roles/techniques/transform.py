"""What a transform is: it finds sites in a source text and rewrites one of them, or refuses by finding none."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.scopes import function_name, function_of
from roles.techniques.cpp.syntax import Grammar, Source, line_of, parse, text_of

Choices = Mapping[str, tuple[Parameter, ...]]
Sound = Callable[[Mapping[str, Parameter]], bool]


def always(setting: Mapping[str, Parameter]) -> bool:
    """Every combination of choices goes together."""
    return True


@dataclass(frozen=True)
class Site:
    """One place where a transform applies.

    ``key`` names the place in this very text, as ``function:line:subject:text``; its last part changes when the
    function around the site does. ``subject`` names the site for people. ``gain`` is the expected log gain here, None
    when the card's figure holds. ``sound`` says which combinations of the choices go together. ``crowded`` sites share
    their texts with other techniques, so that two agents may meet in one from different sides. ``presets`` are good
    guesses for this very place; each names only what it cares about.
    """

    key: str
    line: int
    subject: str
    evidence: str
    gain: float | None = None
    choices: Choices = field(default_factory=dict)
    sound: Sound = field(default=always, compare=False, repr=False)
    crowded: bool = False
    presets: tuple[Mapping[str, Parameter], ...] = ()


@dataclass(frozen=True)
class Match:
    """A site with what the transform needs to rewrite it."""

    node: Node
    subject: str
    evidence: str
    data: Any
    gain: float | None = None
    choices: Choices = field(default_factory=dict)
    sound: Sound = field(default=always, compare=False, repr=False)
    crowded: bool = False
    presets: tuple[Mapping[str, Parameter], ...] = ()


def one_at_a_time(choices: Choices) -> tuple[Mapping[str, Parameter], ...]:
    """Settings that differ from the defaults in one choice, for places whose defaults are good already."""
    return tuple({name: value} for name, values in choices.items() for value in values[1:])


def _digest(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


class Transform(Protocol):
    """A mechanical source edit."""

    def applies(self, source: str) -> list[Site]:
        """The sites at which the edit is proven to keep the kernel's meaning, within the card's numerics."""
        ...

    def apply(self, source: str, site: Site, parameters: Mapping[str, Parameter]) -> str:
        """The text after the edit at one of the sites of this very text."""
        ...

    def space(self, site: Site) -> Choices:
        """Values to try for each parameter; the first of each is the default."""
        ...


class TreeTransform(ABC):
    """A transform on the syntax tree: subclasses say where (``matches``) and how (``rewrite``)."""

    choices: ClassVar[Choices] = MappingProxyType({})
    grammar: ClassVar[Grammar] = "cpp"

    @abstractmethod
    def matches(self, source: Source) -> Iterator[Match]:
        """Every place where the edit is proven sound."""

    @abstractmethod
    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The text with one match rewritten."""

    def applies(self, source: str) -> list[Site]:
        """See ``Transform``; a text that the grammar cannot follow has no sites."""
        tree = parse(source, self.grammar)
        return [] if tree.broken else [self._site(match) for match in self.matches(tree)]

    def apply(self, source: str, site: Site, parameters: Mapping[str, Parameter]) -> str:
        """See ``Transform``; parameters that are left out take their defaults."""
        tree = parse(source, self.grammar)
        for match in self.matches(tree):
            found = self._site(match)
            if found.key == site.key:
                defaults = {name: values[0] for name, values in self.space(found).items()}
                return self.rewrite(tree, match, {**defaults, **parameters})
        raise LookupError(f"no site {site.key} in this text")

    def space(self, site: Site) -> Choices:
        """The site's own choices when it has any, else the transform's."""
        return site.choices or self.choices

    def _site(self, match: Match) -> Site:
        function = function_of(match.node)
        around = text_of(function) if function is not None else text_of(match.node)
        name = function_name(function) if function is not None else "file"
        line = line_of(match.node)
        key = f"{name}:{line}:{_digest(match.subject, 4)}:{_digest(around, 10)}"
        place, shared, presets = (match.subject, match.evidence, match.gain), match.crowded, match.presets
        return Site(key, line, *place, match.choices, match.sound, shared, presets)

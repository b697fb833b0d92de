"""Integer constants that set a tile, a width or a depth: found in the source, changed without touching anything else.

Two forms: a constant with a comment ``// knob: NAME in {8, 16, 32}`` on its line, and a ``constexpr int`` or
``#define`` that is the step of a loop.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from protocol.messages import Parameter
from roles.techniques.cpp.syntax import Edit, Source, of_type, text_of
from roles.techniques.transform import Match, Sound, TreeTransform, always

_CONSTANT = re.compile(
    rb"(?:(?:static\s+)?(?:constexpr|const)\s+(?:int|size_t|long|unsigned)\s+(?P<name>\w+)\s*=\s*(?P<value>\d+)\s*;"
    rb"|^[ \t]*#[ \t]*define[ \t]+(?P<macro>\w+)[ \t]+(?P<number>\d+)\b)"
    rb"(?:[ \t]*//[ \t]*knob:[ \t]*\w+[ \t]+in[ \t]*\{(?P<values>[\d, ]+)\})?",
    re.MULTILINE,
)
_LARGEST = 4096


@dataclass(frozen=True)
class Knob:
    """One constant: where its digits are, what it is now, and what else it may be."""

    name: str
    value: int
    values: tuple[int, ...]
    start: int
    end: int


def knobs_in(source: Source) -> list[Knob]:
    """The tunable constants of a text, in order; a name that is defined twice is left alone."""
    steps = {text_of(each).split("+=")[-1].strip() for each in of_type(source.root, "assignment_expression")}
    found = [_knob(match, steps) for match in _CONSTANT.finditer(source.data) if not _commented(source.data, match)]
    known = [each for each in found if each is not None]
    names = [each.name for each in known]
    return [each for each in known if names.count(each.name) == 1]


def _commented(data: bytes, match: re.Match[bytes]) -> bool:
    return data[data.rfind(b"\n", 0, match.start()) + 1 : match.start()].lstrip().startswith(b"//")


def _knob(match: re.Match[bytes], steps: set[str]) -> Knob | None:
    group = "value" if match["value"] else "number"
    name = (match["name"] or match["macro"]).decode()
    value = int(match[group])
    if match["values"]:
        listed = [int(each) for each in match["values"].decode().split(",") if each.strip()]
    elif name in steps and value >= 2:
        listed = [value // 2, value * 2, value * 4]
    else:
        return None
    values = (value, *(each for each in dict.fromkeys(listed) if each != value and 1 <= each <= _LARGEST))
    return Knob(name, value, values, *match.span(group)) if len(values) > 1 else None


class Knobs(TreeTransform):
    """All knobs of the file as one parameter space."""

    def matches(self, source: Source) -> Iterator[Match]:
        """The file, when it has a knob."""
        found = knobs_in(source)
        if found:
            names = ", ".join(f"{each.name}={each.value}" for each in found)
            choices = {each.name: each.values for each in found}
            sound = self.sound(source)
            yield Match(source.root, "the knobs of the file", f"constants {names}", found, None, choices, sound)

    def sound(self, source: Source) -> Sound:
        """Which settings go together: all of them, as far as constants alone can tell."""
        return always

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """Only digits change."""
        edits = (Edit(each.start, each.end, str(parameters[each.name])) for each in match.data)
        return source.replace(*edits)

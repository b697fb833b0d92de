"""Designs: kernels that the catalog wrote itself, and how it recognises them so that it can write them differently.

A *family* writes one kind of problem (a matrix product, rows, elements, a transposition) in many ways, chosen by named
options. The text that it writes ends with the file as it was before, in comments. A text counts as a design only if
writing that file again, with the options that the text shows, gives the text; nothing in it is taken on trust. So a
design may be changed by writing it anew, and every option of it is proven as often as the first one was.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol

from protocol.messages import Parameter
from roles.techniques.cpp.syntax import Source, parse
from roles.techniques.cuda.launches import Kernel
from roles.techniques.transform import Choices

Setting = dict[str, Parameter]

_KEPT = "// The file as it was written, from which the kernel above is derived:"
_BLOCK = re.compile(
    r"\n// design: (?P<family>\w+) of (?P<kernel>\w+);(?P<options>[^\n]*)\n"
    + re.escape(_KEPT)
    + r"\n(?P<original>(?://\|[^\n]*\n)+)\Z"
)
_WITHOUT_MEANING = re.compile(r"__restrict__|__launch_bounds__\((?:[^()]|\([^()]*\))*\)|#pragma unroll[^\n]*|//[^\n]*")


class Family(Protocol):
    """One kind of problem and the ways to write it. ``options`` lists values, the default first; ``core`` names the
    options that other changes may retune on their way. ``promise`` is the expected log gain over a naive kernel."""

    name: ClassVar[str]
    title: ClassVar[str]
    promise: ClassVar[float]
    options: ClassVar[Choices]
    core: ClassVar[tuple[str, ...]]

    def problems(self, source: Source) -> Iterator[tuple[Kernel, str]]:
        """Kernels that the family can write, as they stand, each with the evidence for a plan."""
        ...

    def write(self, source: Source, kernel: str, setting: Mapping[str, Parameter]) -> str | None:
        """The text with that kernel written anew; None when it is not a problem of this family."""
        ...

    def sound(self, setting: Mapping[str, Parameter]) -> bool:
        """True when the options go together: threads, shared memory and registers within a block's limits."""
        ...


@dataclass(frozen=True)
class Design:
    """A kernel of a text that a family wrote: from which original, and with which options."""

    family: Family
    kernel: str
    original: str
    setting: Setting


def defaults(family: Family) -> Setting:
    """Every option at its default."""
    return {name: values[0] for name, values in family.options.items()}


def written(family: Family, original: str, kernel: str, setting: Mapping[str, Parameter]) -> str | None:
    """The text of a design: the kernel written anew, then the original in comments."""
    text = family.write(parse(original, "cuda"), kernel, setting)
    if text is None:
        return None
    shown = _shown(family, kernel, text)
    words = " ".join(f"{name}={setting[name]}" for name in family.options if name not in shown)
    kept = "".join(f"//| {line}".rstrip() + "\n" for line in original.rstrip("\n").split("\n"))
    return f"{text.rstrip()}\n\n// design: {family.name} of {kernel}; {words}".rstrip() + f"\n{_KEPT}\n{kept}"


def writable(family: Family, text: str) -> list[tuple[str, str, Kernel]]:
    """Kernels of a text that a family can write without taking a name twice: name, evidence, kernel."""
    source = parse(text, "cuda")
    found = ((kernel.name, evidence, kernel) for kernel, evidence in family.problems(source))
    return [each for each in found if not source.names & {f"{each[0]}_{option}" for option in family.options}]


_HINTED = re.compile(r"\b__ld(?:g|cs)\(&(\w+\[[^\[\]]*\])\)")


def as_written(text: str, design: Design | None) -> str:
    """The file from which other designs start: the one a design was derived from, else the text without hints."""
    return design.original if design is not None else _HINTED.sub(r"\1", text)


@lru_cache(maxsize=64)
def design_in(text: str, families: tuple[Family, ...]) -> Design | None:
    """The design that the text ends with, or None when it is not exactly what its family writes."""
    found = _BLOCK.search(text)
    family = next((each for each in families if found is not None and each.name == found["family"]), None)
    if found is None or family is None:
        return None
    original = "".join(line[3:].removeprefix(" ") + "\n" for line in found["original"].splitlines())
    words = dict(word.split("=", 1) for word in found["options"].split() if "=" in word)
    said = {name: _typed(value, family.options[name]) for name, value in words.items() if name in family.options}
    setting = {**said, **_shown(family, found["kernel"], text[: found.start()])}
    if set(setting) != set(family.options) or not family.sound(setting):
        return None
    again = _rewritten(family, original, found["kernel"], tuple(setting.items()))
    same = again is not None and _meaning(again) == _meaning(text)
    return Design(family, found["kernel"], original, setting) if same else None


@lru_cache(maxsize=64)
def _rewritten(family: Family, original: str, kernel: str, setting: tuple[tuple[str, Parameter], ...]) -> str | None:
    return written(family, original, kernel, dict(setting))


def _shown(family: Family, kernel: str, text: str) -> Setting:
    """The options that stand in the text as constants."""
    found = re.findall(rf"^constexpr int {kernel}_(\w+) = (\d+);", text, re.MULTILINE)
    return {name: int(value) for name, value in found if name in family.options}


def _typed(value: str, values: tuple[Parameter, ...]) -> Parameter:
    return int(value) if isinstance(values[0], int) else value.replace(",", " ")


def _meaning(text: str) -> str:
    """The text without annotations, comments and blanks: what remains decides what is computed."""
    return "".join(_WITHOUT_MEANING.sub("", text).split())


def constants(kernel: str, family: Family, setting: Mapping[str, Parameter], names: Iterable[str]) -> list[str]:
    """The options ``names`` as constants of the text, which ``cuda_knobs`` can turn."""
    lines: list[str] = []
    for name in names:
        listed = ", ".join(
            str(each) for each in sorted(int(v) for v in family.options[name] if int(v) > (name == "splits"))
        )
        lines.append(f"constexpr int {kernel}_{name} = {setting[name]};  // knob: {kernel}_{name} in {{{listed}}}")
    return lines

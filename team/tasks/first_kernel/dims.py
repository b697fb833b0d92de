"""Names for the sizes in a kernel's text: each mark becomes a number or a product of named dims.

The text is written once for every set of dims that was tried; what differs between the sets is in the marks alone. A
size that grows by the factor of a dim's own growth, or its square, has that dim in its product.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from team.tasks.first_kernel.write_c import HEAD, PASSED

_MARK = re.compile(r"⟦(\d+)⟧")
_GROWTH = 2
_POWERS = {1: 0, _GROWTH: 1, _GROWTH**2: 2}
_WORDS = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Sized:
    """A text with its marks at one set of dims, and the shapes of the arguments there."""

    text: str
    shapes: Mapping[str, Sequence[int]]

    @property
    def skeleton(self) -> str:
        """The text without its sizes."""
        return _MARK.sub("⟦⟧", self.text)

    @property
    def marks(self) -> int:
        """How many of the sizes stand in the text."""
        return len(_MARK.findall(self.text))

    @property
    def sizes(self) -> list[int]:
        """Every mark in order, then every extent of the arguments."""
        extents = [size for shape in self.shapes.values() for size in shape]
        return [*(int(one) for one in _MARK.findall(self.text)), *extents]


@dataclass(frozen=True)
class Fitted:
    """The text without marks, the named dims that it uses with their values, and the arguments' extents."""

    text: str
    dims: Mapping[str, int]
    shapes: Mapping[str, tuple[str, ...]]


def fitted(
    at: Callable[[Mapping[str, int]], Sized | None],
    dims: Mapping[str, int],
    integer: Callable[[str], str],
    divide: str,
) -> Fitted:
    """The text with names for as many of ``dims`` as explain every size.

    ``at`` writes the text with some dims changed, or gives None where the function does not run so. ``integer`` spells
    a named dim as a parameter of the kernel, ``divide`` is its language's integer division.
    """
    base = at({})
    assert base is not None
    powers = {name: found for name in dims if (found := _powers(base, at({name: _GROWTH * dims[name]}), dims[name]))}
    while powers and (wrong := _offender(base, at, dims, powers)):
        del powers[wrong]
    names = list(powers)
    spelled = [
        _spelled(size, {name: powers[name][place] for name in names}, dims, divide)
        for place, size in enumerate(base.sizes)
    ]
    words = {word for text in spelled for word in _WORDS.findall(text)}
    used = {name: dims[name] for name in names if name in words}
    return _written(base, spelled, used, integer)


def _powers(base: Sized, grown: Sized | None, size: int) -> list[int] | None:
    """How often the one dim that grew is in each size; None where that does not explain every size.

    A size in the text may be a fraction of a product; an argument's extent may not.
    """
    if grown is None or grown.skeleton != base.skeleton or len(grown.sizes) != len(base.sizes):
        return None
    found: list[int] = []
    for place, (before, after) in enumerate(zip(base.sizes, grown.sizes, strict=True)):
        ratio = after // before if before and after % before == 0 else -1
        if before == after == 0:
            ratio = 1
        if ratio not in _POWERS or (place >= base.marks and before % size ** _POWERS[ratio]):
            return None
        found.append(_POWERS[ratio])
    return found


def _offender(
    base: Sized,
    at: Callable[[Mapping[str, int]], Sized | None],
    dims: Mapping[str, int],
    powers: Mapping[str, Sequence[int]],
) -> str:
    """The last dim of the first product that does not tell its size when all dims grow at once, each by its own factor.

    Empty when every product does.
    """
    factors = {name: 2 + place % 2 for place, name in enumerate(powers)}
    grown = at({name: factor * dims[name] for name, factor in factors.items()})
    if grown is None or grown.skeleton != base.skeleton:
        return list(powers)[-1]
    for place, (before, after) in enumerate(zip(base.sizes, grown.sizes, strict=True)):
        whole = prod(dims[name] ** powers[name][place] for name in powers)
        wrong = after != before * prod(factors[name] ** powers[name][place] for name in powers)
        if wrong or (place >= base.marks and before % whole):
            return ([name for name in powers if powers[name][place]] or list(powers))[-1]
    return ""


def _spelled(size: int, powers: Mapping[str, int], dims: Mapping[str, int], divide: str) -> str:
    """A size as a product, or as a part of one."""
    words = [name for name, power in powers.items() for _ in range(power)]
    share = Fraction(size, prod(dims[name] ** power for name, power in powers.items()))
    whole = " * ".join([*([str(share.numerator)] if share.numerator != 1 or not words else []), *words])
    return whole if share.denominator == 1 else f"{whole} {divide} {share.denominator}"


def _written(base: Sized, spelled: Sequence[str], used: Mapping[str, int], integer: Callable[[str], str]) -> Fitted:
    ahead = iter(spelled)

    def put(found: re.Match[str]) -> str:
        text = next(ahead)
        alone = base.text[found.start() - 1] == "(" and base.text[found.end()] in "),"
        return text if " " not in text or alone else f"({text})"

    text = _MARK.sub(put, base.text)
    text = text.replace(HEAD, "".join(f", {integer(name)}" for name in used))
    text = text.replace(PASSED, "".join(f", {name}" for name in used))
    shapes = {name: tuple(next(ahead).replace(" ", "") for _ in shape) for name, shape in base.shapes.items()}
    return Fitted(text, used, shapes)

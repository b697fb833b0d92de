"""Guess the shape of a buffer from how the source indexes it; for ``init`` alone, which shows its guess to the user.

An index such as ``A[i * K + k]`` with ``i < M`` and ``k < K`` in loops or guards means shape (M, K). Subscripts of
another pattern say nothing; two that say different things, or none that says anything, are no guess.
"""

import re
from collections.abc import Collection, Mapping

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BOUND = re.compile(r"\b([A-Za-z_]\w*)\s*<\s*([A-Za-z_]\w*)\b(?!\s*[*+\-/\[(.])")


def guess_shape(source: str, buffer: str, dims: Collection[str]) -> tuple[str, ...] | None:
    """Extents of ``buffer`` by the names of ``dims``, or None when its subscripts do not name one shape.

    A buffer without any subscript under its own name, beside a single dim, has that dim as its extent.
    """
    source = _COMMENT.sub(" ", source)
    bounds = _bounds(source, dims)
    subscripts = re.findall(rf"(?<![\w.]){re.escape(buffer)}\s*\[([^\[\]]*)\]", source)
    if not subscripts and len(dims) == 1:
        return tuple(dims)
    shapes = {shape for index in subscripts if (shape := _shape(index, bounds, dims))}
    return shapes.pop() if len(shapes) == 1 else None


def _bounds(source: str, dims: Collection[str]) -> dict[str, str]:
    """Loop and guard variables with the one dim that each is compared with."""
    seen: dict[str, set[str]] = {}
    for variable, bound in _BOUND.findall(source):
        seen.setdefault(variable, set()).add(bound)
    return {variable: next(iter(found)) for variable, found in seen.items() if len(found) == 1 and found <= set(dims)}


def _shape(index: str, bounds: Mapping[str, str], dims: Collection[str]) -> tuple[str, ...] | None:
    """(M, K) for ``i * K + k``: terms by falling stride, each stride the product of the extents to its right."""
    terms = [_term(term, bounds, dims) for term in index.split("+")]
    if not all(terms):
        return None
    ordered = sorted((term for term in terms if term), key=lambda term: -len(term[1]))
    extents = tuple(extent for extent, _ in ordered)
    for place, (_, strides) in enumerate(ordered):
        if sorted(strides) != sorted(extents[place + 1 :]):
            return None
    return extents


def _term(term: str, bounds: Mapping[str, str], dims: Collection[str]) -> tuple[str, tuple[str, ...]] | None:
    """Extent of the one variable in a product, and the dims that it is multiplied with."""
    factors = [factor.strip() for factor in term.split("*")]
    variables = [factor for factor in factors if factor in bounds]
    strides = tuple(factor for factor in factors if factor in dims)
    if len(variables) != 1 or len(strides) != len(factors) - 1:
        return None
    return bounds[variables[0]], strides

"""Knobs of Triton launches: warps, stages, and block sizes that may be others. Only digits change.

A block size may change when the grid is computed from it, or when it is a number that the kernel only counts with (see
``triton_kernels``); the same number in the grid, if the kernel finds its place by it, then changes along.
Python's own syntax tree says where a launch ``kernel[grid](...)`` stands; positions are bytes of UTF-8, as it counts.
"""

import ast
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from protocol.messages import Parameter
from roles.techniques.card import Card, Citation, Numerics, Tier, cells
from roles.techniques.transform import Choices, Site
from roles.techniques.triton_kernels import block_use, divisors, kernel_named
from roles.techniques.triton_text import Places, parsed

_WARPS = (8, 4, 2, 1, 16)
_STAGES = (3, 2, 4, 1, 5)
_USUAL = {"num_warps": 4, "num_stages": 3}  # what Triton takes where nothing is said
_FACTORS = (2.0, 0.5, 4.0, 0.25)
_STRIDES = (8.0, 32.0, 4.0, 16.0, 2.0, 64.0, 0.5)  # of a loop without matrix products: a step may be a whole row
_LEAST, _MOST, _MOST_OF_PRODUCTS = 16, 8192, 128
_SIDE, _SMALL_TILES = 64, 0.5  # a product's tile with smaller sides feeds no tensor core; the log gain of larger ones
_PRODUCTS = ((128, 32, 8, 3), (64, 32, 4, 4), (128, 16, 8, 4))  # side, step, warps, stages
NAMED = tuple(f"{step} deep, {warps} warps, {stages} stages, {side} wide" for side, step, warps, stages in _PRODUCTS)
TUTORIAL = Citation("Triton documentation, triton.Config", "https://triton-lang.org/main/python-api/triton.html")


@dataclass(frozen=True)
class _Knob:
    """A number that may change: its value now, and the bytes that hold it; an absent option is put at ``start``.

    ``along`` are other places that hold the same number, ``factors`` what it may be multiplied by, ``part`` what it is
    of a matrix product: a side of its tile, or its step along the depth.
    """

    name: str
    now: int
    start: int
    end: int
    along: tuple[tuple[int, int], ...] = ()
    factors: tuple[float, ...] = _FACTORS
    part: Literal["", "side", "step"] = ""

    @property
    def there(self) -> bool:
        return self.end > self.start


@dataclass(frozen=True)
class _Launch:
    call: ast.Call
    function: str
    kernel: str
    knobs: tuple[_Knob, ...]


class TritonLaunch:
    """One launch's warps, stages and blocks as one parameter space."""

    def applies(self, source: str) -> list[Site]:
        """See ``Transform``; a text that is not Python has no sites."""
        return [self._site(source, launch) for launch in _launches(source)]

    def apply(self, source: str, site: Site, parameters: Mapping[str, Parameter]) -> str:
        """See ``Transform``; parameters that are left out take their defaults."""
        for launch in _launches(source):
            if self._site(source, launch).key == site.key:
                setting = {name: values[0] for name, values in self.space(site).items()} | dict(parameters)
                return _rewritten(source, launch, setting)
        raise LookupError(f"no site {site.key} in this text")

    def space(self, site: Site) -> Choices:
        """Values to try for each knob; the first is another one than now."""
        return site.choices

    def _site(self, source: str, launch: _Launch) -> Site:
        digest = hashlib.sha256((ast.get_source_segment(source, launch.call) or "").encode()).hexdigest()[:10]
        line, subject = launch.call.lineno, f"the launch of `{launch.kernel}`"
        told = ", ".join(f"{knob.name} {knob.now}{'' if knob.there else ' by default'}" for knob in launch.knobs)
        choices = {knob.name: _values(knob) for knob in launch.knobs}
        key, presets = f"{launch.function}:{line}:{launch.kernel}:{digest}", tuple(_presets(launch))
        small = any(knob.part == "side" and knob.now < _SIDE for knob in launch.knobs)
        gain = _SMALL_TILES if small else None
        return Site(key, line, subject, f"line {line}: {told}", gain, choices, presets=presets)


def named(preset: Mapping[str, Parameter]) -> str:
    """A preset of a product's launch in the words of ``NAMED``; empty for any other."""
    sizes = [value for name, value in preset.items() if name not in _USUAL]
    for words, (side, step, warps, stages) in zip(NAMED, _PRODUCTS, strict=True):
        if set(sizes) <= {side, step} and (preset.get("num_warps"), preset.get("num_stages")) == (warps, stages):
            return words
    return ""


def _presets(launch: _Launch) -> Iterator[dict[str, Parameter]]:
    """Tiles, steps and warps that feed tensor cores, for launches of a matrix product."""
    parts = {knob.name: knob.part for knob in launch.knobs if knob.part}
    for side, step, warps, stages in _PRODUCTS if "side" in parts.values() else ():
        sizes = {name: side if part == "side" else step for name, part in parts.items()}
        yield {**sizes, "num_warps": warps, "num_stages": stages}


def _values(knob: _Knob) -> tuple[Parameter, ...]:
    if knob.name in _USUAL:
        every = _WARPS if knob.name == "num_warps" else _STAGES
    else:
        most = _MOST_OF_PRODUCTS if knob.part else _MOST
        every = tuple(size for factor in knob.factors if _LEAST <= (size := int(knob.now * factor)) <= most)
    others = tuple(value for value in every if value != knob.now)
    return (*others, knob.now)


def _rewritten(source: str, launch: _Launch, setting: Mapping[str, Parameter]) -> str:
    data = source.encode()
    absent = [one for one in launch.knobs if not one.there and setting.get(one.name, one.now) != one.now]
    if absent:
        at = absent[0].start
        comma = b"" if data[:at].rstrip().endswith((b",", b"(")) else b", "
        added = ", ".join(f"{one.name}={setting[one.name]}" for one in absent)
        data = data[:at] + comma + added.encode() + data[at:]
    held = [(span, one) for one in launch.knobs if one.there for span in ((one.start, one.end), *one.along)]
    for (start, end), knob in sorted(held, key=lambda each: -each[0][0]):
        data = data[:start] + str(setting.get(knob.name, knob.now)).encode() + data[end:]
    return data.decode()


def _launches(source: str) -> Iterator[_Launch]:
    tree = parsed(source)
    if tree is None:
        return
    places = Places(source)
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        for call in [node for node in ast.walk(function) if isinstance(node, ast.Call)]:
            target = call.func
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                knobs = tuple(_knobs(tree, function, call, target, places))
                if knobs:
                    yield _Launch(call, function.name, target.value.id, knobs)


def _knobs(
    tree: ast.Module, function: ast.FunctionDef, call: ast.Call, target: ast.Subscript, places: Places
) -> Iterator[_Knob]:
    given = {word.arg: word.value for word in call.keywords if word.arg}
    assert isinstance(target.value, ast.Name)
    kernel = kernel_named(tree, target.value.id)
    staged = kernel is None or any(isinstance(node, ast.For) for node in ast.walk(kernel))
    for name, usual in _USUAL.items():
        if name == "num_stages" and not staged:
            continue  # stages are those of a loop
        if name not in given:
            end = places.span(call)[1] - 1
            yield _Knob(name, usual, end, end)
        elif (number := _number(given[name])) is not None:
            yield _Knob(name, number, *places.span(given[name]))
    counted = _counted(tree, function, call, target, places)
    for name, value in given.items():
        held = _held(tree, function, name, value, target.slice)
        number = _number(held) if held is not None else None
        if held is not None and name not in _USUAL and number is not None and _is_size(number):
            yield _Knob(name, number, *places.span(held))
        elif name in counted:
            yield counted[name]


def _is_size(number: int) -> bool:
    return number >= _LEAST and not number & (number - 1)


def _counted(
    tree: ast.Module, function: ast.FunctionDef, call: ast.Call, target: ast.Subscript, places: Places
) -> dict[str, _Knob]:
    """Block sizes that are numbers in the launch, with which the kernel only counts, by name."""
    assert isinstance(target.value, ast.Name)
    kernel = kernel_named(tree, target.value.id)
    grid = target.slice
    if isinstance(grid, ast.Name):
        name = grid.id
        alone = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree)) == 2
        grid = (_assigned(tree, function, name) if alone else None) or grid
    found: dict[str, _Knob] = {}
    for word in call.keywords if kernel is not None else ():
        number = _number(word.value)
        use = block_use(kernel, word.arg) if kernel is not None and word.arg and number is not None else None
        if use is None or number is None or word.arg is None or word.arg in _USUAL or not _is_size(number):
            continue
        along = [each for axis in sorted(use.axes) for each in divisors(grid, axis) if each.value == number]
        if len(along) == len(use.axes):
            factors = _FACTORS if use.multiplied or use.axes else _STRIDES
            spans = tuple(places.span(each) for each in along)
            part = "" if not use.multiplied else "side" if use.axes else "step"
            found[word.arg] = _Knob(word.arg, number, *places.span(word.value), spans, factors, part)
    taken = [span for knob in found.values() for span in knob.along]
    return {name: knob for name, knob in found.items() if all(taken.count(span) == 1 for span in knob.along)}


def _held(tree: ast.Module, function: ast.FunctionDef, name: str, value: ast.expr, grid: ast.expr) -> ast.expr | None:
    """The constant behind a block size when the grid is computed from it; None when it is not."""
    if isinstance(grid, ast.Name):
        grid = _assigned(tree, function, grid.id) or grid
    if isinstance(value, ast.Name):
        mentioned = any(isinstance(node, ast.Name) and node.id == value.id for node in ast.walk(grid))
        return _assigned(tree, function, value.id) if mentioned else None
    keys = [node.value for node in ast.walk(grid) if isinstance(node, ast.Constant)]
    return value if isinstance(grid, ast.Lambda) and name in keys else None


def _assigned(tree: ast.Module, function: ast.FunctionDef, name: str) -> ast.expr | None:
    """What a name is set to, when it is set exactly once in this function or at the top of the file."""
    where = [*ast.walk(function), *tree.body]
    found = [
        node.value
        for node in where
        if isinstance(node, ast.Assign) and [t.id for t in node.targets if isinstance(t, ast.Name)] == [name]
    ]
    return found[0] if len(found) == 1 else None


def _number(node: ast.expr) -> int | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value
    return None


CARDS = (
    Card(
        name="triton_launch",
        title="Warps, stages and blocks of a launch",
        tier=Tier.KNOBS,
        category="knobs",
        cells=cells("compute bandwidth latency occupancy balanced"),
        languages=("triton",),
        helps="launches whose options were a guess or Triton's own",
        hurts="nothing: only digits change, and the order in which a reduction adds",
        bottleneck="too few or too many warps, stages or elements a program for this card and shape",
        mechanism="other numbers of resident programs, loads in flight and elements a thread",
        disproof="no setting is faster",
        fallback="another way through the data, by hand or by a model",
        expected_gain=0.15,
        evidence="usual practice: what triton.autotune searches",
        source=TUTORIAL,
        numerics=Numerics.REORDERED,
        transform=TritonLaunch,
    ),
)

"""A smaller tile where a Triton grid is too small for the GPU: the host chooses by the number of programs."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from protocol.messages import Parameter
from roles.techniques.card import Card, Numerics, Tier, cells
from roles.techniques.knowledge import CUTLASS
from roles.techniques.transform import Choices, Site
from roles.techniques.triton_kernels import block_use, divisors
from roles.techniques.triton_text import TritonRewrite, kernels_of, launches_of, parsed, site_at

_CHOICES: Choices = {"programs": (132, 264, 66), "smaller": (2, 4)}
_LEAST = 16


@dataclass(frozen=True)
class _Sized:
    """``grid = (triton.cdiv(m, 128), triton.cdiv(n, 128))`` and the launch by it, the host's last two statements, each
    on a line of its own. ``tiles`` are the numbers in both that are sides of a tile."""

    kernel: str
    grid: ast.Assign
    launch: ast.Expr
    name: str
    tiles: tuple[ast.Constant, ...]


class TritonSizeDispatch(TritonRewrite[_Sized]):
    """Two launches: the one that is there, and one with smaller tiles for problems with few of them."""

    def places(self, source: str) -> Iterator[_Sized]:
        """See ``TritonRewrite``."""
        tree = parsed(source)
        for kernel in kernels_of(tree) if tree is not None else ():
            launches = launches_of(tree, kernel.name) if tree is not None else []
            found = _sized(kernel, *launches[0]) if len(launches) == 1 else None
            if found is not None:
                yield found

    def site(self, source: str, found: _Sized) -> Site:
        """See ``TritonRewrite``."""
        place, evidence = f"the tiles of `{found.kernel}`", "one tile size for problems of all sizes"
        return site_at(source, found.launch, found.kernel, "sizes", place, evidence, _CHOICES)

    def rewritten(self, source: str, found: _Sized, parameters: Mapping[str, Parameter]) -> str:
        """See ``TritonRewrite``."""
        lines, by = source.split("\n"), int(parameters["smaller"])
        at, step = found.launch.lineno - 1, " " * found.launch.col_offset
        small = [_divided(source, each, found.tiles, by) for each in (found.grid, found.launch)]
        choice = [
            f"{step}if {found.name}[0] * {found.name}[1] < {parameters['programs']}:",
            *(f"{step}    {line}" for line in small),
            f"{step}else:",
            f"    {lines[at]}",
        ]
        return "\n".join([*lines[:at], *choice, *lines[at + 1 :]])


def _divided(source: str, node: ast.stmt, tiles: tuple[ast.Constant, ...], by: int) -> str:
    """A one-line statement's text with its tile sizes divided."""
    data = (ast.get_source_segment(source, node) or "").encode()
    mine = [each for each in tiles if each.lineno == node.lineno]
    for each in sorted(mine, key=lambda one: -one.col_offset):
        assert each.end_col_offset is not None
        start, end = each.col_offset - node.col_offset, each.end_col_offset - node.col_offset
        data = data[:start] + str(max(_LEAST, int(str(each.value)) // by)).encode() + data[end:]
    return data.decode()


def _sized(kernel: ast.FunctionDef, host: ast.FunctionDef, call: ast.Call) -> _Sized | None:
    last = host.body[-2:]
    if len(last) != 2 or not all(each.lineno == each.end_lineno for each in last) or last[0].lineno == last[1].lineno:
        return None
    (grid, launch), by = last, call.func.slice if isinstance(call.func, ast.Subscript) else None
    if not isinstance(launch, ast.Expr) or launch.value is not call or not isinstance(by, ast.Name):
        return None
    if not isinstance(grid, ast.Assign):
        return None
    named = [ast.unparse(each) for each in grid.targets] == [by.id]
    if not named or not isinstance(grid.value, ast.Tuple) or len(grid.value.elts) != 2:
        return None
    tiles = _tiles(kernel, grid.value, call)
    large = all(isinstance(each.value, int) and each.value > _LEAST for each in tiles)
    return _Sized(kernel.name, grid, launch, by.id, tiles) if tiles and large else None


def _tiles(kernel: ast.FunctionDef, grid: ast.Tuple, call: ast.Call) -> tuple[ast.Constant, ...]:
    """The numbers in the launch and in the grid that are sides of tiles; empty unless they are those of both axes."""
    tiles: list[ast.Constant] = []
    axes: list[int] = []
    for word in call.keywords:
        use = block_use(kernel, word.arg) if word.arg is not None else None
        if use is None or not use.axes or not isinstance(word.value, ast.Constant):
            continue
        along = [each for axis in sorted(use.axes) for each in divisors(grid, axis)]
        if len(along) != len(use.axes) or any(each.value != word.value.value for each in along):
            return ()
        tiles += [word.value, *along]
        axes += sorted(use.axes)
    return tuple(tiles) if sorted(axes) == [0, 1] else ()


CARDS = (
    Card(
        name="triton_size_dispatch",
        title="Smaller tiles for small problems",
        tier=Tier.KNOBS,
        category="dispatch",
        cells=cells("compute latency occupancy balanced"),
        languages=("triton",),
        helps="workloads of several sizes, one of which leaves multiprocessors idle",
        hurts="more code",
        bottleneck="fewer programs than multiprocessors",
        mechanism="the host halves the tiles where there would be too few of them",
        disproof="every workload keeps its time",
        fallback="triton_launch",
        expected_gain=0.1,
        evidence="dispatch by shape is how a kernel becomes fast everywhere",
        source=CUTLASS,
        numerics=Numerics.REORDERED,
        transform=TritonSizeDispatch,
    ),
)

"""A transposition through a padded or swizzled tile in shared memory: both the loads and the stores are coalesced."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import Access
from roles.techniques.cpp.effects import pure_expression
from roles.techniques.cpp.render import nest, substituted
from roles.techniques.cpp.syntax import Source, field, identifiers, line_of, text_of
from roles.techniques.cuda.cache_hints import LOADS, STORES, loaded, stored
from roles.techniques.cuda.design import constants
from roles.techniques.cuda.enter import Enter
from roles.techniques.cuda.launches import Kernel, kernels_in, rewritten
from roles.techniques.cuda.planes import Plane, all_accesses, apart, plane_of
from roles.techniques.cuda.shared_memory import DYNAMIC, RESERVED, SHARED, declared, fits, launched
from roles.techniques.cuda.signature import restricted
from roles.techniques.cuda.transpose_shifted import RESERVED as SHIFTED_NAMES
from roles.techniques.cuda.transpose_shifted import ShiftedWriter, shifted_bytes
from roles.techniques.transform import Choices

_NAMES = "tile slow_at fast_at at part step items V THREADS STEPS block_at band band_top band_rows swizzled spread"
_RESERVED = frozenset(_NAMES.split()) | RESERVED | SHIFTED_NAMES
_MOST_MOVES = 32  # of single values by one thread; each waits in a register until it is put into the tile

_SWIZZLE = """\
// Column of the tile in which an element lies: those that a warp moves together have banks of their own, whether they
// are neighbours in a row or in a column, one by one or in vectors.
__device__ __forceinline__ int spread(int index) { return index / 32 % 2 * 3 ^ index / 64 % 2; }
__device__ __forceinline__ int swizzled(int row, int col) {
    return col ^ ((row ^ spread(row) ^ spread(col)) & 31);
}
"""


@dataclass(frozen=True)
class Transposed:
    """``out[q * P + p] = value(in[p * Q + q])`` with p < P and q < Q."""

    plane: Plane
    p: str
    q: str
    target: Node
    value: Node
    read: Node


def transposed_of(plane: Plane) -> Transposed | None:
    """The transposition that a plane is, or None."""
    found = all_accesses(plane)
    if found is None or len(plane.body) != 1 or not apart(plane, found):
        return None
    reads, writes = [each for each in found if not each.write], [each for each in found if each.write]
    if len(writes) != 1 or len(reads) != 1 or reads[0].array == writes[0].array:
        return None
    for p, q in ((plane.y, plane.x), (plane.x, plane.y)):
        if _is_transposition(plane, p, q, reads[0], writes[0]):
            return _assigned(plane, p, q, reads[0].node)
    return None


def _is_transposition(plane: Plane, p: str, q: str, read: Access, write: Access) -> bool:
    loads = read.index == plane.matrix(p, q, plane.bound[q])
    return loads and write.index == plane.matrix(q, p, plane.bound[p])


def _assigned(plane: Plane, p: str, q: str, read: Node) -> Transposed | None:
    statement = plane.body[0]
    inner = statement.named_children[0] if statement.type == "expression_statement" else statement
    if inner.type != "assignment_expression" or text_of(field(inner, "operator")) != "=":
        return None
    target, value = field(inner, "left"), field(inner, "right")
    return Transposed(plane, p, q, target, value, read) if pure_expression(value) else None


class TransposeFamily:
    """Reads along one index, writes along the other."""

    name: ClassVar[str] = "transpose_tile"
    title: ClassVar[str] = "padded tiles"
    promise: ClassVar[float] = 1.0
    core: ClassVar[tuple[str, ...]] = ("tile", "rows")
    options: ClassVar[Choices] = {
        "tile": (64, 32, 96, 128),
        "rows": (8, 16, 4, 32),
        "layout": ("padded", "swizzled"),
        "padding": (1, 2, 3, 5),
        "blocks": (1, 2, 4, 8),
        "group": (0, 4, 8, 16, 2),
        "width": (4, 1, 2),
        "odd": ("scalar", "shifted"),
        **SHARED,
        "load": LOADS,
        "store": STORES,
    }

    def problems(self, source: Source) -> Iterator[tuple[Kernel, str]]:
        """See ``Family``."""
        for found in _transpositions(source):
            line = line_of(found.target)
            yield found.plane.kernel, f"line {line}: a warp's loads or stores lie a whole row apart"

    def write(self, source: Source, kernel: str, setting: Mapping[str, Parameter]) -> str | None:
        """A new kernel body, and a grid of tiles."""
        found = next((each for each in _transpositions(source) if each.plane.kernel.name == kernel), None)
        if found is None:
            return None
        group = ["group"] if int(setting["group"]) else []
        padded = [] if _swizzled(setting) else ["padding"]
        shown = constants(kernel, self, setting, ["tile", "rows", *padded, "blocks", *group])
        writer = TransposeWriter(source, found, setting)
        kernels = [*writer.kernel(), *(["", *writer.shifted.kernel()] if _shifted(setting) else [])]
        return rewritten(source, found.plane.kernel, [*shown, "", *kernels], writer.launch())

    def sound(self, setting: Mapping[str, Parameter]) -> bool:
        """See ``Family``: the blocks asked for fit, and a block's threads find whole vectors to move."""
        threads, tile = 32 * int(setting["rows"]), int(setting["tile"])
        padding, blocks = int(setting["padding"]), int(setting["blocks"])
        padded = not _swizzled(setting) or padding == self.options["padding"][0]  # which a swizzled tile ignores
        shared = 4 * tile * (tile if _swizzled(setting) else tile + padding)
        moves = threads <= tile * tile // int(setting["width"]) and tile * tile <= _MOST_MOVES * threads
        if _shifted(setting):
            known = setting["width"] == 4 and not _swizzled(setting) and setting["group"] == 0
            moves = moves and known and fits(setting, shifted_bytes(tile))
        return moves and padded and threads * blocks <= 2048 and shared * blocks <= DYNAMIC and fits(setting, shared)


def _swizzled(setting: Mapping[str, Parameter]) -> bool:
    return setting["layout"] == "swizzled"


def _shifted(setting: Mapping[str, Parameter]) -> bool:
    return setting["odd"] == "shifted"


@lru_cache(maxsize=32)
def _transpositions(source: Source) -> tuple[Transposed, ...]:
    if _RESERVED & identifiers(source.root):
        return ()
    planes = [plane for each in kernels_in(source.root) if (plane := plane_of(each)) is not None]
    return tuple(found for plane in planes if (found := transposed_of(plane)) is not None)


@dataclass(frozen=True)
class TransposeWriter:
    """Renders one transposition. ``V`` neighbours move at once where both extents are multiples of it."""

    source: Source
    found: Transposed
    setting: Mapping[str, Parameter]

    @property
    def _unit(self) -> str:
        return self.source.indent_unit

    @property
    def _name(self) -> str:
        return self.found.plane.kernel.name

    def kernel(self) -> list[str]:
        """Rows in, columns out. All of a thread's loads are under way before the first value goes into the tile."""
        found, plane, name = self.found, self.found.plane, self._name
        p, q = found.p, found.q
        body = [
            f"constexpr int THREADS = 32 * {name}_rows;",
            f"constexpr int STEPS = ({name}_tile * {name}_tile / V + THREADS - 1) / THREADS;",
            *declared(self.setting, [("tile", self._extents())]),
            *self._place(),
            "alignas(16) float items[STEPS][V];",
            *self._walk(p, q, self._by_width(self._load)),
            *self._walk(p, q, self._kept()),
            "__syncthreads();",
            *self._walk(q, p, self._written()),
        ]
        bounds = f"__launch_bounds__(32 * {name}_rows, {name}_blocks)"
        head = f"__global__ void {bounds} {name}{restricted(plane.kernel)}"
        return [
            *([_SWIZZLE] if _swizzled(self.setting) else []),
            f"// transpose_tile: rows in, columns out, through a {self.setting['layout']} tile.",
            "template <int V>",
            *nest(head, body, self._unit),
        ]

    @property
    def shifted(self) -> ShiftedWriter:
        """The instance for extents that are no multiple of a vector."""
        found = self.found
        value = substituted(found.value, [(found.read, "items[step][part]")])
        names = (found.p, found.q, value, text_of(found.read), text_of(found.target))
        return ShiftedWriter(self.source, self.setting, found.plane, *names)

    def _extents(self) -> str:
        name = self._name
        return f"[{name}_tile][{name}_tile{'' if _swizzled(self.setting) else f' + {name}_padding'}]"

    def _slot(self, row: str, col: str) -> str:
        """An element of the tile."""
        return f"tile[{row}][{f'swizzled({row}, {col})' if _swizzled(self.setting) else col}]"

    def _place(self) -> list[str]:
        """Which tile a block moves: in rows of tiles, or in bands of several rows that share lines of the output."""
        name, kind, p, q = self._name, self.found.plane.type, self.found.p, self.found.q
        across, down, lines = "blockIdx.x", "blockIdx.y", []
        if int(self.setting["group"]):
            lines = [
                f"const int block_at = blockIdx.y * gridDim.x + blockIdx.x, band = {name}_group * gridDim.x;",
                f"const int band_top = block_at / band * {name}_group;",
                f"const int band_rows = gridDim.y - band_top < {name}_group ? gridDim.y - band_top : {name}_group;",
            ]
            across, down = "(block_at % band / band_rows)", "(band_top + block_at % band % band_rows)"
        lines += [
            f"const {kind} {q}_first = {across} * {name}_tile;",
            f"const {kind} {p}_first = {down} * {name}_tile;",
        ]
        return lines

    def _walk(self, slow: str, fast: str, work: list[str]) -> list[str]:
        """Neighbouring threads take neighbouring vectors along ``fast``, as often as the tile has them."""
        plane, name = self.found.plane, self._name
        tail = f"at < {name}_tile * {name}_tile / V"
        element = [
            "const int at = threadIdx.x + step * THREADS;",
            f"const int slow_at = at / ({name}_tile / V), fast_at = at % ({name}_tile / V) * V;",
            f"const {plane.type} {slow} = {slow}_first + slow_at;",
            f"const {plane.type} {fast} = {fast}_first + fast_at;",
            *nest(f"if ({tail} && {slow} < {plane.bound[slow]} && {fast} < {plane.bound[fast]})", work, self._unit),
        ]
        return ["#pragma unroll", *nest("for (int step = 0; step < STEPS; step++)", element, self._unit)]

    def _kept(self) -> list[str]:
        """V values go into one row of the tile."""
        found, q = self.found, self.found.q
        value = substituted(found.value, [(found.read, "items[step][part]")])
        shifted = re.sub(rf"\b{q}\b", f"({q} + part)", value)
        store = [f"{self._slot('slow_at', 'fast_at + part')} = {shifted};"]
        return ["#pragma unroll", *nest("for (int part = 0; part < V; part++)", store, self._unit)]

    def _written(self) -> list[str]:
        """Collect V neighbours from one column of the tile and store them."""
        collect = [f"items[step][part] = {self._slot('fast_at + part', 'slow_at')};"]
        parts = ["#pragma unroll", *nest("for (int part = 0; part < V; part++)", collect, self._unit)]
        return [*parts, *self._by_width(self._store)]

    def _by_width(self, move: Callable[[str], str]) -> list[str]:
        width = int(self.setting["width"])
        if width == 1:
            return [move("float")]
        wide = nest(f"if constexpr (V == {width})", [move(f"float{width}")], self._unit)
        return [*wide[:-1], *nest("} else", [move("float")], self._unit)]

    def _load(self, kind: str) -> str:
        value = loaded(str(self.setting["load"]), kind, f"&{text_of(self.found.read)}")
        target = f"*reinterpret_cast<{kind}*>(items[step])" if kind != "float" else "items[step][0]"
        return f"{target} = {value};"

    def _store(self, kind: str) -> str:
        return stored(str(self.setting["store"]), kind, f"&{text_of(self.found.target)}", "items[step]")

    def launch(self) -> list[str]:
        """The host's statement."""
        plane, name, width = self.found.plane, self._name, int(self.setting["width"])
        across, down = (plane.kernel.argument_of(plane.bound[each]) for each in (self.found.q, self.found.p))
        grid = f"dim3(({across} - 1) / {name}_tile + 1, ({down} - 1) / {name}_tile + 1)"

        def call(wide: int) -> list[str]:
            size, threads = f"sizeof(float{self._extents()})", f"32 * {name}_rows"
            return launched(self.setting, f"{name}<{wide}>", grid, threads, plane.kernel.argument_text, size)

        body = call(1)
        if width > 1:
            aligned = f"if ({across} % {width} == 0 && {down} % {width} == 0)"
            other = self.shifted.launch() if _shifted(self.setting) else call(1)
            body = [*nest(aligned, call(width), self._unit)[:-1], *nest("} else", other, self._unit)]
        return nest(f"if ({across} > 0 && {down} > 0)", body, self._unit)


TRANSPOSE = TransposeFamily()


class TransposeTile(Enter):
    """A transposition, through tiles."""

    def __init__(self) -> None:
        super().__init__(TRANSPOSE)

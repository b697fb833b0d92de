"""A transposition whose stores begin where sectors of memory begin, for extents that are no multiple of a vector.

Rows of odd lengths begin anywhere within a sector of 32 bytes. Cut into pieces of one width, each piece would end with
parts of two sectors; here a row of the output is cut at addresses that are multiples of a sector, so a tile's rows are
shifted against each other by up to seven elements, and the tile holds seven rows of the input more. Loads take vectors
of memory, one more than a row's piece has, and leave out what lies outside of the row.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from protocol.messages import Parameter
from roles.techniques.cpp.render import nest
from roles.techniques.cpp.syntax import Source
from roles.techniques.cuda.cache_hints import loaded, stored
from roles.techniques.cuda.planes import Plane
from roles.techniques.cuda.shared_memory import declared, launched
from roles.techniques.cuda.signature import restricted

RESERVED = frozenset(["SECTOR", "HEIGHT", "PITCH", "VECTORS", "LOADS", "STORES", "shift", "piece"])
SECTOR, VECTOR = 8, 4  # floats


def shifted_bytes(tile: int) -> int:
    """Shared memory of a tile; its rows have an odd length, so that a column has all banks."""
    return 4 * (tile + SECTOR - 1) * (tile + 2 * VECTOR - 1)


@dataclass(frozen=True)
class ShiftedWriter:
    """Renders ``out[q * P + p] = value(in[p * Q + q])``: ``read`` and ``target`` are the accesses as they stand."""

    source: Source
    setting: Mapping[str, Parameter]
    plane: Plane
    p: str
    q: str
    value: str
    read: str
    target: str

    @property
    def _unit(self) -> str:
        return self.source.indent_unit

    @property
    def _tile(self) -> str:
        return f"{self.plane.kernel.name}_tile"

    def kernel(self) -> list[str]:
        """All of a thread's loads are under way before the first value goes into the tile."""
        name, kind, (p, q) = self.plane.kernel.name, self.plane.type, (self.p, self.q)
        body = [
            f"constexpr int THREADS = 32 * {name}_rows, SECTOR = {SECTOR}, V = {VECTOR};",
            f"constexpr int HEIGHT = {self._tile} + SECTOR - 1, PITCH = {self._tile} + 2 * V - 1;",
            f"constexpr int VECTORS = {self._tile} / V + 1, LOADS = (HEIGHT * VECTORS + THREADS - 1) / THREADS;",
            f"constexpr int STORES = ({self._tile} * {self._tile} / V + THREADS - 1) / THREADS;",
            *declared(self.setting, [("tile", "[HEIGHT][PITCH]")]),
            f"const {kind} {q}_first = blockIdx.x * {self._tile}, {p}_first = blockIdx.y * {self._tile};",
            "alignas(16) float items[LOADS][V];",
            *self._loads(self._loaded()),
            *self._loads(self._kept()),
            "__syncthreads();",
            *self._stores(),
        ]
        bounds = f"__launch_bounds__(32 * {name}_rows, {name}_blocks)"
        head = f"__global__ void {bounds} {name}_shifted{restricted(self.plane.kernel)}"
        return [
            "// transpose_tile, rows that begin between vectors: a row of the output is cut where sectors of memory",
            "// begin, so that every store fills whole ones; the rows of a tile are shifted against each other.",
            *nest(head, body, self._unit),
        ]

    def _loads(self, work: list[str]) -> list[str]:
        """Neighbouring threads take neighbouring vectors of a row of the input, from the one that ``q_first`` is in."""
        kind, (p, q) = self.plane.type, (self.p, self.q)
        first = self._at(self.read, q, f"{q}_first")
        inner = [
            f"const int shift = reinterpret_cast<size_t>(&{first}) / sizeof(float) % V;",
            f"const {kind} {q} = {q}_first - shift + fast_at;",
            *work,
        ]
        element = [
            "const int at = threadIdx.x + step * THREADS;",
            "const int slow_at = at / VECTORS, fast_at = at % VECTORS * V;",
            f"const {kind} {p} = {p}_first - (SECTOR - 1) + slow_at;",
            *nest(f"if (at < HEIGHT * VECTORS && {self._inside(p)})", inner, self._unit),
        ]
        return ["#pragma unroll", *nest("for (int step = 0; step < LOADS; step++)", element, self._unit)]

    def _loaded(self) -> list[str]:
        load, q = str(self.setting["load"]), self.q
        whole = f"*reinterpret_cast<float4*>(items[step]) = {loaded(load, 'float4', f'&{self.read}')};"
        part = self._at(self.read, q, f"({q} + part)")
        one = f"if ({self._inside(q, 'part')}) items[step][part] = {loaded(load, 'float', f'&{part}')};"
        return self._by_vector(q, [whole], [one])

    def _kept(self) -> list[str]:
        """Column ``V - 1`` of the tile is ``q_first``."""
        value = self._at(self.value, self.q, f"({self.q} + part)")
        store = f"if ({self._inside(self.q, 'part')}) tile[slow_at][V - 1 - shift + fast_at + part] = {value};"
        return self._parts([store])

    def _stores(self) -> list[str]:
        """Neighbouring threads take neighbouring vectors of a row of the output, from the sector that ``p_first`` is
        in; row ``SECTOR - 1`` of the tile is ``p_first``."""
        kind, (p, q) = self.plane.type, (self.p, self.q)
        first = self._at(self.target, p, f"{p}_first")
        whole = stored(str(self.setting["store"]), "float4", f"&{self.target}", "piece")
        part = self._at(self.target, p, f"({p} + part)")
        one = stored(str(self.setting["store"]), "float", f"&{part}", "&piece[part]")
        inner = [
            f"const int shift = reinterpret_cast<size_t>(&{first}) / sizeof(float) % SECTOR;",
            f"const {kind} {p} = {p}_first - shift + fast_at;",
            "alignas(16) float piece[V];",
            *self._parts(["piece[part] = tile[SECTOR - 1 - shift + fast_at + part][V - 1 + slow_at];"]),
            *self._by_vector(p, [whole], [f"if ({self._inside(p, 'part')}) {one}"]),
        ]
        element = [
            "const int at = threadIdx.x + step * THREADS;",
            f"const int slow_at = at / ({self._tile} / V), fast_at = at % ({self._tile} / V) * V;",
            f"const {kind} {q} = {q}_first + slow_at;",
            *nest(f"if (at < {self._tile} * {self._tile} / V && {q} < {self.plane.bound[q]})", inner, self._unit),
        ]
        return ["#pragma unroll", *nest("for (int step = 0; step < STORES; step++)", element, self._unit)]

    def _by_vector(self, name: str, whole: list[str], one: list[str]) -> list[str]:
        """A vector that lies in its row moves at once, the elements of one that does not singly."""
        inside = f"if ({self._inside(name)} && {name} + V - 1 < {self.plane.bound[name]})"
        return [*nest(inside, whole, self._unit)[:-1], *nest("} else", self._parts(one), self._unit)]

    def _parts(self, body: list[str]) -> list[str]:
        return ["#pragma unroll", *nest("for (int part = 0; part < V; part++)", body, self._unit)]

    def _inside(self, name: str, further: str = "") -> str:
        """The condition of an index between zero and its bound; of an unsigned one, the second half says it all."""
        at = f"{name} + {further}" if further else name
        return f"{at} >= 0 && {at} < {self.plane.bound[name]}"

    def _at(self, text: str, name: str, other: str) -> str:
        return re.sub(rf"\b{name}\b", other, text)

    def launch(self) -> list[str]:
        """The host's statement; the last tile ends where no row is shifted beyond it."""
        kernel, name = self.plane.kernel, self.plane.kernel.name
        across, down = (kernel.argument_of(self.plane.bound[each]) for each in (self.q, self.p))
        grid = f"dim3(({across} - 1) / {self._tile} + 1, ({down} + {SECTOR - 2}) / {self._tile} + 1)"
        size = f"4 * ({self._tile} + {SECTOR - 1}) * ({self._tile} + {2 * VECTOR - 1})"
        threads = f"32 * {name}_rows"
        return launched(self.setting, f"{name}_shifted", grid, threads, kernel.argument_text, size)

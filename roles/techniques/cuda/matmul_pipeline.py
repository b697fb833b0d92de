"""A product on tensor cores whose next operands are on their way: into shared memory, and from there to registers.

``cp.async`` runs several tiles ahead. While a step of eight terms is multiplied, the values of the next one are read,
of the next tile after a tile's last step; so tensor cores have work on both sides of the barrier. Every vector of a
tile has its own pointer, moved on by a tile's depth; rows beyond the matrix are read as its last one, for nobody stores
what they give. Tiles at the end of the depth are copied element by element, with zeros for the terms beyond it.

Rows that begin between vectors (``SHIFTED``) are copied in vectors of memory all the same, one more than the row's part
of the tile has. What lies before that part is the same for every tile, and for every eighth row, because tiles are
whole vectors deep: a thread reads its values so much further to the right (``a_lead``, ``b_lead``).

The instruction's 16 rows are columns of the output and its 8 columns are rows: then a thread's two neighbouring
registers of either operand are two neighbouring values in memory, wherever the rows' operand runs along the depth and
the columns' operand does not, and one 64-bit read brings both to where the instruction wants them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from protocol.messages import Parameter
from roles.techniques.cpp.render import nest
from roles.techniques.cpp.syntax import text_of
from roles.techniques.cuda.matmul_operands import Operand, Staging, operands_of
from roles.techniques.cuda.products import Product

_NAMES = """
V SHIFTED NEAR FAR ASIDE STEPS A_ROW B_ROW a_from b_from a_before b_before a_lead b_lead a_raw b_raw aligned copy fetch
copy_whole copy_rest one_tile further k_next slot start source to first
"""
RESERVED = frozenset(_NAMES.split())


def possible(product: Product) -> bool:
    """True when both operands have rows of a known length, by which a pointer moves on."""
    return all(each.pitch for each in operands_of(product))


def tile_bytes(setting: Mapping[str, Parameter]) -> int:
    """Shared memory of the tiles, in the larger of their two layouts."""
    bm, bn, bk, stages = (int(setting[name]) for name in ("bm", "bn", "bk", "stages"))
    return 4 * stages * sum(max(side * (bk + 8), bk * (side + 8)) for side in (bm, bn))


@dataclass(frozen=True)
class AheadStaging(Staging):
    """Tiles in their operands' own order, and the pipeline that fills them."""

    @property
    def _paired(self) -> bool:
        """True when a thread's two terms of a step may be neighbours; else they are four apart, as PTX has them."""
        return not operands_of(self.product)[1].along

    def natural(self, operand: Operand) -> bool:
        """Fragments are loaded from either order."""
        return operand.along

    def shape(self, operand: Operand) -> str:
        """A warp reads pairs or values of 8 rows and 4 places; with these lengths of a row each has its own bank."""
        pairs, values = (f"(W == 4 ? {a} : {b})" if self._paired else str(b) for a, b in ((8, 4), (4, 8)))
        return f"[{operand.size}][BK + {pairs}]" if operand.along else f"[BK][{operand.size} + {values}]"

    def sizes(self) -> list[str]:
        """Constants of the kernel."""
        pairs = (f"SHIFTED ? {one} : {two}" if self._paired else str(one) for one, two in ((1, 2), (4, 1), (8, 1)))
        rows = [self._vectors(each) for each in operands_of(self.product)]
        near, far, aside = pairs
        a, b = operands_of(self.product)
        return [
            "constexpr int V = 4, STEPS = BK / 8;",
            "constexpr bool SHIFTED = W != V;  // rows may begin between vectors",
            f"constexpr int A_ROW = {rows[0]}, B_ROW = {rows[1]};  // vectors of a row of a tile",
            f"constexpr int A_LOADS = ({self._lines(a)} * A_ROW + THREADS - 1) / THREADS;",
            f"constexpr int B_LOADS = ({self._lines(b)} * B_ROW + THREADS - 1) / THREADS;",
            f"constexpr int NEAR = {near}, FAR = {far}, ASIDE = {aside};  // where a thread's values lie",
        ]

    def _lines(self, operand: Operand) -> str:
        return operand.size if operand.along else "BK"

    def _vectors(self, operand: Operand) -> str:
        return f"{'BK' if operand.along else operand.size} / V + SHIFTED"

    def pipeline(self, multiply: list[str]) -> list[str]:
        """The loop over tiles around ``multiply``, which works on the values ``[step % 2]``."""
        step = [
            *nest("if (step == STEPS - 1)", self._turn(), self.unit),
            "fetch((step + 1) % 2, (step + 1) % STEPS * 8);",
            "if (step == 0) copy(slot);",
            *multiply,
        ]
        steps = ["#pragma unroll", *nest("for (int step = 0; step < STEPS; step++)", step, self.unit)]
        rows, cols = operands_of(self.product)
        return [
            *self._pointers(rows),
            *self._pointers(cols),
            *self._leads(rows, "warp_row"),
            *self._leads(cols, "warp_col"),
            f"const bool aligned = !SHIFTED || ({self._address(rows)} | {self._address(cols)}) % 16 == 0;",
            "int k_tile = k_first, k_next = k_first, buffer = 0, slot = STAGES - 1;",
            *self._function("copy_whole", "int to", [*self._vector(rows), *self._vector(cols), *self._moved()]),
            *self._function("copy_rest", "int to", self._rest()),
            *self._function("fetch", "int to, int first", self._fetched()),
            *self._function("one_tile", "auto copy", steps),
            "#pragma unroll 1",
            "for (int stage = 0; stage < STAGES - 1; stage++) copy_rest(stage);",
            "__pipeline_wait_prior(STAGES - 2);",
            "__syncthreads();",
            "fetch(0, 0);",
            "// Two loops, so that nothing branches between the products of the first.",
            "for (; k_next + BK + (SHIFTED ? V : 0) <= k_end; k_tile += BK) one_tile(copy_whole);",
            "for (; k_tile < k_end; k_tile += BK) one_tile(copy_rest);",
        ]

    def _function(self, name: str, parameters: str, body: list[str]) -> list[str]:
        lines = nest(f"auto {name} = [&]({parameters})", body, self.unit)
        return [*lines[:-1], "};"]

    def _address(self, operand: Operand) -> str:
        return f"reinterpret_cast<size_t>({operand.access.array})"

    def _turn(self) -> list[str]:
        return [
            "__pipeline_wait_prior(STAGES - 2);",
            "__syncthreads();  // the next tile has arrived, and all have read this one",
            "slot = buffer;",
            "buffer = buffer + 1 < STAGES ? buffer + 1 : 0;",
        ]

    def _started(self, operand: Operand, side: str, depth: str) -> list[str]:
        """``start``: the element of a row and a depth, both given."""
        plane, loop = self.product.plane, self.product.reduction.loop
        return [
            f"const {plane.type} {operand.index} = {side};",
            f"const {loop.type} {self.product.depth} = {depth};",
            f"const float* start = &{text_of(operand.access.node)};",
        ]

    def _pointers(self, operand: Operand) -> list[str]:
        """Where each of a thread's vectors begins, and what of it lies before the tile."""
        letter, bound = operand.letter, self.product.plane.bound[operand.index]
        line, offset = self._place(operand)
        if operand.along:
            row = f"{operand.first} + {line}"
            body = [
                *self._started(operand, f"{row} < {bound} ? {row} : {bound} - 1", "k_first"),
                f"{letter}_before[step] = {self._before('start')};",
                f"{letter}_from[step] = start + {offset} - {letter}_before[step];",
            ]
        else:
            body = [
                *self._started(operand, operand.first, f"k_first + {line}"),
                f"{letter}_before[step] = {self._before('start')};",
                f"const int to = {offset} - {letter}_before[step], further = to - ({bound} - {operand.first});",
                f"{letter}_from[step] = start + (further < 0 ? to : to - (further / V + 1) * V);",
            ]
        return [
            f"const float* {letter}_from[{letter.upper()}_LOADS];",
            f"int {letter}_before[{letter.upper()}_LOADS];",
            *self._steps(operand, body),
        ]

    def _place(self, operand: Operand) -> tuple[str, str]:
        """Line of the tile and element in it of vector number ``at``: neighbouring threads read neighbours."""
        row = f"{operand.letter.upper()}_ROW"
        return f"at / {row}", f"at % {row} * V"

    def _before(self, start: str) -> str:
        return f"SHIFTED ? reinterpret_cast<size_t>({start}) / sizeof(float) % V : 0"

    def _leads(self, operand: Operand, warp: str) -> list[str]:
        """How much further to the right a thread finds its values."""
        side, depth = operand.first, "k_first + place"
        if operand.along:
            side, depth = f"{operand.first} + {warp} + quad", "k_first"
        body = [*self._started(operand, side, depth), f"{operand.letter}_lead = {self._before('start')};"]
        return [f"int {operand.letter}_lead = 0;", *nest("if constexpr (SHIFTED)", body, self.unit)]

    def _rest(self) -> list[str]:
        """A tile of which a vector may reach beyond the depth or begin before the matrix."""
        single = [line for each in operands_of(self.product) for line in self._singly(each)]
        inside = "if (k_next + BK + (SHIFTED ? V : 0) <= k_end && (aligned || k_next > 0))"
        whole = ["copy_whole(to);"]
        return [*nest(inside, whole, self.unit)[:-1], *nest("} else", [*single, *self._moved()], self.unit)]

    def _guarded(self, operand: Operand, body: list[str]) -> list[str]:
        row = f"{operand.letter.upper()}_ROW"
        return self._steps(operand, nest(f"if (at < {self._lines(operand)} * {row})", body, self.unit))

    def _target(self, operand: Operand, part: str) -> str:
        line, offset = self._place(operand)
        return f"&{self.tile(operand)}[to][{line}][{offset}{part}]"

    def _vector(self, operand: Operand) -> list[str]:
        copy = f"__pipeline_memcpy_async({self._target(operand, '')}, {operand.letter}_from[step], sizeof(float) * V);"
        return self._guarded(operand, [copy])

    def _singly(self, operand: Operand) -> list[str]:
        letter, (line, offset), target = operand.letter, self._place(operand), self._target(operand, " + part")
        bound = self.product.plane.bound[operand.index]
        reach = "k_next + further < k_end"
        if not operand.along:
            reach = f"k_next + {line} < k_end && {operand.first} + further < {bound}"
        body = [
            f"const int further = {offset} - {letter}_before[step] + part;",
            f"const bool inside = further >= 0 && {reach};",
            f"const float* source = inside ? {letter}_from[step] + part : {operand.access.array};",
            f"__pipeline_memcpy_async({target}, source, sizeof(float), inside ? 0 : sizeof(float));",
        ]
        return self._guarded(
            operand, ["#pragma unroll 1", *nest("for (int part = 0; part < V; part++)", body, self.unit)]
        )

    def _moved(self) -> list[str]:
        """The pointers at the next tile; a group is committed for each tile, empty ones too, to keep count."""
        lines = ["__pipeline_commit();", "k_next += BK;"]
        for each in operands_of(self.product):
            tile = "BK" if each.along else f"BK * static_cast<size_t>({each.pitch})"
            lines += self._over("step", f"{each.letter.upper()}_LOADS", [f"{each.letter}_from[step] += {tile};"])
        return lines

    def _fetched(self) -> list[str]:
        """A thread's values of one step, from shared memory: two terms for 8 rows, and for two of 16 columns."""
        rows, cols = operands_of(self.product)
        row = self._value(rows, "part", "warp_row + tm * 8 + quad")
        col = self._value(cols, "part / 2", f"warp_col + tn * 16 + {self.column('part % 2')}")
        return [
            *self._over("tm", "WM / 8", self._over("part", "2", [f"a_raw[to][tm][part] = {row};"])),
            *self._over("tn", "WN / 16", self._over("part", "4", [f"b_raw[to][tn][part] = {col};"])),
        ]

    def _value(self, operand: Operand, part: str, side: str) -> str:
        term, lead = f"first + place * NEAR + {part} * FAR", f"{operand.letter}_lead"
        at = f"[{side}][{lead} + {term}]" if operand.along else f"[{term}][{lead} + {side}]"
        return f"{self.tile(operand)}[buffer]{at}"

    def column(self, which: str) -> str:
        """The column, of sixteen, of the first or second of a thread's two."""
        return f"quad * NEAR + {which} * ASIDE"

    def _over(self, name: str, end: str, body: list[str]) -> list[str]:
        return ["#pragma unroll", *nest(f"for (int {name} = 0; {name} < {end}; {name}++)", body, self.unit)]

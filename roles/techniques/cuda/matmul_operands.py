"""The two operands of a tiled product: where their elements lie, and how they get into shared memory.

``staging`` registers: the next tiles wait in registers while these are used. ``staging`` async: ``cp.async`` puts them
into one of several buffers directly. ``W`` elements move at once: four where rows are aligned, else one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import Access
from roles.techniques.cpp.affine import ONE, stride
from roles.techniques.cpp.render import nest
from roles.techniques.cpp.syntax import Source, text_of
from roles.techniques.cuda.products import Product
from roles.techniques.cuda.shared_memory import RESERVED as SHARED_NAMES

_NAMES = """
BM BN BK W STAGES PAD SPLITS THREADS A_LOADS B_LOADS a_tile b_tile a_next b_next at step part inside buffer
k_first k_end k_tile k_share row_first col_first block_at band band_top band_rows stage
"""
RESERVED = frozenset(_NAMES.split()) | SHARED_NAMES


@dataclass(frozen=True)
class Operand:
    """One operand: ``letter`` a or b, ``size`` BM or BN, ``index`` the output's index that it depends on."""

    access: Access
    letter: str
    size: str
    index: str
    along: bool
    pitch: str

    @property
    def first(self) -> str:
        """The block's first index."""
        return "row_first" if self.letter == "a" else "col_first"

    @property
    def place(self) -> tuple[str, str]:
        """Place in the tile, (depth, side), of load number ``at``: neighbouring threads read neighbours."""
        if self.along:
            return "at % (BK / W) * W", "at / (BK / W)"
        return f"at / ({self.size} / W)", f"at % ({self.size} / W) * W"


def operands_of(product: Product) -> tuple[Operand, Operand]:
    """Both operands of a product."""
    rows = _operand(product, product.row_read, "a", "BM", product.row)
    return rows, _operand(product, product.col_read, "b", "BN", product.col)


def _operand(product: Product, access: Access, letter: str, size: str, index: str) -> Operand:
    along = access.index is not None and stride(access.index, product.depth) == ONE
    fast, slow = (product.depth, index) if along else (index, product.depth)
    return Operand(access, letter, size, index, along, _pitch(product, access, fast, slow))


def _pitch(product: Product, access: Access, fast: str, slow: str) -> str:
    """The parameter ``p`` of an index ``slow * p + fast``; empty for any other index."""
    for each in product.plane.kernel.parameters:
        if access.index == {tuple(sorted((slow, each.name))): 1, (fast,): 1}:
            return each.name
    return ""


@dataclass(frozen=True)
class Staging:
    """Renders how tiles get into shared memory."""

    source: Source
    product: Product
    setting: Mapping[str, Parameter]

    @property
    def unit(self) -> str:
        """The step of indentation."""
        return self.source.indent_unit

    @property
    def direct(self) -> bool:
        """True when elements go to shared memory without passing through registers."""
        return self.setting["staging"] != "registers"

    def wide_when(self) -> str:
        """The condition on parameters under which four neighbours of a row may move at once; empty for never.

        Rows may be longer than what the product reads of them: then the last four of a row hold what lies behind it.
        """
        operands = operands_of(self.product)
        if self.setting["width"] != 4 or not all(each.pitch for each in operands):
            return ""
        plane, depth = self.product.plane, text_of(self.product.reduction.loop.bound)
        extents = {depth if each.along else plane.bound[each.index] for each in operands}
        return " && ".join(f"{each} % 4 == 0" for each in sorted(extents | {each.pitch for each in operands}))

    def natural(self, operand: Operand) -> bool:
        """True when the tile keeps the operand's own order, False when depth is its slow index."""
        return self.direct and operand.along

    def shape(self, operand: Operand) -> str:
        """Extents of one buffer."""
        return f"[{operand.size}][BK + PAD]" if self.natural(operand) else f"[BK][{operand.size} + PAD]"

    def slot(self, operand: Operand, buffer: str, k_at: str, side_at: str) -> str:
        """Where an element of an operand lies in shared memory."""
        first, second = (side_at, k_at) if self.natural(operand) else (k_at, side_at)
        return f"{self.tile(operand)}[{buffer}][{first}][{second}]"

    def tile(self, operand: Operand) -> str:
        """Name of the operand's buffers."""
        return f"{operand.letter}_tile"

    def arrays(self) -> list[tuple[str, str]]:
        """Name and extents of both operands' buffers."""
        return [(self.tile(each), f"[STAGES]{self.shape(each)}") for each in operands_of(self.product)]

    def main_loop(self, multiply: list[str]) -> list[str]:
        """The loop over tiles around ``multiply``, which works on ``buffer``."""
        return self._async_loop(multiply) if self.direct else self._register_loop(multiply)

    def _register_loop(self, multiply: list[str]) -> list[str]:
        body = [
            *self._load("k_tile + BK"),
            *multiply,
            *nest("if (k_tile + BK < k_end)", self._keep("1 - buffer"), self.unit),
            "__syncthreads();",
            "buffer = 1 - buffer;",
        ]
        return [
            "alignas(16) float a_next[A_LOADS][W], b_next[B_LOADS][W];",
            "int buffer = 0;",
            *self._load("k_first"),
            *self._keep("0"),
            "__syncthreads();",
            *nest("for (int k_tile = k_first; k_tile < k_end; k_tile += BK)", body, self.unit),
        ]

    def _async_loop(self, multiply: list[str]) -> list[str]:
        """Copies run STAGES - 1 tiles ahead; a group is committed for each tile, empty ones too, to keep count."""
        ahead = [*self._copy("k_first + stage * BK", "stage"), "__pipeline_commit();"]
        next_tile = "k_tile + (STAGES - 1) * BK"
        body = [
            "__pipeline_wait_prior(STAGES - 2);",
            "__syncthreads();  // this tile has arrived, and all are done with the one that is overwritten next",
            *nest(f"if ({next_tile} < k_end)", self._copy(next_tile, "(buffer + STAGES - 1) % STAGES"), self.unit),
            "__pipeline_commit();",
            *multiply,
            "buffer = (buffer + 1) % STAGES;",
        ]
        return [
            "int buffer = 0;",
            "#pragma unroll",
            *nest("for (int stage = 0; stage < STAGES - 1; stage++)", ahead, self.unit),
            *nest("for (int k_tile = k_first; k_tile < k_end; k_tile += BK)", body, self.unit),
        ]

    def _steps(self, operand: Operand, body: list[str]) -> list[str]:
        opening = f"for (int step = 0; step < {operand.letter.upper()}_LOADS; step++)"
        return ["#pragma unroll", *nest(opening, ["const int at = threadIdx.x + step * THREADS;", *body], self.unit)]

    def _element(self, operand: Operand, start: str) -> list[str]:
        """Names of one load's indices, and whether it lies inside the matrix."""
        plane, loop = self.product.plane, self.product.reduction.loop
        k_at, side_at = operand.place
        bound = plane.bound[operand.index]
        whole = f"at < {operand.size} * BK / W"
        return [
            f"const {plane.type} {operand.index} = {operand.first} + {side_at};",
            f"const {loop.type} {self.product.depth} = {start} + {k_at};",
            f"const bool inside = {whole} && {operand.index} < {bound} && {self.product.depth} < k_end;",
        ]

    def _load(self, start: str) -> list[str]:
        """Into registers, zeros outside of the matrices."""
        lines: list[str] = []
        for each in operands_of(self.product):
            address, value = f"&{text_of(each.access.node)}", text_of(each.access.node)
            vector = f"*reinterpret_cast<const float4*>({address})"
            four = [
                f"*reinterpret_cast<float4*>({each.letter}_next[step]) =",
                f"{self.unit}inside ? {vector} : make_float4(0.0f, 0.0f, 0.0f, 0.0f);",
            ]
            one = [f"{each.letter}_next[step][0] = inside ? {value} : 0.0f;"]
            body = [*self._element(each, start), *self._by_width(four, one)]
            lines += self._steps(each, body)
        return lines

    def _by_width(self, four: list[str], one: list[str]) -> list[str]:
        if not self.wide_when():
            return one
        return [*nest("if constexpr (W == 4)", four, self.unit)[:-1], *nest("} else", one, self.unit)]

    def _keep(self, buffer: str) -> list[str]:
        """From registers into shared memory."""
        lines: list[str] = []
        for each in operands_of(self.product):
            k_at, side_at = each.place
            places = (f"{k_at} + part", side_at) if each.along else (k_at, f"{side_at} + part")
            store = [f"{self.slot(each, buffer, *places)} = {each.letter}_next[step][part];"]
            parts = ["#pragma unroll", *nest("for (int part = 0; part < W; part++)", store, self.unit)]
            lines += self._steps(each, nest(f"if (at < {each.size} * BK / W)", parts, self.unit))
        return lines

    def _copy(self, start: str, buffer: str) -> list[str]:
        """From global into shared memory, without waiting; zeros outside of the matrices."""
        lines: list[str] = []
        for each in operands_of(self.product):
            target = f"&{self.slot(each, buffer, *each.place)}"
            source = f"inside ? &{text_of(each.access.node)} : {each.access.array}"
            copy = f"__pipeline_memcpy_async({target}, {source}, 4 * W, inside ? 0 : 4 * W);"
            guarded = nest(f"if (at < {each.size} * BK / W)", [copy], self.unit)
            lines += self._steps(each, [*self._element(each, start), *guarded])
        return lines

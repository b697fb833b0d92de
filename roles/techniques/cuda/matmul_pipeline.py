"""A product on tensor cores whose next operands are on their way: into shared memory, and from there to registers.

``cp.async`` runs several tiles ahead. While a step of eight terms is multiplied, the values of the next one are read,
of the next tile after a tile's last step; so tensor cores have work on both sides of the barrier. Every load of a tile
has its own pointer, moved on by a tile's depth; rows beyond the matrix are read as its last one, for nobody stores what
they give, and only terms beyond the depth become zeros.

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

RESERVED = frozenset(["a_from", "b_from", "a_raw", "b_raw", "k_next", "next", "slot", "STEPS", "zeros"])


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
    def paired(self) -> bool:
        """True when a thread's two terms of a step are neighbours; else they are four apart, as PTX numbers them."""
        return not operands_of(self.product)[1].along

    def natural(self, operand: Operand) -> bool:
        """Fragments are loaded from either order."""
        return operand.along

    def shape(self, operand: Operand) -> str:
        """A warp reads pairs or values of 8 rows and 4 places; with these lengths of a row each has its own bank."""
        along, across = ("BK + 8", f"{operand.size} + 4") if self.paired else ("BK + 4", f"{operand.size} + 8")
        return f"[{operand.size}][{along}]" if operand.along else f"[BK][{across}]"

    def term(self, part: str) -> str:
        """Which of a step's eight terms a thread's value number ``part`` belongs to."""
        return f"place * 2 + {part}" if self.paired else f"place + {part} * 4"

    def pipeline(self, multiply: list[str]) -> list[str]:
        """The loop over tiles around ``multiply``, which works on the values ``[step % 2]``."""
        step = [
            *nest("if (step == STEPS - 1)", self._turn(), self.unit),
            *self._fetch("(step + 1) % 2", "(step + 1) % STEPS * 8"),
            *nest("if (step == 0)", self._advance("slot"), self.unit),
            *multiply,
        ]
        steps = ["#pragma unroll", *nest("for (int step = 0; step < STEPS; step++)", step, self.unit)]
        return [
            *self._pointers(),
            "int k_next = k_first, buffer = 0, slot = STAGES - 1;",
            "#pragma unroll",
            *nest("for (int stage = 0; stage < STAGES - 1; stage++)", self._advance("stage"), self.unit),
            "__pipeline_wait_prior(STAGES - 2);",
            "__syncthreads();",
            *self._fetch("0", "0"),
            *nest("for (int k_tile = k_first; k_tile < k_end; k_tile += BK)", steps, self.unit),
        ]

    def _turn(self) -> list[str]:
        return [
            "__pipeline_wait_prior(STAGES - 2);",
            "__syncthreads();  // the next tile has arrived, and all have read this one",
            "slot = buffer;",
            "buffer = buffer + 1 < STAGES ? buffer + 1 : 0;",
        ]

    def _pointers(self) -> list[str]:
        """Where each of a thread's loads begins."""
        lines: list[str] = []
        plane, loop = self.product.plane, self.product.reduction.loop
        for each in operands_of(self.product):
            letter, bound = each.letter, plane.bound[each.index]
            k_at, side_at = each.place
            last = f"{bound} - 1" if each.along else f"{bound} - W"
            body = [
                f"const {loop.type} {self.product.depth} = k_first + {k_at};",
                f"const {plane.type} next = {each.first} + {side_at};",
                f"const {plane.type} {each.index} = next < {bound} ? next : {last};",
                f"{letter}_from[step] = &{text_of(each.access.node)};",
            ]
            lines += [f"const float* {letter}_from[{letter.upper()}_LOADS];", *self._steps(each, body)]
        return lines

    def _advance(self, slot: str) -> list[str]:
        """Starts the copies of one tile; a group is committed for each, empty ones too, to keep count."""
        lines: list[str] = []
        for each in operands_of(self.product):
            letter, (k_at, side_at) = each.letter, each.place
            further = "BK" if each.along else f"BK * static_cast<size_t>({each.pitch})"
            target = f"&{self.slot(each, slot, k_at, side_at)}"
            copy = [
                f"const int zeros = k_next + {k_at} < k_end ? 0 : 4 * W;",
                f"__pipeline_memcpy_async({target}, {letter}_from[step], 4 * W, zeros);",
            ]
            body = [*nest(f"if (at < {each.size} * BK / W)", copy, self.unit), f"{letter}_from[step] += {further};"]
            lines += self._steps(each, body)
        return [*lines, "__pipeline_commit();", "k_next += BK;"]

    def _fetch(self, to: str, first: str) -> list[str]:
        """A thread's values of one step, from shared memory: two for 8 rows, four for 16 columns."""
        rows, cols = operands_of(self.product)
        return [
            *self._over("tm", "WM / 8", self._values(rows, to, first, "warp_row + tm * 8 + quad")),
            *self._over("tn", "WN / 16", self._columns(cols, to, first)),
        ]

    def _values(self, operand: Operand, to: str, first: str, side: str) -> list[str]:
        """Two terms of one row."""
        if operand.along and self.paired:
            pair = self.slot(operand, "buffer", f"{first} + place * 2", side)
            return [self._pair(f"a_raw[{to}][tm]", pair)]
        value = self.slot(operand, "buffer", f"{first} + {self.term('part')}", side)
        return self._over("part", "2", [f"a_raw[{to}][tm][part] = {value};"])

    def _columns(self, operand: Operand, to: str, first: str) -> list[str]:
        """Two columns of two terms."""
        if self.paired:
            pair = self.slot(operand, "buffer", f"{first} + {self.term('part')}", "warp_col + tn * 16 + quad * 2")
            return self._over("part", "2", [self._pair(f"b_raw[{to}][tn] + part * 2", pair)])
        side = f"warp_col + tn * 16 + {self.column('part')}"
        value = self.slot(operand, "buffer", f"{first} + {self.term('part / 2')}", side)
        return self._over("part", "4", [f"b_raw[{to}][tn][part] = {value};"])

    def column(self, part: str) -> str:
        """The column, of sixteen, of a thread's value or sum number ``part`` modulo two."""
        return f"quad * 2 + {part} % 2" if self.paired else f"quad + {part} % 2 * 8"

    def _pair(self, target: str, source: str) -> str:
        target = target if " + " in target else f"&{target}[0]"
        return f"*reinterpret_cast<float2*>({target}) = *reinterpret_cast<const float2*>(&{source});"

    def _over(self, name: str, end: str, body: list[str]) -> list[str]:
        return ["#pragma unroll", *nest(f"for (int {name} = 0; {name} < {end}; {name}++)", body, self.unit)]

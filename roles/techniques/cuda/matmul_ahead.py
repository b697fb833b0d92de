"""Renders a product on tensor cores with operands ahead of their use (see ``matmul_pipeline``).

``parts`` mixed: the two products with a small part, of eight terms each, are the sixteen terms of one instruction on
bfloat16 values. A small part is then good for 2^-20 of its value: a sum of 4096 terms errs as one added in single
precision does anyway, a shallow sum some three times as much. ``tests/roles/test_tensor_precision.py`` models it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from protocol.messages import Parameter
from roles.techniques.cpp.render import nest
from roles.techniques.cpp.syntax import Source
from roles.techniques.cuda.matmul_choice import ChoosingLaunching
from roles.techniques.cuda.matmul_pipeline import AheadStaging
from roles.techniques.cuda.products import Product
from roles.techniques.cuda.shared_memory import declared
from roles.techniques.cuda.signature import restricted
from roles.techniques.cuda.tf32_parts import BEGIN, BEGIN_CROSS, CROSS, MULTIPLY, PACKED, SPLIT


@dataclass(frozen=True)
class AheadWriter:
    """A warp owns WM x WN outputs in pieces of 8 rows and 16 columns."""

    source: Source
    product: Product
    setting: Mapping[str, Parameter]

    @property
    def _unit(self) -> str:
        return self.source.indent_unit

    @property
    def staging(self) -> AheadStaging:
        """How the tiles get into shared memory and their values into registers."""
        return AheadStaging(self.source, self.product, self.setting)

    @property
    def launching(self) -> ChoosingLaunching:
        """What surrounds the kernel."""
        threads = "32 * (BM / WM) * (BN / WN)"
        when, extents = self.staging.wide_when(), tuple(extents for _, extents in self.staging.arrays())
        return ChoosingLaunching(self.source, self.product, self.setting, ("WM", "WN"), threads, when, extents)

    def kernel(self) -> list[str]:
        """The kernel."""
        name, launching, staging = self.product.plane.kernel.name, self.launching, self.staging
        body = [
            f"constexpr int BK = {name}_bk, STAGES = {name}_stages, INSIDE = {name}_inside;",
            f"constexpr int THREADS = {launching.threads};",
            *staging.sizes(),
            *declared(self.setting, staging.arrays()),
            "const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;",
            "const int quad = lane / 4, place = lane % 4;",
            "const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;",
            *launching.place(),
            "float sums[WN / 16][WM / 8][4] = {};",
            "float a_raw[2][WM / 8][2], b_raw[2][WN / 16][4];",
            "float inner[INSIDE > 8 ? WN / 16 : 1][WM / 8][4];",
            *staging.pipeline(self._multiply()),
            *self._epilogue(),
        ]
        bounds = f"__launch_bounds__({launching.threads}, {launching.blocks()})"
        return [
            SPLIT,
            MULTIPLY,
            *([PACKED, CROSS, BEGIN_CROSS] if self._mixed else [BEGIN]),
            "// matmul_tensor: tensor cores on the two TF32 parts of every value, three products for each; a tensor",
            "// core truncates as it adds, so it adds a few terms alone and the rest is added with rounding. Its 16",
            "// rows are columns here. The values of the next step are read while those of this one are multiplied.",
            launching.template(),
            *nest(f"__global__ void {bounds} {name}{restricted(self.product.plane.kernel)}", body, self._unit),
        ]

    def _over(self, name: str, end: str, body: list[str]) -> list[str]:
        return ["#pragma unroll", *nest(f"for (int {name} = 0; {name} < {end}; {name}++)", body, self._unit)]

    @property
    def _mixed(self) -> bool:
        return self.setting["parts"] == "mixed"

    def _multiply(self) -> list[str]:
        """One step: the products of its eight terms, small ones first, and after ``INSIDE`` terms to the others."""
        small, rows, cols = self._crossed() if self._mixed else self._small()
        added = self._over("part", "4", ["sums[tn][tm][part] += mine[tm][part];"])
        columns = [
            "unsigned b_high[4], b_low[4];",
            *self._over("part", "4", ["split(b_raw[step % 2][tn][part], b_high[part], b_low[part]);"]),
            *cols,
            "auto& mine = inner[INSIDE > 8 ? tn : 0];",
            *small,
            *self._over("tm", "WM / 8", ["multiply(mine[tm], b_high, a_high[tm]);"]),
            *nest("if (turn == INSIDE / 8 - 1)", self._over("tm", "WM / 8", added), self._unit),
        ]
        split = ["split(a_raw[step % 2][tm][part], a_high[tm][part], a_low[tm][part]);"]
        return [
            "const int turn = step % (INSIDE / 8);",
            "unsigned a_high[WM / 8][2], a_low[WM / 8][2];",
            *self._over("tm", "WM / 8", self._over("part", "2", split)),
            *rows,
            *self._over("tn", "WN / 16", columns),
        ]

    def _first(self, call: str, arguments: str) -> list[str]:
        """The first product of a step, which begins the inner sums where it is their turn."""
        return self._over(
            "tm",
            "WM / 8",
            [
                "if (turn == 0)",
                f"{self._unit}begin(mine[tm], {arguments});",
                "else",
                f"{self._unit}{call}(mine[tm], {arguments});",
            ],
        )

    def _small(self) -> tuple[list[str], list[str], list[str]]:
        """Both products with a small part, in TF32; nothing to prepare for rows and columns."""
        second = self._over("tm", "WM / 8", ["multiply(mine[tm], b_high, a_low[tm]);"])
        return [*self._first("multiply", "b_low, a_high[tm]"), *second], [], []

    def _crossed(self) -> tuple[list[str], list[str], list[str]]:
        """Both products with a small part as one of sixteen terms: rows' small parts meet columns' values there, and
        the other way round."""
        rows = [
            f"a_mixed[tm][0] = packed({self._low('a_low[tm][0]')}, {self._low('a_low[tm][1]')});",
            "a_mixed[tm][1] = packed(a_raw[step % 2][tm][0], a_raw[step % 2][tm][1]);",
        ]
        cols = [
            "b_mixed[part] = packed(b_raw[step % 2][tn][part], b_raw[step % 2][tn][part + 2]);",
            f"b_mixed[part + 2] = packed({self._low('b_low[part]')}, {self._low('b_low[part + 2]')});",
        ]
        return (
            self._first("cross", "b_mixed, a_mixed[tm]"),
            ["unsigned a_mixed[WM / 8][2];", *self._over("tm", "WM / 8", rows)],
            ["unsigned b_mixed[4];", *self._over("part", "2", cols)],
        )

    def _low(self, bits: str) -> str:
        return f"__uint_as_float({bits})"

    def _epilogue(self) -> list[str]:
        """The kernel's own epilogue for each of a thread's sums, where the instruction leaves them."""
        product, plane = self.product, self.product.plane
        element = [
            f"const {plane.type} {product.row} = row_first + warp_row + tm * 8 + place * 2 + part % 2;",
            f"const {plane.type} {product.col} = col_first + warp_col + tn * 16 + {self.staging.column('part / 2')};",
            *self.launching.store("sums[tn][tm][part]"),
        ]
        return self._over("tm", "WM / 8", self._over("tn", "WN / 16", self._over("part", "4", element)))

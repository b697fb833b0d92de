"""How a tiled product is launched: the order of blocks, the split of the depth, and the choice of a tile by size."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from protocol.messages import Parameter
from roles.techniques.cpp.render import nest
from roles.techniques.cpp.syntax import Source, text_of
from roles.techniques.cuda.launches import rewritten
from roles.techniques.cuda.products import Product
from roles.techniques.cuda.shared_memory import launched
from roles.techniques.cuda.signature import restricted

SCRATCH = 1 << 23
BUSY = 264  # blocks that keep the multiprocessors of a large GPU busy twice


@dataclass(frozen=True)
class Launching:
    """Renders what surrounds the kernel. ``inner`` names the tile inside a block's tile: TM, TN or WM, WN.
    ``extents`` are those of the arrays in shared memory."""

    source: Source
    product: Product
    setting: Mapping[str, Parameter]
    inner: tuple[str, str]
    threads: str
    wide_when: str
    extents: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return self.product.plane.kernel.name

    @property
    def split(self) -> bool:
        """True when several blocks may k_share the depth of one tile."""
        return int(self.setting["splits"]) > 1

    @property
    def unit(self) -> str:
        """The step of indentation."""
        return self.source.indent_unit

    def template(self) -> str:
        """The kernel's template head."""
        first, second = self.inner
        tail = ", int SPLITS" if self.split else ""
        return f"template <int BM, int BN, int {first}, int {second}, int W{tail}>"

    def place(self) -> list[str]:
        """Which tile a block computes, and which part of the depth."""
        plane, name = self.product.plane, self.name
        down, across = "blockIdx.y", "blockIdx.x"
        lines: list[str] = []
        if int(self.setting["group"]):
            lines = [
                f"const int block_at = blockIdx.y * gridDim.x + blockIdx.x, band = {name}_group * gridDim.x;",
                f"const int band_top = block_at / band * {name}_group;",
                f"const int band_rows = gridDim.y - band_top < {name}_group ? gridDim.y - band_top : {name}_group;",
            ]
            down, across = "(band_top + block_at % band % band_rows)", "(block_at % band / band_rows)"
        lines += [f"const {plane.type} row_first = {down} * BM, col_first = {across} * BN;"]
        return [*lines, *self._depth()]

    def _depth(self) -> list[str]:
        depth = text_of(self.product.reduction.loop.bound)
        if not self.split:
            return [f"const int k_first = 0, k_end = {depth};"]
        return [
            f"const int k_share = ({depth} + SPLITS * BK - 1) / (SPLITS * BK) * BK;  // whole tiles",
            "const int k_first = SPLITS > 1 ? blockIdx.z * k_share : 0;",
            f"const int k_end = SPLITS > 1 && k_first + k_share < {depth} ? k_first + k_share : {depth};",
        ]

    def store(self, value: str) -> list[str]:
        """What is done with one sum whose row and column are named: the kernel's epilogue, or a part put aside."""
        product, plane = self.product, self.product.plane
        start = text_of(product.initial)
        zero = start.rstrip("fF").strip("0.") == ""
        rest = [line for each in product.epilogue for line in self.source.lines_of(each)]
        whole = [f"float {product.accumulator} = {'' if zero else f'{start} + '}{value};", *rest]
        inside = f"if ({product.row} < {plane.bound[product.row]} && {product.col} < {plane.bound[product.col]})"
        if self.split:
            aside = [f"{self._part('blockIdx.z')} = {value};"]
            whole = [*nest("if constexpr (SPLITS > 1)", aside, self.unit)[:-1], *nest("} else", whole, self.unit)]
        return nest(inside, whole, self.unit)

    def _part(self, number: str) -> str:
        product = self.product
        down, across = (product.plane.bound[each] for each in (product.row, product.col))
        at = f"(static_cast<size_t>({number}) * {down} + {product.row}) * {across} + {product.col}"
        return f"{self.name}_parts[{at}]"

    def scratch(self) -> list[str]:
        """Where parts of sums wait for each other."""
        if not self.split:
            return []
        return [f"static __device__ float {self.name}_parts[{SCRATCH}];  // sums of parts of the depth", ""]

    def after(self) -> list[str]:
        """The kernel that adds the parts, in order, and the host function that launches a tile size."""
        return [*(["", *self._fold()] if self.split else []), "", *self._launcher()]

    def _fold(self) -> list[str]:
        product, plane, name = self.product, self.product.plane, self.name
        down, across = (plane.bound[each] for each in (product.row, product.col))
        start = text_of(product.initial)
        rest = [line for each in product.epilogue for line in self.source.lines_of(each)]
        body = [
            f"const {plane.type} {product.col} = blockIdx.x * blockDim.x + threadIdx.x, {product.row} = blockIdx.y;",
            *nest(f"if ({product.row} >= {down} || {product.col} >= {across})", ["return;"], self.unit),
            f"float {product.accumulator} = {start};",
            "#pragma unroll",
            *nest(
                f"for (int part = 0; part < {name}_splits; part++)",
                [f"{product.accumulator} += {self._part('part')};"],
                self.unit,
            ),
            *rest,
        ]
        head = f"__global__ void __launch_bounds__(256) {name}_fold{restricted(plane.kernel)}"
        return ["// Adds the parts of every sum, always in the same order.", *nest(head, body, self.unit)]

    def _launcher(self) -> list[str]:
        product, plane, name = self.product, self.product.plane, self.name
        down, across = (plane.bound[each] for each in (product.row, product.col))
        names = ", ".join(each.name for each in plane.kernel.parameters)
        first, second = self.inner
        given = f"BM, BN, {first}, {second}, W"
        body = [f"const dim3 grid(({across} - 1) / BN + 1, ({down} - 1) / BM + 1);"]
        if self.split:
            depth = text_of(product.reduction.loop.bound)
            room = f"static_cast<size_t>({down}) * {across} * {name}_splits <= {SCRATCH}"
            worth = f"grid.x * grid.y < {BUSY} && {depth} >= 2 * {name}_bk * {name}_splits && {down} < 65536"
            parted = [
                f"const dim3 parts(grid.x, grid.y, {name}_splits);",
                *self._launched(f"{name}<{given}, {name}_splits>", "parts"),
                f"{name}_fold<<<dim3(({across} - 1) / 256 + 1, {down}), 256>>>({names});",
            ]
            one = self._launched(f"{name}<{given}, 1>", "grid")
            body += [*nest(f"if ({worth} && {room})", parted, self.unit)[:-1], *nest("} else", one, self.unit)]
        else:
            body += self._launched(f"{name}<{given}>", "grid")
        head = f"static void launch_{name}{plane.kernel.parameter_text}"
        return [f"template <int BM, int BN, int {first}, int {second}, int W>", *nest(head, body, self.unit)]

    def _launched(self, kernel: str, grid: str) -> list[str]:
        """The launch of one instance."""
        names = ", ".join(each.name for each in self.product.plane.kernel.parameters)
        size = " + ".join(f"sizeof(float{each})" for each in self.extents)
        here = re.sub(r"\b(BK|STAGES|PAD)\b", lambda found: f"{self.name}_{found[1].lower()}", size)
        return launched(self.setting, kernel, grid, self.threads, names, here)

    def host(self) -> list[str]:
        """The statement of ``solve`` that takes the place of the launch."""
        product, kernel = self.product, self.product.plane.kernel
        down, across = (kernel.argument_of(product.plane.bound[each]) for each in (product.row, product.col))
        sizes = [f"{self.name}_{each}" for each in ("bm", "bn", *(each.lower() for each in self.inner))]
        body = self.by_alignment(sizes)
        if int(self.setting["small"]):
            large = " * ".join(
                f"(({count} - 1) / {size} + 1)" for count, size in ((down, sizes[0]), (across, sizes[1]))
            )
            body = [
                "// Few blocks: smaller tiles, so that every multiprocessor gets one.",
                *nest(f"if ({large} >= {self.name}_small)", body, self.unit)[:-1],
                *nest("} else", self.by_alignment(self._smaller(sizes)), self.unit),
            ]
        return nest(f"if ({down} > 0 && {across} > 0)", body, self.unit)

    def _smaller(self, sizes: list[str]) -> list[str]:
        """Half of the block's tile each way; the inner tile halved where that keeps a whole instruction or vector.

        Scalar sums stay as tall as they are where two warps are left: the more sums a value read from shared memory
        serves, the better.
        """
        bm, bn, first, second = sizes
        if self.inner[0] != "TM":
            return [f"{bm} / 2", f"{bn} / 2", *(f"({size} > 16 ? {size} / 2 : 16)" for size in (first, second))]
        width = f"({second} > 4 ? {second} / 2 : 4)"
        height = f"({bm} / 2 / {first} * ({bn} / 2 / {width}) >= 64 || {first} == 4 ? {first} : {first} / 2)"
        return [f"{bm} / 2", f"{bn} / 2", height, width]

    def by_alignment(self, sizes: list[str]) -> list[str]:
        """The launch with these sizes, of vectors where rows are aligned."""
        kernel = self.product.plane.kernel
        given = ", ".join(sizes)
        one = f"launch_{self.name}<{given}, 1>({kernel.argument_text});"
        if not self.wide_when:
            return [one]
        aligned = " && ".join(
            f"{kernel.argument_of(each.split(' ')[0])} % 4 == 0" for each in self.wide_when.split(" && ")
        )
        four = f"launch_{self.name}<{given}, 4>({kernel.argument_text});"
        return [*nest(f"if ({aligned})", [four], self.unit)[:-1], *nest("} else", [one], self.unit)]

    def placed(self, lines: list[str]) -> str:
        """The text with the kernel replaced by ``lines``, and its launch by the host's statement."""
        return rewritten(self.source, self.product.plane.kernel, [*lines, *self.after()], self.host())

"""Matrix product in tiles: shared memory feeds a tile of accumulators in every thread's registers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import Access
from roles.techniques.cpp.affine import ONE, stride
from roles.techniques.cpp.render import nest, substituted
from roles.techniques.cpp.syntax import Edit, Grammar, Source, identifiers, indented, of_type, text_of
from roles.techniques.cuda.launches import kernels_in, without_leftovers
from roles.techniques.cuda.planes import plane_of
from roles.techniques.cuda.products import Product, product_of
from roles.techniques.transform import Choices, Match, TreeTransform

_TILES = ("BM", "BN", "BK", "TM", "TN", "THREADS", "A_LOADS", "B_LOADS", "a_tile", "b_tile", "a_next", "b_next")
RESERVED = frozenset(
    (*_TILES, "sums", "ty", "tx", "at", "tm", "tn", "k_tile", "step", "a_values", "b_values", "buffer")
)


@dataclass(frozen=True)
class TileWriter:
    """Renders one product."""

    source: Source
    product: Product

    def kernel(self) -> list[str]:
        """The kernel: tiles of the two operands in shared memory, the next ones on their way in registers."""
        product, name = self.product, self.product.plane.kernel.name
        body = [
            f"constexpr int BM = {name}_bm, BN = {name}_bn, BK = {name}_bk, TM = {name}_tm, TN = {name}_tn;",
            "constexpr int THREADS = (BM / TM) * (BN / TN);",
            "constexpr int A_LOADS = (BM * BK + THREADS - 1) / THREADS, B_LOADS = (BK * BN + THREADS - 1) / THREADS;",
            "alignas(16) __shared__ float a_tile[2][BK][BM + 4];",
            "alignas(16) __shared__ float b_tile[2][BK][BN + 4];",
            "const int ty = threadIdx.x / (BN / TN), tx = threadIdx.x % (BN / TN);",
            f"const {self._kind} row_first = blockIdx.y * BM, col_first = blockIdx.x * BN;",
            "float sums[TM][TN] = {};",
            *self._tiles(),
            *self._epilogue(),
        ]
        head = f"__global__ void __launch_bounds__({threads(name)}) {name}{product.plane.kernel.parameter_text}"
        return [
            "// matmul_tile: each thread keeps TM x TN sums; the next tiles are loaded while these are used.",
            *nest(head, body, self._unit),
        ]

    def _tiles(self) -> list[str]:
        """The loop over tiles: load the next ones, multiply with these, store the next ones, meet."""
        depth = text_of(self.product.reduction.loop.bound)
        compute = [
            *self._load("next"),
            *self._multiply(),
            *nest(f"if (k_tile + BK < {depth})", self._keep("1 - buffer"), self._unit),
            "__syncthreads();",
            "buffer = 1 - buffer;",
        ]
        return [
            "float a_next[A_LOADS], b_next[B_LOADS];",
            "int buffer = 0;",
            *self._load("first"),
            *self._keep("0"),
            "__syncthreads();",
            *nest(f"for (int k_tile = 0; k_tile < {depth}; k_tile += BK)", compute, self._unit),
        ]

    @property
    def _unit(self) -> str:
        return self.source.indent_unit

    @property
    def _kind(self) -> str:
        return self.product.plane.type

    def _along_depth(self, access: Access) -> bool:
        return access.index is not None and stride(access.index, self.product.depth) == ONE

    def _place(self, access: Access, size: str) -> tuple[str, str]:
        """Place in the tile, (depth, side), of load number ``at``: neighbouring threads read neighbouring elements."""
        return ("at % BK", "at / BK") if self._along_depth(access) else (f"at / {size}", f"at % {size}")

    def _operands(self) -> list[tuple[Access, str, str, str]]:
        product = self.product
        return [(product.row_read, "a", "BM", product.row), (product.col_read, "b", "BN", product.col)]

    def _load(self, which: str) -> list[str]:
        """Into registers, zeros outside of the matrices."""
        lines: list[str] = []
        start = "" if which == "first" else "k_tile + BK + "
        for access, letter, size, index in self._operands():
            k_at, side_at = self._place(access, size)
            depth, bound = self.product.depth, self.product.plane.bound[index]
            first = "row_first" if letter == "a" else "col_first"
            inside = f"at < {size} * BK && {index} < {bound} && {depth} < {text_of(self.product.reduction.loop.bound)}"
            element = [
                "const int at = threadIdx.x + step * THREADS;",
                f"const {self._kind} {index} = {first} + {side_at};",
                f"const {self.product.reduction.loop.type} {depth} = {start}{k_at};",
                f"{letter}_next[step] = {inside} ? {text_of(access.node)} : 0.0f;",
            ]
            opening = f"for (int step = 0; step < {letter.upper()}_LOADS; step++)"
            lines += ["#pragma unroll", *nest(opening, element, self._unit)]
        return lines

    def _keep(self, buffer: str) -> list[str]:
        """From registers into shared memory."""
        lines: list[str] = []
        for access, letter, size, _ in self._operands():
            slot = self._slot(access, letter, buffer, *self._place(access, size))
            store = nest(f"if (at < {size} * BK)", [f"{slot} = {letter}_next[step];"], self._unit)
            opening = f"for (int step = 0; step < {letter.upper()}_LOADS; step++)"
            element = ["const int at = threadIdx.x + step * THREADS;", *store]
            lines += ["#pragma unroll", *nest(opening, element, self._unit)]
        return lines

    def _slot(self, access: Access, letter: str, buffer: str, k_at: str, side_at: str) -> str:
        """Where an element of an operand lies in shared memory."""
        return f"{letter}_tile[{buffer}][{k_at}][{side_at}]"

    def _multiply(self) -> list[str]:
        over_m, over_n = "for (int tm = 0; tm < TM; tm++)", "for (int tn = 0; tn < TN; tn++)"
        inner = [
            "float a_values[TM], b_values[TN];",
            "#pragma unroll",
            *nest(over_m, [f"a_values[tm] = a_tile[buffer][step][{ROW_OF}];"], self._unit),
            "#pragma unroll",
            *nest(over_n, [f"b_values[tn] = b_tile[buffer][step][{COL_OF}];"], self._unit),
            "#pragma unroll",
            *nest(
                over_m, ["#pragma unroll", *nest(over_n, [f"sums[tm][tn] += {self._term()};"], self._unit)], self._unit
            ),
        ]
        return ["#pragma unroll", *nest("for (int step = 0; step < BK; step++)", inner, self._unit)]

    def _term(self) -> str:
        update = self.product.reduction.update
        names = {
            text_of(self.product.row_read.node): "a_values[tm]",
            text_of(self.product.col_read.node): "b_values[tn]",
        }
        parts = []
        for part in update.fused or (update.term,):
            reads = [each for each in of_type(part, "subscript_expression") if text_of(each) in names]
            parts.append(substituted(part, [(each, names[text_of(each)]) for each in reads]))
        return " * ".join(f"({part})" if update.fused and " " in part else part for part in parts)

    def _epilogue(self) -> list[str]:
        product, plane = self.product, self.product.plane
        start = text_of(product.initial)
        zero = start.rstrip("fF").strip("0.") == ""
        lines = [line for each in product.epilogue for line in self.source.lines_of(each)]
        inside = f"if ({product.row} < {plane.bound[product.row]} && {product.col} < {plane.bound[product.col]})"
        store = [f"float {product.accumulator} = {'' if zero else f'{start} + '}sums[tm][tn];", *lines]
        element = [
            f"const {self._kind} {product.row} = row_first + {ROW_OF};",
            f"const {self._kind} {product.col} = col_first + {COL_OF};",
            *nest(inside, store, self._unit),
        ]
        inner = ["#pragma unroll", *nest("for (int tn = 0; tn < TN; tn++)", element, self._unit)]
        return ["#pragma unroll", *nest("for (int tm = 0; tm < TM; tm++)", inner, self._unit)]


ROW_OF = "tm / 4 * (BM / (TM / 4)) + ty * 4 + tm % 4"
COL_OF = "tn / 4 * (BN / (TN / 4)) + tx * 4 + tn % 4"


def threads(name: str) -> str:
    """Threads a block, from the knobs."""
    return f"({name}_bm / {name}_tm) * ({name}_bn / {name}_tn)"


class MatmulTile(TreeTransform):
    """Shared-memory and register tiles for a product with one thread an output."""

    grammar: ClassVar[Grammar] = "cuda"
    choices: ClassVar[Choices] = {
        "bm": (64, 128, 32),
        "bn": (64, 128, 32),
        "bk": (16, 8),
        "tm": (8, 4),
        "tn": (4, 8),
    }

    def matches(self, source: Source) -> Iterator[Match]:
        """Kernels that compute one element of a product a thread."""
        for kernel in kernels_in(source.root):
            plane = plane_of(kernel)
            product = product_of(plane) if plane is not None else None
            if product is not None and not RESERVED & identifiers(source.root):
                evidence = f"line {product.reduction.loop.line}: two loads for every multiply-add"
                yield Match(kernel.node, f"the kernel `{kernel.name}`", evidence, product)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """A new kernel, and a grid of tiles."""
        product: Product = match.data
        name = product.plane.kernel.name
        lines = [*_constants(name, parameters), "", *TileWriter(source, product).kernel()]
        return tiled(source, product, lines, threads(name))


def tiled(source: Source, product: Product, lines: list[str], block: str) -> str:
    """The text with the kernel replaced by ``lines`` and launched over tiles with ``block`` threads each."""
    kernel, name = product.plane.kernel, product.plane.kernel.name
    down, across = (kernel.argument_of(product.plane.bound[each]) for each in (product.row, product.col))
    grid = f"dim3(({across} - 1) / {name}_bn + 1, ({down} - 1) / {name}_bm + 1)"
    call = f"{name}<<<{grid}, {block}>>>({kernel.argument_text});"
    launch = kernel.launch.statement
    host = indented(nest(f"if ({down} > 0 && {across} > 0)", [call], source.indent_unit), source.indent_of(launch))
    return without_leftovers(
        source.replace(
            Edit(kernel.node.start_byte, kernel.node.end_byte, "\n".join(lines)),
            Edit(launch.start_byte, launch.end_byte, "\n".join(host).lstrip()),
        )
    )


def _constants(name: str, parameters: Mapping[str, Parameter]) -> list[str]:
    values = {"bm": "32, 64, 128", "bn": "32, 64, 128", "bk": "8, 16", "tm": "4, 8", "tn": "4, 8"}
    return [
        f"constexpr int {name}_{knob} = {parameters[knob]};  // knob: {name}_{knob} in {{{listed}}}"
        for knob, listed in values.items()
    ]

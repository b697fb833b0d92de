"""Matrix product in tiles: shared memory feeds a tile of accumulators in every thread's registers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from protocol.messages import Parameter
from roles.techniques.cpp.render import nest, substituted, with_includes
from roles.techniques.cpp.syntax import Source, identifiers, of_type, text_of
from roles.techniques.cuda.design import constants
from roles.techniques.cuda.enter import Enter
from roles.techniques.cuda.launches import Kernel, kernels_in
from roles.techniques.cuda.matmul_launch import Launching
from roles.techniques.cuda.matmul_operands import RESERVED, Operand, Staging, operands_of
from roles.techniques.cuda.planes import plane_of
from roles.techniques.cuda.products import Product, product_of
from roles.techniques.cuda.shared_memory import SHARED, declared, fits, suited
from roles.techniques.cuda.signature import restricted
from roles.techniques.transform import Choices

_NAMES = "TM TN ACROSS sums ty tx tm tn a_values b_values lane warp"
_OWN = frozenset(_NAMES.split())
ROW_OF = "tm / 4 * (BM / (TM / 4)) + ty * 4 + tm % 4"
COL_OF = "tn / 4 * (BN / (TN / 4)) + tx * 4 + tn % 4"


def products_in(source: Source, reserved: frozenset[str]) -> Iterator[Product]:
    """Kernels that compute one element of a product a thread, in files that use none of the reserved names."""
    names, found = _products(source)
    if not reserved & names:
        yield from found


@lru_cache(maxsize=32)
def _products(source: Source) -> tuple[frozenset[str], tuple[Product, ...]]:
    planes = [plane for each in kernels_in(source.root) if (plane := plane_of(each)) is not None]
    found = tuple(product for plane in planes if (product := product_of(plane)) is not None)
    return frozenset(identifiers(source.root)), found


@dataclass(frozen=True)
class TileWriter:
    """Renders one product on scalar multiply-adds."""

    source: Source
    product: Product
    setting: Mapping[str, Parameter]

    @property
    def unit(self) -> str:
        """The step of indentation."""
        return self.source.indent_unit

    @property
    def staging(self) -> Staging:
        """How the tiles get into shared memory."""
        return Staging(self.source, self.product, self.setting)

    @property
    def launching(self) -> Launching:
        """What surrounds the kernel."""
        when = self.staging.wide_when()
        threads = "(BM / TM) * (BN / TN)"
        extents = tuple(extents for _, extents in self.staging.arrays())
        return Launching(self.source, self.product, self.setting, ("TM", "TN"), threads, when, extents)

    def kernel(self) -> list[str]:
        """The kernel."""
        name, launching, staging = self.product.plane.kernel.name, self.launching, self.staging
        tiles = declared(self.setting, staging.arrays())
        body = [
            f"constexpr int BK = {name}_bk, STAGES = {name}_stages, PAD = {name}_pad, ACROSS = {name}_across;",
            f"constexpr int THREADS = {launching.threads};",
            *loads(),
            *tiles,
            "// A warp covers ACROSS columns of threads, so that its reads from both tiles fall together.",
            "const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;",
            "const int tx = warp % (BN / TN / ACROSS) * ACROSS + lane % ACROSS;",
            "const int ty = warp / (BN / TN / ACROSS) * (32 / ACROSS) + lane / ACROSS;",
            *launching.place(),
            "float sums[TM][TN] = {};",
            *staging.main_loop(self._multiply()),
            *self._epilogue(),
        ]
        bounds = f"__launch_bounds__({launching.threads}, {name}_blocks)"
        return [
            "// matmul_tile: each thread keeps TM x TN sums; the next tiles are on their way while these are used.",
            launching.template(),
            *nest(f"__global__ void {bounds} {name}{restricted(self.product.plane.kernel)}", body, self.unit),
        ]

    def _multiply(self) -> list[str]:
        rows, cols = operands_of(self.product)
        over_m, over_n = "for (int tm = 0; tm < TM; tm++)", "for (int tn = 0; tn < TN; tn++)"
        term = ["#pragma unroll", *nest(over_n, [f"sums[tm][tn] += {self._term()};"], self.unit)]
        inner = [
            "float a_values[TM], b_values[TN];",
            "#pragma unroll",
            *nest(over_m, [f"a_values[tm] = {self._value(rows, ROW_OF)};"], self.unit),
            "#pragma unroll",
            *nest(over_n, [f"b_values[tn] = {self._value(cols, COL_OF)};"], self.unit),
            "#pragma unroll",
            *nest(over_m, term, self.unit),
        ]
        name = self.product.plane.kernel.name
        return [f"#pragma unroll {name}_unroll", *nest("for (int step = 0; step < BK; step++)", inner, self.unit)]

    def _value(self, operand: Operand, side: str) -> str:
        return self.staging.slot(operand, "buffer", "step", side)

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
        element = [
            f"const {plane.type} {product.row} = row_first + {ROW_OF};",
            f"const {plane.type} {product.col} = col_first + {COL_OF};",
            *self.launching.store("sums[tm][tn]"),
        ]
        inner = ["#pragma unroll", *nest("for (int tn = 0; tn < TN; tn++)", element, self.unit)]
        return ["#pragma unroll", *nest("for (int tm = 0; tm < TM; tm++)", inner, self.unit)]


def loads() -> list[str]:
    """How many moves of ``W`` elements a thread makes for a tile of each operand."""
    return [
        "constexpr int A_LOADS = (BM * BK / W + THREADS - 1) / THREADS;",
        "constexpr int B_LOADS = (BK * BN / W + THREADS - 1) / THREADS;",
    ]


def shared_bytes(setting: Mapping[str, Parameter]) -> int:
    """Shared memory of the tiles, in the larger of their two layouts."""
    bm, bn, bk, pad, stages = (int(setting[name]) for name in ("bm", "bn", "bk", "pad", "stages"))
    return 4 * stages * sum(max(side * (bk + pad), bk * (side + pad + 4)) for side in (bm, bn))


def launch_options(setting: Mapping[str, Parameter]) -> list[str]:
    """Options of the launch that stand in the text as constants: those that are switched on."""
    return [name for name in ("group", "splits", "small") if int(setting[name]) > (name == "splits")]


def staged(setting: Mapping[str, Parameter]) -> bool:
    """True when the buffers suit the staging: two for registers, any for asynchronous copies."""
    return setting["staging"] != "registers" or setting["stages"] == 2


class MatmulTileFamily:
    """Products on scalar multiply-adds."""

    name: ClassVar[str] = "matmul_tile"
    title: ClassVar[str] = "register tiles"
    promise: ClassVar[float] = 1.8
    core: ClassVar[tuple[str, ...]] = ("bm", "bn", "bk", "tm", "tn")
    options: ClassVar[Choices] = {
        "bm": (64, 128, 32),
        "bn": (64, 128, 32),
        "bk": (16, 8, 32),
        "tm": (8, 4),
        "tn": (4, 8),
        "stages": (2, 3, 4),
        "pad": (4, 8, 12),
        "across": (8, 4, 16),
        "unroll": (32, 8, 4, 2),
        "blocks": (1, 2, 3, 4),
        "group": (0, 4, 8, 16),
        "splits": (1, 2, 4, 8),
        "small": (0, 132, 264, 66),
        "staging": ("registers", "async"),
        "width": (4, 1),
        **SHARED,
    }

    def problems(self, source: Source) -> Iterator[tuple[Kernel, str]]:
        """See ``Family``."""
        for product in products_in(source, RESERVED | _OWN):
            yield product.plane.kernel, f"line {product.reduction.loop.line}: two loads for every multiply-add"

    def write(self, source: Source, kernel: str, setting: Mapping[str, Parameter]) -> str | None:
        """See ``Family``."""
        for product in products_in(source, RESERVED | _OWN):
            if product.plane.kernel.name == kernel:
                writer = TileWriter(source, product, setting)
                names = ["bm", "bn", "bk", "tm", "tn", "stages", "pad", "across", "unroll", "blocks"]
                shown = constants(kernel, self, setting, [*names, *launch_options(setting)])
                lines = [*shown, "", *writer.launching.scratch(), *writer.kernel()]
                text = writer.launching.placed(lines)
                return with_includes(text, ("cuda_pipeline.h",)) if writer.staging.direct else text
        return None

    def sound(self, setting: Mapping[str, Parameter]) -> bool:
        """See ``Family``: whole warps, at most 512 threads, 48 KB, and registers for the blocks asked for."""
        bm, bn, tm, tn = (int(setting[name]) for name in ("bm", "bn", "tm", "tn"))
        across, blocks, small = (int(setting[name]) for name in ("across", "blocks", "small"))
        threads = (bm // tm) * (bn // tn)
        half = {**setting, **_halved(bm, bn, tm, tn), "small": 0}
        if small and not (min(bm, bn) >= 64 and self.sound({**half, "shared": suited(shared_bytes(half))})):
            return False
        whole = (bn // tn) % across == 0 and (bm // tm) % (32 // across) == 0 and 64 <= threads <= 512
        registers = blocks * threads * (tm * tn + tm + tn + 40) <= 65536
        return whole and registers and staged(setting) and fits(setting, shared_bytes(setting))


def _halved(bm: int, bn: int, tm: int, tn: int) -> dict[str, Parameter]:
    """The instance for small problems, as ``Launching`` writes it."""
    width = max(4, tn // 2)
    height = tm if bm // 2 // tm * (bn // 2 // width) >= 64 or tm == 4 else tm // 2
    return {"bm": bm // 2, "bn": bn // 2, "tm": height, "tn": width}


MATMUL_TILE = MatmulTileFamily()


class MatmulTile(Enter):
    """A product on scalar multiply-adds, in tiles."""

    def __init__(self) -> None:
        super().__init__(MATMUL_TILE)

"""Matrix product on tensor cores with the precision of single: each operand is split into two TF32 parts.

``x = high + low``, where ``high`` is x without its last thirteen bits; the tensor core reads as many bits of ``low``,
22 together. ``high * high + high * low + low * high`` loses only ``low * low``. The scheme is that of Markidis et
al., NVIDIA Tensor Core Programmability, Performance & Precision, 2018, and CUTLASS's "3xTF32". Cutting off costs two
instructions a value; rounding to TF32 costs four for each part on sm_90, more than the products themselves. A tensor
core cuts off what does not fit its accumulator instead of rounding it, so a long sum inside it drifts: 1.8 times the
tolerance of a 1024-deep product was seen on an H200. Therefore only 8 to 32 terms are added inside it; their sum is
then added in single precision with rounding, as in Ootomo and Yokota, Recovering single precision accuracy from Tensor
Cores, 2022. ``tests/roles/test_tensor_precision.py`` models both.

The instruction is written out (m16n8k8): what the library's 16 x 16 x 8 fragments compile to has half its depth.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from protocol.messages import Parameter
from roles.techniques.cpp.render import nest, with_includes
from roles.techniques.cpp.syntax import Source
from roles.techniques.cuda.design import constants
from roles.techniques.cuda.enter import Enter
from roles.techniques.cuda.launches import Kernel
from roles.techniques.cuda.matmul_ahead import AheadWriter
from roles.techniques.cuda.matmul_choice import RESERVED as CHOICE_NAMES
from roles.techniques.cuda.matmul_choice import others
from roles.techniques.cuda.matmul_launch import Launching
from roles.techniques.cuda.matmul_operands import RESERVED, Operand, Staging, operands_of
from roles.techniques.cuda.matmul_pipeline import RESERVED as AHEAD_NAMES
from roles.techniques.cuda.matmul_pipeline import possible, tile_bytes
from roles.techniques.cuda.matmul_tile import launch_options, loads, products_in, shared_bytes, staged
from roles.techniques.cuda.products import Product, is_plain_product
from roles.techniques.cuda.shared_memory import SHARED, declared, fits, suited
from roles.techniques.cuda.signature import restricted
from roles.techniques.cuda.tf32_parts import MULTIPLY, SPLIT
from roles.techniques.transform import Choices

_NAMES = """
lane warp warp_row warp_col quad place split multiply begin cross packed a_mixed b_mixed a_high a_low b_high b_low
inner mine turn deep INSIDE WM WN sums tm tn
"""
_OWN = frozenset(_NAMES.split()) | AHEAD_NAMES | CHOICE_NAMES
_LOOSE = ("pad", "unroll")  # options of tiles that are not ahead


@dataclass(frozen=True)
class TensorStaging(Staging):
    """Tiles in their operand's own order."""

    def natural(self, operand: Operand) -> bool:
        """Fragments are loaded from either order."""
        return operand.along

    def pitch(self, operand: Operand) -> str:
        """Length of a tile's row. A warp reads four values of eight rows where depth is fast, else eight values of four
        rows; with rows 4 banks longer than a multiple of 8, and 8 than one of 32, each of them has a bank of its own.
        """
        return "BK + PAD" if operand.along else f"{operand.size} + PAD + 4"

    def shape(self, operand: Operand) -> str:
        """See ``Staging``."""
        return f"[{operand.size if operand.along else 'BK'}][{self.pitch(operand)}]"


@dataclass(frozen=True)
class TensorWriter:
    """Renders one product for tensor cores: a warp owns WM x WN outputs in pieces of 16 x 8."""

    source: Source
    product: Product
    setting: Mapping[str, Parameter]

    @property
    def unit(self) -> str:
        """The step of indentation."""
        return self.source.indent_unit

    @property
    def staging(self) -> TensorStaging:
        """How the tiles get into shared memory."""
        return TensorStaging(self.source, self.product, self.setting)

    @property
    def launching(self) -> Launching:
        """What surrounds the kernel."""
        threads = "32 * (BM / WM) * (BN / WN)"
        when, extents = self.staging.wide_when(), tuple(extents for _, extents in self.staging.arrays())
        return Launching(self.source, self.product, self.setting, ("WM", "WN"), threads, when, extents)

    def kernel(self) -> list[str]:
        """The kernel."""
        name, launching, staging = self.product.plane.kernel.name, self.launching, self.staging
        tiles = declared(self.setting, staging.arrays())
        body = [
            f"constexpr int BK = {name}_bk, STAGES = {name}_stages, PAD = {name}_pad;",
            f"constexpr int THREADS = {launching.threads}, INSIDE = {name}_inside;",
            *loads(),
            *tiles,
            "const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;",
            "const int quad = lane / 4, place = lane % 4;",
            "const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;",
            *launching.place(),
            "float sums[WM / 16][WN / 8][4] = {};",
            *staging.main_loop(self._multiply()),
            *self._epilogue(),
        ]
        bounds = f"__launch_bounds__({launching.threads}, {name}_blocks)"
        return [
            SPLIT,
            MULTIPLY,
            "// matmul_tensor: tensor cores on the two TF32 parts of every value, three products for each; a tensor",
            "// core truncates as it adds, so it adds a few terms alone and the rest is added with rounding.",
            launching.template(),
            *nest(f"__global__ void {bounds} {name}{restricted(self.product.plane.kernel)}", body, self.unit),
        ]

    def _over(self, name: str, end: str, body: list[str]) -> list[str]:
        return ["#pragma unroll", *nest(f"for (int {name} = 0; {name} < {end}; {name}++)", body, self.unit)]

    def _parts(self, operand: Operand) -> list[str]:
        """The lines that read and split a thread's values of piece ``tm`` or ``tn``, as the instruction wants them."""
        letter, at = operand.letter, "step + deep * 8 + place"
        count = "4" if letter == "a" else "2"
        k_at = f"{at} + part / 2 * 4" if letter == "a" else f"{at} + part * 4"
        side = "warp_row + tm * 16 + quad + part % 2 * 8" if letter == "a" else "warp_col + tn * 8 + quad"
        value = self.staging.slot(operand, "buffer", k_at, side)
        target = "[part]" if letter == "a" else "[deep][tn][part]"
        return self._over("part", count, [f"split({value}, {letter}_high{target}, {letter}_low{target});"])

    def _multiply(self) -> list[str]:
        """``INSIDE`` terms of a sum are added by the tensor core, and their sum to the others with rounding."""
        rows, cols = operands_of(self.product)
        parts = [("a_low", "b_high[deep][tn]"), ("a_high", "b_low[deep][tn]"), ("a_high", "b_high[deep][tn]")]
        terms = [
            "unsigned a_high[4], a_low[4];",
            *self._parts(rows),
            *(line for a, b in parts for line in self._over("tn", "WN / 8", [f"multiply(inner[tn], {a}, {b});"])),
        ]
        added = self._over("part", "4", ["sums[tm][tn][part] += inner[tn][part];"])
        products = [
            "float inner[WN / 8][4] = {};",
            *self._over("deep", "INSIDE / 8", terms),
            *self._over("tn", "WN / 8", added),
        ]
        step = [
            "unsigned b_high[INSIDE / 8][WN / 8][2], b_low[INSIDE / 8][WN / 8][2];",
            *self._over("deep", "INSIDE / 8", self._over("tn", "WN / 8", self._parts(cols))),
            *self._over("tm", "WM / 16", products),
        ]
        name = self.product.plane.kernel.name
        return [
            f"#pragma unroll {name}_unroll",
            *nest("for (int step = 0; step < BK; step += INSIDE)", step, self.unit),
        ]

    def _epilogue(self) -> list[str]:
        """The kernel's own epilogue for each of a thread's sums, where the instruction leaves them."""
        product, plane = self.product, self.product.plane
        element = [
            f"const {plane.type} {product.row} = row_first + warp_row + tm * 16 + quad + part / 2 * 8;",
            f"const {plane.type} {product.col} = col_first + warp_col + tn * 8 + place * 2 + part % 2;",
            *self.launching.store("sums[tm][tn][part]"),
        ]
        return self._over("tm", "WM / 16", self._over("tn", "WN / 8", self._over("part", "4", element)))


class MatmulTensorFamily:
    """Plain products on tensor cores, within the tolerance of single precision."""

    name: ClassVar[str] = "matmul_tensor"
    title: ClassVar[str] = "tensor-core tiles"
    promise: ClassVar[float] = 2.1
    core: ClassVar[tuple[str, ...]] = ("bm", "bn", "bk", "wm", "wn")
    options: ClassVar[Choices] = {
        "bm": (64, 128, 32),
        "bn": (64, 128, 32),
        "bk": (16, 8, 32),
        "wm": (32, 16, 64),
        "wn": (32, 16, 64),
        "stages": (2, 3, 4),
        "pad": (4, 8, 12),
        "unroll": (4, 2, 1),
        "inside": (8, 16, 32),
        "blocks": (1, 2, 3, 4),
        "group": (0, 4, 8, 16),
        "splits": (1, 2, 4, 8),
        "small": (0, 132, 264, 66),
        "staging": ("registers", "async", "ahead"),
        "parts": ("tf32", "mixed"),
        "width": (4, 1),
        **SHARED,
    }

    def problems(self, source: Source) -> Iterator[tuple[Kernel, str]]:
        """See ``Family``."""
        for product in products_in(source, RESERVED | _OWN):
            if is_plain_product(product):
                line = product.reduction.loop.line
                yield product.plane.kernel, f"line {line}: two loads and one scalar FMA for every term"

    def write(self, source: Source, kernel: str, setting: Mapping[str, Parameter]) -> str | None:
        """See ``Family``."""
        for product in products_in(source, RESERVED | _OWN):
            if product.plane.kernel.name == kernel and is_plain_product(product):
                ahead = setting["staging"] == "ahead" and possible(product)
                writer = (AheadWriter if ahead else TensorWriter)(source, product, setting)
                names = ["bm", "bn", "bk", "wm", "wn", "stages", *(() if ahead else _LOOSE), "inside", "blocks"]
                shown = constants(kernel, self, setting, [*names, *launch_options(setting)])
                lines = [*shown, "", *writer.launching.scratch(), *writer.kernel()]
                text = writer.launching.placed(lines)
                return with_includes(text, ("cuda_pipeline.h",)) if writer.staging.direct else text
        return None

    def sound(self, setting: Mapping[str, Parameter]) -> bool:
        """See ``Family``: 2 to 16 warps, fragments within the registers, 48 KB."""
        bm, bn, wm, wn = (int(setting[name]) for name in ("bm", "bn", "wm", "wn"))
        blocks, small = int(setting["blocks"]), int(setting["small"])
        ahead = setting["staging"] == "ahead"
        size = tile_bytes if ahead else shared_bytes
        tiles = others(setting).values() if ahead else [_halved(bm, bn, wm, wn)]
        for tile in tiles if small else ():
            one = {**setting, **tile, "small": 0}
            least = (min(bm, bn) >= 64 and bm * bn > 64 * 64) if ahead else min(bm, bn) >= 64
            if not (least and self.sound({**one, "shared": suited(size(one))})):
                return False
        if setting["parts"] == "mixed" and not ahead:
            return False
        if ahead and (setting["bk"] == 8 or any(setting[name] != self.options[name][0] for name in _LOOSE)):
            return False
        warps = (bm // wm) * (bn // wn)
        whole = bm % wm == 0 and bn % wn == 0 and 2 <= warps <= 16 and wm * wn <= 2048
        whole = whole and int(setting["bk"]) % int(setting["inside"]) == 0
        held = wm * wn // 32 + ((wm * wn // 32 if setting["inside"] != 8 else wm // 2) if ahead else 0)
        registers = blocks * 32 * warps * (held + (wm + wn) // 2 + 64) <= 65536
        return whole and registers and staged(setting) and fits(setting, size(setting))


def _halved(bm: int, bn: int, wm: int, wn: int) -> dict[str, Parameter]:
    return {"bm": bm // 2, "bn": bn // 2, "wm": max(16, wm // 2), "wn": max(16, wn // 2)}


MATMUL_TENSOR = MatmulTensorFamily()


class MatmulTensor(Enter):
    """A product on tensor cores."""

    def __init__(self) -> None:
        super().__init__(MATMUL_TENSOR)

"""Matrix product on tensor cores with the precision of single: each operand is split into two TF32 parts.

``x = high + low`` holds 22 bits; ``high * high + high * low + low * high`` loses only ``low * low``. The scheme is that
of Markidis et al., NVIDIA Tensor Core Programmability, Performance & Precision, 2018, and CUTLASS's "3xTF32". A tensor
core cuts off what does not fit its accumulator instead of rounding it, so a long sum inside it drifts: 1.8 times the
tolerance of a 1024-deep product was seen on an H200. Therefore only eight terms are added inside it; their sum is then
added in single precision with rounding, as in Ootomo and Yokota, Recovering single precision accuracy from Tensor
Cores, 2022. ``tests/roles/test_tensor_precision.py`` models both.
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
from roles.techniques.cuda.matmul_launch import Launching
from roles.techniques.cuda.matmul_operands import RESERVED, Operand, Staging, operands_of
from roles.techniques.cuda.matmul_tile import launch_options, loads, products_in, shared_bytes, staged
from roles.techniques.cuda.products import Product, is_plain_product
from roles.techniques.cuda.signature import restricted
from roles.techniques.transform import Choices

_NAMES = "Memory shared warp warp_row warp_col high low split wmma nvcuda WM WN sums eight tm tn"
_OWN = frozenset(_NAMES.split())
_SHARED = 48 * 1024

_SPLIT = """\
// The two TF32 parts of the values of a fragment.
template <typename Fragment>
__device__ __forceinline__ void split(const Fragment& values, Fragment& high, Fragment& low) {
#pragma unroll
    for (int i = 0; i < values.num_elements; i++) {
        high.x[i] = nvcuda::wmma::__float_to_tf32(values.x[i]);
        low.x[i] = nvcuda::wmma::__float_to_tf32(values.x[i] - high.x[i]);
    }
}
"""


@dataclass(frozen=True)
class TensorStaging(Staging):
    """Tiles in their operand's own order, inside a union: afterwards the memory is a patch for each warp."""

    def natural(self, operand: Operand) -> bool:
        """Fragments are loaded from either order."""
        return operand.along

    def tile(self, operand: Operand) -> str:
        """A member of the union."""
        return f"shared.tile.{operand.letter}"

    def pitch(self, operand: Operand) -> str:
        """Length of a tile's row. A fragment takes four values of eight rows where depth is fast, else eight values of
        four rows; with rows of 4 and 8 banks more than a multiple of 16 and 32 each of them lies in a bank of its own.
        """
        return "BK + PAD" if operand.along else f"{operand.size} + PAD + 4"

    def shape(self, operand: Operand) -> str:
        """See ``Staging``."""
        return f"[{operand.size if operand.along else 'BK'}][{self.pitch(operand)}]"


@dataclass(frozen=True)
class TensorWriter:
    """Renders one product for tensor cores: a warp owns WM x WN outputs as fragments of 16 x 16."""

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
        return Launching(self.source, self.product, self.setting, ("WM", "WN"), threads, self.staging.wide_when())

    def kernel(self) -> list[str]:
        """The kernel."""
        name, launching = self.product.plane.kernel.name, self.launching
        body = [
            f"constexpr int BK = {name}_bk, STAGES = {name}_stages, PAD = {name}_pad;",
            f"constexpr int THREADS = {launching.threads};",
            *loads(),
            *self._memory(),
            "const int warp = threadIdx.x / 32;",
            "const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;",
            *launching.place(),
            "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float> sums[WM / 16][WN / 16];",
            *self._over_sums(["nvcuda::wmma::fill_fragment(sums[tm][tn], 0.0f);"]),
            *self.staging.main_loop(self._multiply()),
            *(["__syncthreads();"] if self.staging.direct else []),
            *self._epilogue(),
        ]
        bounds = f"__launch_bounds__({launching.threads}, {name}_blocks)"
        return [
            _SPLIT,
            "// matmul_tensor: tensor cores on the two TF32 parts of every value, three products for each; a tensor",
            "// core truncates as it adds, so it adds eight terms alone and the rest is added with rounding.",
            launching.template(),
            *nest(f"__global__ void {bounds} {name}{restricted(self.product.plane.kernel)}", body, self.unit),
        ]

    def _memory(self) -> list[str]:
        """Tiles of the operands; afterwards a patch for each warp, through which it stores its sums."""
        rows, cols = (self.staging.shape(each) for each in operands_of(self.product))
        tiles = nest("struct", [f"float a[STAGES]{rows};", f"float b[STAGES]{cols};"], self.unit)
        union = [*tiles[:-1], "} tile;", "float patch[THREADS / 32][16][20];"]
        memory = nest("union alignas(32) Memory", union, self.unit)
        return [*memory[:-1], "};", "__shared__ Memory shared;"]

    def _over_sums(self, body: list[str]) -> list[str]:
        return self._over("tm", "WM / 16", self._over("tn", "WN / 16", body))

    def _over(self, name: str, end: str, body: list[str]) -> list[str]:
        return ["#pragma unroll", *nest(f"for (int {name} = 0; {name} < {end}; {name}++)", body, self.unit)]

    def _fragments(self, operand: Operand) -> tuple[str, list[str]]:
        """Type of an operand's fragments, and the lines that load and split number ``tm`` or ``tn``."""
        letter, along = operand.letter, operand.along
        side, at = ("m", "row") if letter == "a" else ("n", "col")
        layout = "row_major" if along == (letter == "a") else "col_major"
        kind = f"nvcuda::wmma::fragment<nvcuda::wmma::matrix_{letter}, 16, 16, 8, nvcuda::wmma::precision::tf32, "
        kind += f"nvcuda::wmma::{layout}>"
        place = self.staging.slot(operand, "buffer", "step", f"warp_{at} + t{side} * 16")
        width = self.staging.pitch(operand)
        load = [
            f"{kind} values;",
            f"nvcuda::wmma::load_matrix_sync(values, &{place}, {width});",
            f"split(values, {letter}_high[t{side}], {letter}_low[t{side}]);",
        ]
        return kind, load

    def _multiply(self) -> list[str]:
        (a_kind, a_load), (b_kind, b_load) = (self._fragments(each) for each in operands_of(self.product))
        parts = [("a_low[tm]", "b_high[tn]"), ("a_high[tm]", "b_low[tn]"), ("a_high[tm]", "b_high[tn]")]
        add = "for (int i = 0; i < eight.num_elements; i++)"
        product = [
            "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float> eight;",
            "nvcuda::wmma::fill_fragment(eight, 0.0f);",
            *(f"nvcuda::wmma::mma_sync(eight, {left}, {right}, eight);" for left, right in parts),
            "#pragma unroll",
            *nest(add, ["sums[tm][tn].x[i] += eight.x[i];"], self.unit),
        ]
        step = [
            f"{a_kind} a_high[WM / 16], a_low[WM / 16];",
            f"{b_kind} b_high[WN / 16], b_low[WN / 16];",
            *self._over("tm", "WM / 16", a_load),
            *self._over("tn", "WN / 16", b_load),
            *self._over_sums(product),
        ]
        name = self.product.plane.kernel.name
        return [f"#pragma unroll {name}_unroll", *nest("for (int step = 0; step < BK; step += 8)", step, self.unit)]

    def _epilogue(self) -> list[str]:
        """Each fragment goes through the warp's patch, from which the lanes run the kernel's own epilogue."""
        product, plane = self.product, self.product.plane
        element = [
            f"const {plane.type} {product.row} = row_first + warp_row + tm * 16 + at / 16;",
            f"const {plane.type} {product.col} = col_first + warp_col + tn * 16 + at % 16;",
            *self.launching.store("shared.patch[warp][at / 16][at % 16]"),
        ]
        patch = "&shared.patch[warp][0][0], sums[tm][tn], 20, nvcuda::wmma::mem_row_major"
        body = [
            f"nvcuda::wmma::store_matrix_sync({patch});",
            "__syncwarp();",
            *nest("for (int at = threadIdx.x % 32; at < 256; at += 32)", element, self.unit),
            "__syncwarp();",
        ]
        return self._over_sums(body)


class MatmulTensorFamily:
    """Plain products on tensor cores, within the tolerance of single precision."""

    name: ClassVar[str] = "matmul_tensor"
    title: ClassVar[str] = "tensor-core tiles"
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
        "blocks": (1, 2, 3, 4),
        "group": (0, 4, 8, 16),
        "splits": (1, 2, 4, 8),
        "small": (0, 132, 264, 66),
        "staging": ("registers", "async"),
        "width": (4, 1),
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
                writer = TensorWriter(source, product, setting)
                names = ["bm", "bn", "bk", "wm", "wn", "stages", "pad", "unroll", "blocks"]
                shown = constants(kernel, self, setting, [*names, *launch_options(setting)])
                lines = [*shown, "", *writer.launching.scratch(), *writer.kernel()]
                headers = ("mma.h", "cuda_pipeline.h") if writer.staging.direct else ("mma.h",)
                return with_includes(writer.launching.placed(lines), headers)
        return None

    def sound(self, setting: Mapping[str, Parameter]) -> bool:
        """See ``Family``: 2 to 16 warps, fragments within the registers, 48 KB."""
        bm, bn, wm, wn = (int(setting[name]) for name in ("bm", "bn", "wm", "wn"))
        blocks, small = int(setting["blocks"]), int(setting["small"])
        if small and not (min(bm, bn) >= 64 and self.sound({**setting, **_halved(bm, bn, wm, wn), "small": 0})):
            return False
        warps = (bm // wm) * (bn // wn)
        whole = bm % wm == 0 and bn % wn == 0 and 2 <= warps <= 16 and wm * wn <= 2048
        registers = blocks * 32 * warps * (wm * wn // 32 + (wm + wn) // 2 + 64) <= 65536
        shared = max(shared_bytes(setting), warps * 16 * 20 * 4)
        return whole and registers and staged(setting) and shared <= _SHARED


def _halved(bm: int, bn: int, wm: int, wn: int) -> dict[str, Parameter]:
    return {"bm": bm // 2, "bn": bn // 2, "wm": max(16, wm // 2), "wn": max(16, wn // 2)}


MATMUL_TENSOR = MatmulTensorFamily()


class MatmulTensor(Enter):
    """A product on tensor cores."""

    def __init__(self) -> None:
        super().__init__(MATMUL_TENSOR)

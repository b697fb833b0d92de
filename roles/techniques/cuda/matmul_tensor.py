"""Matrix product on tensor cores with nearly the precision of single: each operand is split into two TF32 parts.

``x = high + low`` holds 21 bits; ``high * high + high * low + low * high`` loses only ``low * low``. The scheme is that
of Markidis et al., NVIDIA Tensor Core Programmability, Performance & Precision, 2018, and CUTLASS's "3xTF32".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import Access
from roles.techniques.cpp.render import nest, with_includes
from roles.techniques.cpp.syntax import Grammar, Source, identifiers, text_of
from roles.techniques.cuda.launches import kernels_in
from roles.techniques.cuda.matmul_tile import RESERVED, TileWriter, tiled
from roles.techniques.cuda.planes import plane_of
from roles.techniques.cuda.products import Product, is_plain_product, product_of
from roles.techniques.transform import Choices, Match, TreeTransform

_OWN = frozenset(
    ("Memory", "shared", "warp", "warp_row", "warp_col", "high", "low", "split", "wmma", "nvcuda", "WM", "WN")
)

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
class TensorWriter(TileWriter):
    """Renders one product for tensor cores: a warp owns WM x WN outputs as fragments of 16 x 16."""

    def kernel(self) -> list[str]:
        """The same tiles as ``TileWriter``, multiplied by fragments."""
        name, plane = self.product.plane.kernel.name, self.product.plane
        body = [
            f"constexpr int BM = {name}_bm, BN = {name}_bn, BK = {name}_bk, WM = {name}_wm, WN = {name}_wn;",
            "constexpr int THREADS = 32 * (BM / WM) * (BN / WN);",
            "constexpr int A_LOADS = (BM * BK + THREADS - 1) / THREADS, B_LOADS = (BK * BN + THREADS - 1) / THREADS;",
            *self._memory(),
            "const int warp = threadIdx.x / 32;",
            "const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;",
            f"const {plane.type} row_first = blockIdx.y * BM, col_first = blockIdx.x * BN;",
            "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float> sums[WM / 16][WN / 16];",
            *self._over_sums(["nvcuda::wmma::fill_fragment(sums[tm][tn], 0.0f);"]),
            *self._tiles(),
            *self._epilogue(),
        ]
        head = f"__global__ void __launch_bounds__({warps(name)}) {name}{plane.kernel.parameter_text}"
        comment = "// matmul_tensor: tensor cores on the two TF32 parts of every value; three products for each."
        return [_SPLIT, comment, *nest(head, body, self._unit)]

    def _memory(self) -> list[str]:
        """Tiles of the operands; afterwards a patch for each warp, through which it stores its sums."""
        rows, cols = (self._shape(access, size) for access, _, size, _ in self._operands())
        tiles = nest("struct", [f"float a[2]{rows};", f"float b[2]{cols};"], self._unit)
        union = [*tiles[:-1], "} tile;", "float patch[THREADS / 32][16][20];"]
        memory = nest("union alignas(32) Memory", union, self._unit)
        return [*memory[:-1], "};", "__shared__ Memory shared;"]

    def _shape(self, access: Access, size: str) -> str:
        return f"[{size}][BK + 4]" if self._along_depth(access) else f"[BK][{size} + 4]"

    def _slot(self, access: Access, letter: str, buffer: str, k_at: str, side_at: str) -> str:
        first, second = (side_at, k_at) if self._along_depth(access) else (k_at, side_at)
        return f"shared.tile.{letter}[{buffer}][{first}][{second}]"

    def _over_sums(self, body: list[str]) -> list[str]:
        return self._over("tm", "WM / 16", self._over("tn", "WN / 16", body))

    def _over(self, name: str, end: str, body: list[str]) -> list[str]:
        return ["#pragma unroll", *nest(f"for (int {name} = 0; {name} < {end}; {name}++)", body, self._unit)]

    def _fragments(self, access: Access, letter: str) -> tuple[str, list[str]]:
        """Type of an operand's fragments, and the lines that load and split number ``tm`` or ``tn``."""
        along, side, at = self._along_depth(access), "m" if letter == "a" else "n", "row" if letter == "a" else "col"
        layout = "row_major" if along == (letter == "a") else "col_major"
        kind = f"nvcuda::wmma::fragment<nvcuda::wmma::matrix_{letter}, 16, 16, 8, nvcuda::wmma::precision::tf32, "
        kind += f"nvcuda::wmma::{layout}>"
        place = self._slot(access, letter, "buffer", "step", f"warp_{at} + t{side} * 16")
        width = "BK + 4" if along else f"B{side.upper()} + 4"
        load = [
            f"{kind} values;",
            f"nvcuda::wmma::load_matrix_sync(values, &{place}, {width});",
            f"split(values, {letter}_high[t{side}], {letter}_low[t{side}]);",
        ]
        return kind, load

    def _multiply(self) -> list[str]:
        product = self.product
        a_kind, a_load = self._fragments(product.row_read, "a")
        b_kind, b_load = self._fragments(product.col_read, "b")
        parts = [("a_low[tm]", "b_high[tn]"), ("a_high[tm]", "b_low[tn]"), ("a_high[tm]", "b_high[tn]")]
        step = [
            f"{a_kind} a_high[WM / 16], a_low[WM / 16];",
            f"{b_kind} b_high[WN / 16], b_low[WN / 16];",
            *self._over("tm", "WM / 16", a_load),
            *self._over("tn", "WN / 16", b_load),
            *self._over_sums(
                [f"nvcuda::wmma::mma_sync(sums[tm][tn], {left}, {right}, sums[tm][tn]);" for left, right in parts]
            ),
        ]
        return ["#pragma unroll", *nest("for (int step = 0; step < BK; step += 8)", step, self._unit)]

    def _epilogue(self) -> list[str]:
        """Each fragment goes through the warp's patch, from which the lanes run the kernel's own epilogue."""
        product, plane = self.product, self.product.plane
        start = text_of(product.initial)
        zero = start.rstrip("fF").strip("0.") == ""
        inside = f"if ({product.row} < {plane.bound[product.row]} && {product.col} < {plane.bound[product.col]})"
        value = "shared.patch[warp][at / 16][at % 16]"
        store = [
            f"float {product.accumulator} = {'' if zero else f'{start} + '}{value};",
            *(line for each in product.epilogue for line in self.source.lines_of(each)),
        ]
        element = [
            f"const {plane.type} {product.row} = row_first + warp_row + tm * 16 + at / 16;",
            f"const {plane.type} {product.col} = col_first + warp_col + tn * 16 + at % 16;",
            *nest(inside, store, self._unit),
        ]
        patch = "&shared.patch[warp][0][0], sums[tm][tn], 20, nvcuda::wmma::mem_row_major"
        body = [
            f"nvcuda::wmma::store_matrix_sync({patch});",
            "__syncwarp();",
            *nest("for (int at = threadIdx.x % 32; at < 256; at += 32)", element, self._unit),
            "__syncwarp();",
        ]
        return self._over_sums(body)


def warps(name: str) -> str:
    """Threads a block, from the knobs."""
    return f"32 * ({name}_bm / {name}_wm) * ({name}_bn / {name}_wn)"


class MatmulTensor(TreeTransform):
    """Tensor cores for single-precision products, within the tolerance of single precision."""

    grammar: ClassVar[Grammar] = "cuda"
    choices: ClassVar[Choices] = {"bm": (64, 128), "bn": (64, 128), "bk": (16, 8), "wm": (32, 64), "wn": (32, 64)}

    def matches(self, source: Source) -> Iterator[Match]:
        """Kernels that compute one element of a plain product a thread."""
        for kernel in kernels_in(source.root):
            plane = plane_of(kernel)
            product = product_of(plane) if plane is not None else None
            if product is None or not is_plain_product(product) or (RESERVED | _OWN) & identifiers(source.root):
                continue
            evidence = f"line {product.reduction.loop.line}: two loads and one scalar FMA for every term"
            yield Match(kernel.node, f"the kernel `{kernel.name}`", evidence, product)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """A new kernel, and a grid of tiles."""
        product: Product = match.data
        name = product.plane.kernel.name
        lines = [*_constants(name, parameters), "", *TensorWriter(source, product).kernel()]
        return with_includes(tiled(source, product, lines, warps(name)), ("mma.h",))


def _constants(name: str, parameters: Mapping[str, Parameter]) -> list[str]:
    values = {"bm": "64, 128", "bn": "64, 128", "bk": "8, 16", "wm": "16, 32, 64", "wn": "16, 32, 64"}
    return [
        f"constexpr int {name}_{knob} = {parameters[knob]};  // knob: {name}_{knob} in {{{listed}}}"
        for knob, listed in values.items()
    ]

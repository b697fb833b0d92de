"""Cards for C++ kernels that change structure: what an explorer takes first."""

from roles.techniques.card import Card, Citation, Numerics, Tier, cells
from roles.techniques.cpp.fuse import FuseLoops
from roles.techniques.cpp.interchange import LoopInterchange
from roles.techniques.cpp.online_softmax import OnlineSoftmax
from roles.techniques.cpp.register_block import RegisterBlock
from roles.techniques.cpp.store_once import StoreOnce
from roles.techniques.cpp.tile import TileNest
from roles.techniques.cpp.vector_exp import VectorExp

GOTO = Citation(
    "Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34(3), 2008",
    "https://doi.org/10.1145/1356052.1356053",
)
WOLF = Citation(
    "Wolf and Lam, A Data Locality Optimizing Algorithm, PLDI 1991", "https://doi.org/10.1145/113445.113449"
)
CEPHES = Citation("Cephes Mathematical Library, single precision expf", "https://www.netlib.org/cephes/")
SOFTMAX = Citation(
    "Milakov and Gimelshein, Online normalizer calculation for softmax, 2018", "https://arxiv.org/abs/1805.02867"
)

CARDS = (
    Card(
        name="register_block",
        title="Register blocking with a packed panel",
        tier=Tier.REGISTERS,
        category="register-blocking",
        cells=cells("compute bandwidth latency balanced"),
        languages=("cpp",),
        helps="matmul-shaped reductions: every value of A serves NR outputs and every value of B serves MR",
        hurts="outputs smaller than one tile; reductions of a few iterations, where packing is not paid back",
        bottleneck="one multiply-add for two loads, and each waits for the one before it on a single accumulator",
        mechanism="MR x NR accumulators stay in vector registers, so loads are amortised and additions overlap; the "
        "packed panel makes the reads of B contiguous",
        disproof="flop rate per core unchanged: then the loads were not the limit",
        fallback="loop_interchange alone, which vectorises without tiles",
        expected_gain=3.4,
        evidence="30 to 54 times over the textbook loop on the four matmul_cpu workloads, one AVX2 core, GCC 12",
        source=GOTO,
        numerics=Numerics.REORDERED,
        transform=RegisterBlock,
        presets=(
            {"MR": 6, "NV": 2, "KC": 256, "W": 8},
            {"MR": 8, "NV": 2, "KC": 256, "W": 16},
            {"MR": 4, "NV": 3, "KC": 256, "W": 8},
            {"MR": 6, "NV": 2, "KC": 512, "W": 8},
        ),
        rewrite="a register-tiled, packed matrix product with the kernel's own epilogue on every tile",
    ),
    Card(
        name="loop_interchange",
        title="Loop interchange with a tile of accumulators",
        tier=Tier.DATA_MOVEMENT,
        category="loop-order",
        cells=cells("bandwidth latency balanced compute"),
        languages=("cpp",),
        helps="reductions whose innermost loop reads with a stride while the loop around it would read contiguously",
        hurts="outer loops of a few iterations",
        bottleneck="every read of the innermost loop touches another cache line, and nothing vectorises",
        mechanism="with the contiguous loop innermost, whole cache lines are used and each vector lane has its own sum",
        disproof="no gain although the loop vectorises: then the data was in the first-level cache all along",
        fallback="register_block when the nest is matmul-shaped",
        expected_gain=2.0,
        evidence="7 to 30 times over the textbook loop on the four matmul_cpu workloads, one AVX2 core, GCC 12",
        source=WOLF,
        transform=LoopInterchange,
    ),
    Card(
        name="vector_exp",
        title="Branch-free polynomial exponential",
        tier=Tier.VECTOR_MATH,
        category="vector-math",
        cells=cells("compute latency balanced"),
        languages=("cpp",),
        helps="loops whose time goes into std::exp of floats: softmax, sigmoid, attention",
        hurts="tasks that compare bits; loops in which the exponential is rare",
        bottleneck="a scalar library call for every element",
        mechanism="Cody-Waite reduction and a degree-6 polynomial are plain arithmetic, which the compiler vectorises; "
        "about 1 ulp, with 0, infinity and NaN where the library gives them",
        disproof="the vectorised loop is not faster: then memory, not the exponential, is the limit",
        fallback="store_once, which halves the number of exponentials",
        expected_gain=1.3,
        evidence="3.8 times on softmax_cpu, one AVX2 core, GCC 12; largest error 1.0 ulp over [-87, 88]",
        source=CEPHES,
        numerics=Numerics.TOLERANCE,
        transform=VectorExp,
    ),
    Card(
        name="store_once",
        title="Keep an expensive value in the output",
        tier=Tier.FUSION,
        category="fusion",
        cells=cells("compute latency balanced"),
        languages=("cpp",),
        helps="the same call computed for the sum and again for the output, as in softmax",
        hurts="cheap values on rows that do not fit in cache: the extra pass over the output costs more",
        bottleneck="an expensive call is evaluated twice for every element",
        mechanism="the first loop stores the value where the result will be; the second one only scales it",
        disproof="no gain although the call count halved: then the stores are the limit",
        fallback="vector_exp, which makes the call itself cheaper",
        expected_gain=0.65,
        evidence="2.0 times on softmax_cpu with scalar and with vectorised exponentials, GCC 12",
        source=SOFTMAX,
        transform=StoreOnce,
    ),
    Card(
        name="tile_nest",
        title="Square cache tiles",
        tier=Tier.DATA_MOVEMENT,
        category="loop-order",
        cells=cells("bandwidth latency balanced"),
        languages=("cpp",),
        helps="nests that read one array along rows and write another along columns, such as a transpose",
        hurts="arrays that fit in the first-level cache",
        bottleneck="one of the two arrays is touched one element per cache line",
        mechanism="inside a tile every cache line is used up before it is evicted",
        disproof="no gain: then both arrays were in cache",
        fallback="other tile sizes",
        expected_gain=0.6,
        evidence="the usual gain on out-of-cache transposes is 2 to 4 times",
        source=WOLF,
        transform=TileNest,
    ),
    Card(
        name="fuse_loops",
        title="Fuse neighbouring loops",
        tier=Tier.FUSION,
        category="fusion",
        cells=cells("bandwidth latency balanced"),
        languages=("cpp",),
        helps="neighbouring passes over the same elements",
        hurts="fused bodies that need more registers than there are",
        bottleneck="the same elements travel through the caches twice",
        mechanism="one pass: the value that the first loop wrote is still in a register for the second",
        disproof="no gain: then the elements were in the first-level cache",
        fallback="restrict, so that the compiler may fuse by itself",
        expected_gain=0.4,
        evidence="half of the traffic of two elementwise passes",
        source=WOLF,
        transform=FuseLoops,
    ),
    Card(
        name="online_softmax",
        title="Maximum and sum in one pass",
        tier=Tier.ALGORITHM,
        category="fusion",
        cells=cells("bandwidth compute", "mid late plateau"),
        languages=("cpp",),
        helps="rows that do not fit in cache: one pass over memory less",
        hurts="rows in cache: the rescaling branch keeps the loop scalar, so this is usually reverted on a CPU",
        bottleneck="the row is read once for its maximum and once more for the sum",
        mechanism="the running sum is rescaled whenever the running maximum grows",
        disproof="slower: then the pass was cheap and vectorisation mattered more",
        fallback="split_accumulator on both passes",
        expected_gain=0.03,
        evidence="a third of the traffic on a GPU; slower than two vectorised passes on an in-cache row of a CPU",
        source=SOFTMAX,
        numerics=Numerics.TOLERANCE,
        transform=OnlineSoftmax,
        rewrite="softmax with a running maximum and a sum that is rescaled when it grows",
    ),
)

"""Cards for CUDA kernels that change structure: what an explorer takes first."""

from roles.techniques.card import Card, Citation, Numerics, Tier, cells
from roles.techniques.cuda.matmul_tensor import MATMUL_TENSOR, MatmulTensor
from roles.techniques.cuda.matmul_tile import MATMUL_TILE, MatmulTile
from roles.techniques.cuda.row_groups import ROWS, RowGroups
from roles.techniques.cuda.shuffle import SHUFFLE as SHUFFLES
from roles.techniques.cuda.shuffle import ShuffleReduction
from roles.techniques.cuda.transpose import TRANSPOSE as TRANSPOSE_TILES
from roles.techniques.cuda.transpose import TransposeTile
from roles.techniques.cuda.vectorise import ELEMENTS, VectoriseElements
from roles.techniques.knowledge import CUTLASS

SHUFFLE = Citation(
    "Luitjens, Faster Parallel Reductions on Kepler, 2014",
    "https://developer.nvidia.com/blog/faster-parallel-reductions-kepler/",
)
VECTOR = Citation(
    "Luitjens, Increase Performance with Vectorized Memory Access, 2013",
    "https://developer.nvidia.com/blog/cuda-pro-tip-increase-performance-with-vectorized-memory-access/",
)
SPLIT = Citation(
    "Markidis et al., NVIDIA Tensor Core Programmability, Performance and Precision, 2018",
    "https://arxiv.org/abs/1803.04014",
)
TRANSPOSE = Citation(
    "Harris, An Efficient Matrix Transpose in CUDA C/C++, 2013",
    "https://developer.nvidia.com/blog/efficient-matrix-transpose-cuda-cc/",
)

AHEAD = {"staging": "ahead", "stages": 4, "shared": "dynamic", "inside": 16, "group": 8, "small": 132}

CARDS = (
    Card(
        name="row_groups",
        title="A group of threads a row, values in registers",
        tier=Tier.ALGORITHM,
        category="parallel-decomposition",
        cells=cells("bandwidth latency occupancy balanced"),
        languages=("cuda",),
        helps="row reductions with one thread a row: neighbouring threads read addresses a whole row apart",
        hurts="rows of a few columns, where most lanes idle",
        bottleneck="uncoalesced loads, too few threads, and every row read once a pass",
        mechanism="a warp or a block reads a row in 128-bit pieces, keeps it in registers between the passes and "
        "combines "
        "with shuffles; the group's size is chosen by row length at launch",
        disproof="DRAM throughput does not rise: then the rows are too short or the grid too small",
        fallback="the group sizes and the values a thread, as knobs",
        expected_gain=ROWS.promise,
        evidence="compiles without spills for sm_90a; the measurement of this team decides",
        source=SHUFFLE,
        numerics=Numerics.REORDERED,
        transform=RowGroups,
        presets=(
            {"items": 32},
            {"items": 8, "lanes0": 16, "lanes1": 64, "lanes2": 128, "lanes3": 256, "lanes4": 512},
            {"items": 8, "lanes0": 16, "lanes1": 64, "lanes2": 128, "lanes3": 256, "lanes4": 512, "odd": "shifted"},
        ),
        rewrite="rows are owned by warps or blocks instead of threads, resident in registers where they fit",
    ),
    Card(
        name="matmul_tile",
        title="Shared-memory and register tiles",
        tier=Tier.ALGORITHM,
        category="register-blocking",
        cells=cells("compute bandwidth latency balanced occupancy"),
        languages=("cuda",),
        helps="matrix products with one thread an output: two loads for every multiply-add",
        hurts="outputs smaller than one tile for every multiprocessor",
        bottleneck="load instructions: every operand is fetched again by every thread that needs it",
        mechanism="a tile of each operand in shared memory serves a whole block, and TM x TN sums in registers reuse "
        "each "
        "value that is read from there; the next tiles are on their way meanwhile",
        disproof="FMA throughput does not rise",
        fallback="other tile sizes",
        expected_gain=MATMUL_TILE.promise,
        evidence="compiles without spills for sm_90a; the measurement of this team decides",
        source=CUTLASS,
        numerics=Numerics.REORDERED,
        transform=MatmulTile,
        presets=(
            {"bm": 128, "bn": 128, "bk": 16, "tm": 8, "tn": 8, "blocks": 2, "small": 132},
            {"bm": 128, "bn": 128, "bk": 8, "tm": 8, "tn": 8, "blocks": 2, "small": 132},
            {"bm": 128, "bn": 64, "bk": 16, "tm": 8, "tn": 8, "blocks": 3, "small": 132},
            {"bm": 64, "bn": 64, "bk": 16, "tm": 4, "tn": 4},
        ),
        rewrite="a block computes a tile of the output from shared memory, each thread a smaller one from registers",
    ),
    Card(
        name="matmul_tensor",
        title="Tensor cores on values split into two TF32 parts",
        tier=Tier.ALGORITHM,
        category="matrix-instructions",
        cells=cells("compute bandwidth latency balanced occupancy"),
        languages=("cuda",),
        helps="single-precision matrix products whose tolerance allows the last two or three bits to differ",
        hurts="outputs smaller than one tile for every multiprocessor; tasks with strict numerics",
        bottleneck="scalar multiply-adds, and loads for each of them",
        mechanism="three TF32 products of parts replace one product of singles, at a rate that is still a multiple "
        "of the scalar one; a few terms are added inside the tensor core, which truncates, the rest with rounding",
        disproof="tensor-core throughput is low: then the tiles do not feed it",
        fallback="matmul_tile, which stays on scalar multiply-adds",
        expected_gain=MATMUL_TENSOR.promise,
        evidence="compiles to HMMA without spills for sm_90a; the measurement of this team decides",
        source=SPLIT,
        numerics=Numerics.TOLERANCE,
        transform=MatmulTensor,
        presets=(
            {"bm": 128, "wm": 64, "blocks": 2, **AHEAD, "parts": "mixed", "bk": 32, "stages": 3, "inside": 32},
            {"bm": 128, "wm": 64, "blocks": 2, **AHEAD, "parts": "mixed"},
            {"bm": 128, "wm": 64, "blocks": 2, **AHEAD},
        ),
        rewrite="a block computes a tile of the output on tensor cores, each operand as a sum of two TF32 values",
    ),
    Card(
        name="transpose_tile",
        title="Transposition through a padded tile",
        tier=Tier.DATA_MOVEMENT,
        category="shared-memory",
        cells=cells("bandwidth latency balanced"),
        languages=("cuda",),
        helps="kernels that read along one index and write along the other",
        hurts="matrices smaller than a tile",
        bottleneck="a warp's stores fall into 32 different rows",
        mechanism="the tile is read by rows and written by columns, both coalesced; the padding spreads columns over "
        "banks",
        disproof="DRAM throughput does not rise",
        fallback="tile and block sizes as knobs",
        expected_gain=TRANSPOSE_TILES.promise,
        evidence="the textbook case; the measurement of this team decides",
        source=TRANSPOSE,
        transform=TransposeTile,
        presets=(
            {"tile": 64, "rows": 8, "odd": "shifted"},
            {"tile": 64, "rows": 16, "odd": "shifted"},
            {"tile": 64, "rows": 16, "layout": "swizzled"},
        ),
        rewrite="a block moves a tile instead of single elements",
    ),
    Card(
        name="vectorise_elements",
        title="128-bit accesses, several elements a thread",
        tier=Tier.DATA_MOVEMENT,
        category="vectorised-access",
        cells=cells("bandwidth compute latency balanced", "early mid late plateau"),
        languages=("cuda",),
        helps="elementwise kernels with one 32-bit access a thread and array",
        hurts="kernels that are short of threads",
        bottleneck="load and store instructions, and index arithmetic for every element",
        mechanism="a quarter of the memory instructions for the same bytes, more bytes in flight a thread, and an "
        "index "
        "modulo a row taken once for four elements",
        disproof="no gain: then the memory was already saturated",
        fallback="the block size and the vectors a thread as knobs",
        expected_gain=ELEMENTS.promise,
        evidence="LDG.E.128 and STG.E.128 in the compiler's output for sm_90a",
        source=VECTOR,
        transform=VectoriseElements,
        presets=({"vectors": 4}, {"vectors": 4, "store": "__stcs", "load": "__ldcs"}, {"vectors": 2, "persist": 4}),
    ),
    Card(
        name="shuffle_tree",
        title="Warp shuffles for a reduction tree",
        tier=Tier.ALGORITHM,
        category="reductions",
        cells=cells("compute latency bandwidth balanced"),
        languages=("cuda",),
        helps="blocks that fold an array in shared memory, with a barrier for every halving",
        hurts="nothing",
        bottleneck="barriers and round trips through shared memory",
        mechanism="registers are exchanged without a barrier inside a warp; one value a warp goes through shared "
        "memory",
        disproof="the share of barrier stalls does not fall",
        fallback="wider loads in front of the tree",
        expected_gain=SHUFFLES.promise,
        evidence="compiles to SHFL without a loop of barriers; the measurement of this team decides",
        source=SHUFFLE,
        numerics=Numerics.REORDERED,
        transform=ShuffleReduction,
    ),
)

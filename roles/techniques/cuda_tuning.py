"""Cards for CUDA kernels that polish what is there: what an exploiter takes first."""

from roles.techniques.card import Card, Tier, cells
from roles.techniques.cpp_tuning import TPE
from roles.techniques.cuda.knobs import BlockSize, CudaKnobs
from roles.techniques.knowledge import BEST

CARDS = (
    Card(
        name="cuda_knobs",
        title="Search the constants",
        tier=Tier.KNOBS,
        category="knobs",
        cells=cells("compute bandwidth latency occupancy balanced"),
        languages=("cuda",),
        helps="kernels with tile sizes, group sizes or values a thread as constants",
        hurts="nothing: only digits change",
        bottleneck="the constants were chosen for another machine or another shape",
        mechanism="a tree-structured Parzen estimator proposes settings from those already measured",
        disproof="no setting is faster",
        fallback="a structural technique",
        expected_gain=0.12,
        evidence="tile sizes move matrix products by tens of percent",
        source=TPE,
        transform=CudaKnobs,
    ),
    Card(
        name="block_size",
        title="Another block size",
        tier=Tier.KNOBS,
        category="occupancy",
        cells=cells("occupancy latency bandwidth compute balanced"),
        languages=("cuda",),
        helps="launches whose block size was a guess",
        hurts="nothing: the grid follows",
        bottleneck="too few or too many threads a block for the registers and the tail of the grid",
        mechanism="other numbers of resident warps and other tails",
        disproof="no size is faster",
        fallback="a structural technique",
        expected_gain=0.08,
        evidence="usual practice: a sweep from 64 to 1024",
        source=BEST,
        transform=BlockSize,
    ),
)

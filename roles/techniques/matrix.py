"""The strategy matrix as data: what to try in each cell (position x phase), the heavy lifts, and the tactical sweep.

Three tables, all of card names in the catalog (a test holds them to it):

* ``MOVES[position, phase]``: techniques of the cell, most promising first. ``moves(...)`` filters them by language.
* ``HEAVY_LIFTS[position]``: what the plateau's forcing function must list, each with what must hold before it is due.
  ``heavy_lifts(position, language)`` gives them for one kernel; for ``Position.UNKNOWN`` it gives those of every
  position, each once. The four conditions in ``WHEN_DUE`` hold for all of them.
* ``SWEEP``: the tactical sweep, in its order, one item an experiment; ``sweep(language)`` leaves out items that have no
  technique for the language. A CPU has a sweep of its own, ``SWEEP_ON_CPU``, of which nothing is left out: an item
  without a technique in the catalog is for minds that write their own.

``protocol`` does not import this module: whoever starts a campaign hands it the names (they are plain strings).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from protocol.messages import Phase, Position
from roles.techniques.card import Language
from roles.techniques.catalog import card_named

WHEN_DUE = (
    "the kernel sits at the wall that its position names",
    "the kernel is more than 60 % of the time",
    "the cheaper items upstream are done",
    "a reference or a template of the structure exists",
)


@dataclass(frozen=True)
class HeavyLift:
    """A structural change that breaks plateaus. ``needs`` is the prerequisite without which it is not due."""

    technique: str
    needs: str


@dataclass(frozen=True)
class SweepItem:
    """One step of the tactical sweep: any of its techniques, on the code as it is, does it."""

    name: str
    title: str
    techniques: tuple[str, ...]


def _cell(position: Position, early: str, mid: str, late: str, plateau: str) -> dict[tuple[Position, Phase], str]:
    phases = (Phase.EARLY, Phase.MID, Phase.LATE, Phase.PLATEAU)
    return {(position, phase): names for phase, names in zip(phases, (early, mid, late, plateau), strict=True)}


_WORDS = {
    **_cell(
        Position.BANDWIDTH,
        early="coalesce row_groups transpose_tile vectorise_elements wide_loads fuse_loops loop_interchange tile_nest",
        mid="async_staging wide_staging block_swizzle bank_layout async_copy_pipeline block_order shared_swizzle "
        "dynamic_shared bulk_copy read_only_loads read_only_loads_edit store_once",
        late="streaming_hints cuda_knobs knobs cuda_restrict restrict read_only_loads bulk_copy assume_aligned",
        plateau="split_depth split_k recompute online_softmax_gpu online_softmax shape_dispatch register_block",
    ),
    **_cell(
        Position.COMPUTE,
        early="matmul_tile matmul_tensor tensor_cores fused_epilogue register_block vector_exp hoist_call "
        "cuda_hoist_call",
        mid="mixed_parts base2_exponential shuffle_reduction shuffle_tree split_accumulator hoist_reciprocal "
        "cuda_hoist_reciprocal",
        late="cuda_unroll unroll_pragma contiguous_unroll cuda_store_once store_once omp_simd",
        plateau="matmul_tensor online_softmax_gpu online_softmax warp_specialisation block_accumulated",
    ),
    **_cell(
        Position.OCCUPANCY,
        early="launch_bounds launch_bounds_edit block_size smaller_blocks row_groups",
        mid="residency register_cache launch_bounds_edit cuda_knobs kernel_split",
        late="residency launch_bounds_edit smaller_blocks block_size",
        plateau="kernel_split rows_per_block row_groups",
    ),
    **_cell(
        Position.LATENCY,
        early="software_pipeline cuda_unroll split_accumulator unroll_pragma cuda_hoist_reciprocal row_groups",
        mid="async_staging unroll_depth async_copy_pipeline shuffle_tree shuffle_reduction contiguous_unroll omp_simd",
        late="shuffle_tree cuda_hoist_call hoist_call grid_stride",
        plateau="warp_specialisation persistent_grid persistent_kernel grid_stride block_accumulated",
    ),
    **_cell(
        Position.BALANCED,
        early="block_size cuda_knobs knobs row_groups matmul_tile register_block",
        mid="fused_epilogue fuse_loops async_copy_pipeline vectorise_elements",
        late="size_dispatch cuda_knobs knobs shape_dispatch launch_bounds_edit",
        plateau="split_k rows_per_block shape_dispatch persistent_kernel register_block online_softmax",
    ),
}

MOVES: dict[tuple[Position, Phase], tuple[str, ...]] = {cell: tuple(names.split()) for cell, names in _WORDS.items()}

_ROWS = HeavyLift("row_groups", "a reduction over rows that one thread or one block walks")
_BLOCKED = HeavyLift("register_block", "a product or a sum over two nested loops")
_SPLIT = HeavyLift("split_k", "a reduction long against the number of outputs")
_DEPTH = HeavyLift("split_depth", "a matrix product with fewer tiles than multiprocessors")
_ONLINE = HeavyLift("online_softmax", "a maximum, then a sum of exponentials over the same row")

HEAVY_LIFTS: dict[Position, tuple[HeavyLift, ...]] = {
    Position.BANDWIDTH: (
        _DEPTH,
        _SPLIT,
        _ROWS,
        HeavyLift("recompute", "an intermediate that is written and read back"),
        HeavyLift("online_softmax_gpu", "a maximum, then a sum of exponentials over a row too long for registers"),
        HeavyLift("transpose_tile", "reads along one index and writes along the other"),
        _ONLINE,
        HeavyLift("tile_nest", "a loop nest whose operands leave the cache before they are used again"),
        HeavyLift("fuse_loops", "neighbouring loops over the same elements"),
    ),
    Position.COMPUTE: (
        HeavyLift("matmul_tensor", "a matrix product whose tolerance allows TF32 parts"),
        HeavyLift("matmul_tile", "a matrix product with one thread an output"),
        HeavyLift("warp_specialisation", "copies and arithmetic that wait for each other; SM 9.0 or newer"),
        HeavyLift("online_softmax_gpu", "a maximum, then a sum of exponentials over a row too long for registers"),
        _BLOCKED,
        HeavyLift("block_accumulated", "an accumulation into memory in the innermost loop"),
        HeavyLift("vector_exp", "exponentials in a loop over neighbours"),
    ),
    Position.OCCUPANCY: (
        HeavyLift("kernel_split", "two phases with different needs for registers or shared memory"),
        _ROWS,
        HeavyLift("rows_per_block", "rows so short that a block's start-up shows"),
        _BLOCKED,
    ),
    Position.LATENCY: (
        HeavyLift("warp_specialisation", "copies and arithmetic that wait for each other; SM 9.0 or newer"),
        HeavyLift("persistent_kernel", "many short blocks, or a tail wave"),
        _ROWS,
        HeavyLift("block_accumulated", "an accumulation into memory in the innermost loop"),
    ),
    Position.BALANCED: (
        _DEPTH,
        _SPLIT,
        _ROWS,
        HeavyLift("matmul_tile", "a matrix product with one thread an output"),
        HeavyLift("rows_per_block", "rows so short that a block's start-up shows"),
        HeavyLift("persistent_kernel", "many short blocks, or a tail wave"),
        _BLOCKED,
        _ONLINE,
    ),
}

SWEEP: tuple[SweepItem, ...] = (
    SweepItem("bank-layout", "Shared-memory padding or XOR swizzle", ("bank_layout", "shared_swizzle")),
    SweepItem("launch-bounds", "__launch_bounds__ variants", ("residency", "launch_bounds_edit", "launch_bounds")),
    SweepItem("register-cache", "Right-sized register caches", ("register_cache", "cuda_knobs", "knobs", "store_once")),
    SweepItem(
        "read-only-loads",
        "Read-only loads on streaming reads",
        ("streaming_hints", "read_only_loads_edit", "read_only_loads"),
    ),
    SweepItem(
        "block-schedule",
        "Block-schedule and L2 swizzle",
        ("block_swizzle", "persistent_grid", "grid_stride", "tile_nest"),
    ),
    SweepItem("dispatch", "Per-workload dispatch", ("size_dispatch", "shape_dispatch")),
)

SWEEP_ON_CPU: tuple[SweepItem, ...] = (
    SweepItem("alignment", "Known alignment, or padding", ("assume_aligned",)),
    SweepItem(
        "vector-width",
        "Unroll factors and vector widths",
        ("unroll_pragma", "contiguous_unroll", "omp_simd", "split_accumulator"),
    ),
    SweepItem("register-tile", "Right-sized register blocks", ("knobs", "register_block", "block_accumulated")),
    SweepItem("aliasing", "Restricted, const or prefetched reads", ("restrict",)),
    SweepItem("loop-order", "Order and tile schedule of the loop nest", ("tile_nest", "loop_interchange")),
    SweepItem("dispatch", "Per-workload dispatch", ()),
)


def _speaks(technique: str, language: Language) -> bool:
    card = card_named(technique)
    return card is not None and language in card.languages


def moves(position: Position, phase: Phase, language: Language) -> tuple[str, ...]:
    """The cell's techniques for one language; for an unknown position those of all positions, each once."""
    positions = [position] if position is not Position.UNKNOWN else [each for each in Position if each in HEAVY_LIFTS]
    names: Iterable[str] = (name for where in positions for name in MOVES[where, phase])
    return tuple(dict.fromkeys(name for name in names if _speaks(name, language)))


def heavy_lifts(position: Position, language: Language) -> tuple[HeavyLift, ...]:
    """What the plateau's forcing function lists for a kernel at this position, in this language."""
    positions = [position] if position is not Position.UNKNOWN else list(HEAVY_LIFTS)
    found = {each.technique: each for where in positions for each in HEAVY_LIFTS[where]}
    return tuple(each for each in found.values() if _speaks(each.technique, language))


def sweep(language: Language) -> tuple[SweepItem, ...]:
    """The tactical sweep for one language, each item with the techniques that exist for it."""
    if language == "cpp":
        return SWEEP_ON_CPU
    mine = (
        SweepItem(each.name, each.title, tuple(name for name in each.techniques if _speaks(name, language)))
        for each in SWEEP
    )
    return tuple(each for each in mine if each.techniques)

"""Designs: written in many ways with the same results, recognised exactly, and changed one option at a time."""

from functools import partial
from itertools import islice

import pytest
from cuda_kernels import TOUCHED

from roles.techniques.card import Tier
from roles.techniques.catalog import all_cards, card_named
from roles.techniques.cpp.syntax import parse
from roles.techniques.cuda.annotations import CudaRestrict
from roles.techniques.cuda.design import Family, Setting, defaults, design_in, written
from roles.techniques.cuda.families import FAMILIES
from roles.techniques.cuda.knobs import CudaKnobs
from roles.techniques.cuda.matmul_tensor import MATMUL_TENSOR
from roles.techniques.cuda.matmul_tile import MATMUL_TILE, MatmulTile
from roles.techniques.cuda.move import Move
from roles.techniques.cuda.row_groups import ROWS
from roles.techniques.cuda.shuffle import SHUFFLE
from roles.techniques.cuda.transpose import TRANSPOSE
from roles.techniques.cuda.vectorise import ELEMENTS
from roles.techniques.sampling import settings

TILE = {"bm": 64, "bn": 64, "bk": 8, "tm": 4, "tn": 4}
EXAMPLE = {
    "matmul_tile": "matmul",
    "matmul_tensor": "matmul",
    "row_groups": "softmax",
    "shuffle_tree": "reduction",
    "vectorise_elements": "elementwise",
    "transpose_tile": "transpose",
}
# What each design must get right, on shapes where its vectors, its split or its small instance is taken and not taken.
WRITTEN: list[tuple[Family, str, Setting, list[list[int]]]] = [
    (MATMUL_TILE, "matmul", {**TILE, "staging": "async", "stages": 3, "width": 4}, [[36, 40, 44], [33, 35, 37]]),
    (MATMUL_TILE, "matmul_transposed", {**TILE, "width": 4, "group": 4, "splits": 4}, [[130, 72, 128], [65, 67, 65]]),
    (MATMUL_TILE, "dense", {**TILE, "small": 66, "across": 4, "splits": 2, "staging": "async"}, [[70, 36, 65]]),
    (MATMUL_TENSOR, "matmul_transposed", {"bk": 8, "staging": "async", "stages": 4, "width": 4}, [[36, 40, 44]]),
    (MATMUL_TENSOR, "dense", {"small": 66, "splits": 2, "pad": 8, "bk": 8}, [[33, 20, 65]]),
    (MATMUL_TENSOR, "matmul", {"bm": 128, "wm": 64, "wn": 16, "width": 1, "staging": "async"}, [[70, 33, 17]]),
    (MATMUL_TENSOR, "matmul_transposed", {"bk": 32, "inside": 16, "pad": 8}, [[33, 40, 44]]),
    (
        MATMUL_TENSOR,
        "matmul",
        {"bm": 128, "bn": 64, "bk": 32, "staging": "async", "stages": 3, "shared": "dynamic", "small": 66, "splits": 2},
        [[130, 68, 100], [65, 67, 70]],
    ),
    (MATMUL_TENSOR, "matmul", {"staging": "ahead", "stages": 3}, [[70, 33, 41], [36, 132, 36], [3, 5, 1]]),
    (
        MATMUL_TENSOR,
        "matmul_transposed",
        {"staging": "ahead", "stages": 3, "inside": 16, "wn": 64, "group": 4, "parts": "mixed"},
        [[70, 33, 41], [36, 68, 100]],
    ),
    (
        MATMUL_TENSOR,
        "dense",
        {"staging": "ahead", "bm": 128, "stages": 3, "shared": "dynamic", "splits": 2, "small": 132},
        [[70, 36, 65], [65, 20, 132]],
    ),
    (
        MATMUL_TILE,
        "dense",
        {"bm": 128, "bn": 64, "bk": 32, "staging": "async", "stages": 3, "shared": "dynamic"},
        [[36, 40, 44], [33, 35, 37]],
    ),
    (ROWS, "softmax", {"items": 4, "persist": 1, "width": 2, "load": "__ldg", "store": "__stcs"}, [[150, 6], [3, 517]]),
    (
        ROWS,
        "reduction",
        {"items": 8, "lanes0": 32, "lanes1": 64, "persist": 2, "load": "__ldcs"},
        [[300, 40], [2, 1028]],
    ),
    (
        ROWS,
        "reduction",
        {"items": 4, "lanes0": 16, "persist": 1, "block": 64},
        [[301, 40], [9, 33], [3, 4100], [2, 4099]],
    ),
    (ROWS, "softmax", {"items": 4, "odd": "shifted"}, [[9, 5], [37, 33], [5, 517], [3, 1023], [2, 2051], [7, 64]]),
    (ROWS, "rmsnorm", {"items": 8, "odd": "shifted", "load": "__ldg", "store": "__stcs"}, [[9, 61], [5, 133], [3, 1]]),
    (ROWS, "layernorm", {"items": 16, "odd": "shifted"}, [[9, 61], [4, 510]]),
    (ROWS, "softmax", {"items": 4, "far": 256}, [[37, 20], [37, 31], [2, 2052], [2, 2051]]),
    (ROWS, "rmsnorm", {"items": 4, "persist": 1}, [[300, 40], [2, 1028]]),
    (ROWS, "softmax", {"items": 4, "work": "as_written"}, [[33, 36], [3, 517]]),
    (ROWS, "layernorm", {"items": 4, "width": 1, "blocks": 4}, [[3, 517], [2, 1028]]),
    (ELEMENTS, "elementwise", {"vectors": 2, "width": 2, "persist": 2, "block": 64, "span": "neighbours"}, [[90, 777]]),
    (ELEMENTS, "elementwise", {"vectors": 8, "block": 64, "persist": 1}, [[700, 3], [90, 64], [1, 5]]),
    (ELEMENTS, "scale_shift", {"vectors": 4, "load": "__ldcs", "store": "__stcs", "blocks": 2}, [[5, 133], [3, 1024]]),
    (TRANSPOSE, "transpose", {"width": 4, "group": 2, "load": "__ldg"}, [[72, 100], [70, 33]]),
    (TRANSPOSE, "transpose", {"layout": "swizzled"}, [[72, 100], [70, 33]]),
    (
        TRANSPOSE,
        "transpose",
        {"odd": "shifted", "rows": 16, "load": "__ldg"},
        [[72, 100], [70, 33], [129, 131], [1, 3], [61, 64], [7, 200]],
    ),
    (
        TRANSPOSE,
        "transpose_writes",
        {"odd": "shifted", "tile": 128, "rows": 32, "shared": "dynamic", "store": "__stcs"},
        [[132, 100], [70, 133]],
    ),
    (TRANSPOSE, "transpose", {"tile": 128, "rows": 16, "shared": "dynamic"}, [[132, 100], [70, 133]]),
    (
        TRANSPOSE,
        "transpose_writes",
        {"tile": 128, "rows": 32, "layout": "swizzled", "shared": "dynamic", "width": 1},
        [[98, 130]],
    ),
    (
        TRANSPOSE,
        "transpose_writes",
        {"tile": 96, "rows": 16, "width": 2, "store": "__stcs"},
        [[98, 100], [33, 100]],
    ),
]


def kernel_of(family: Family, example: str) -> str:
    return next(iter(family.problems(parse(TOUCHED[example][0], "cuda"))))[0].name


def design(family: Family, example: str, setting: Setting) -> str:
    whole = {**defaults(family), **setting}
    assert family.sound(whole), whole
    text = written(family, TOUCHED[example][0], kernel_of(family, example), whole)
    assert text is not None
    return text


@pytest.mark.parametrize(("family", "example", "setting", "shapes"), WRITTEN)
def test_a_design_keeps_the_result(family: Family, example: str, setting: Setting, shapes, workbench) -> None:
    text = design(family, example, setting)
    assert workbench.cuda_error(text, TOUCHED[example][1], shapes) <= 1.0, text


def test_a_size_that_the_host_computes_is_taken_as_a_whole(workbench) -> None:
    source, problem, _ = TOUCHED["transpose"]
    computed = source.replace("(input, output, rows, cols);", "(input, output, rows << 0, cols | 0);")
    text = written(TRANSPOSE, computed, kernel_of(TRANSPOSE, "transpose"), defaults(TRANSPOSE))
    assert text is not None
    assert "rows << 0" in text
    assert workbench.cuda_error(text, problem, [[72, 100], [70, 33]]) == 0.0


@pytest.mark.parametrize("staging", ["registers", "ahead"])
def test_what_lies_behind_the_depth_in_longer_rows_is_not_multiplied(staging: str, workbench) -> None:
    source = TOUCHED["matmul"][0].replace("int K)", "int K, int lda, int ldb)").replace("N, K);", "N, K, lda, ldb);")
    source = source.replace("row * K + k", "row * lda + k").replace("k * N + col", "k * ldb + col")
    text = written(MATMUL_TENSOR, source, "matmul", {**defaults(MATMUL_TENSOR), "staging": staging})
    assert text is not None
    assert workbench.cuda_error(text, "matmul_of_longer_rows", [[36, 40, 41], [33, 35, 40]]) <= 1.0


@pytest.mark.parametrize("example", ["matmul", "matmul_transposed"])
def test_rows_that_begin_between_vectors_may_do_so_from_the_first_one(example: str, workbench) -> None:
    text = design(MATMUL_TENSOR, example, {"staging": "ahead", "stages": 3, "inside": 16})
    shapes = [[65, 67, 70], [1, 1, 1], [2, 3, 17], [70, 3, 41], [33, 65, 83], [1, 2, 100]]
    assert workbench.cuda_error(text, TOUCHED[example][1], shapes, alignment=4) <= 1.0
    turned = design(TRANSPOSE, "transpose", {"odd": "shifted", "rows": 16})
    assert workbench.cuda_error(turned, "transpose", [[61, 33], [1, 1], [130, 67]], alignment=4) == 0.0


@pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.name)
def test_a_design_is_recognised_with_its_options_and_no_other_text_is(family: Family) -> None:
    example = EXAMPLE[family.name]
    source, text = TOUCHED[example][0], design(family, example, {})
    found = design_in(text, FAMILIES)
    assert found is not None
    assert (found.family, found.original, found.setting) == (family, source, defaults(family))
    assert design_in(source, FAMILIES) is None
    at = text.index("}", text.index("__global__"))
    assert design_in(text[:at] + ";" + text[at:], FAMILIES) is None
    assert design_in(text.replace("//| ", "//| // ", 1).replace("//| // //", "//| int no; //", 1), FAMILIES) is None
    annotated = text.replace("__restrict__ ", "")
    assert (design_in(annotated, FAMILIES) is not None) == family.sound(defaults(family))


def test_a_knob_of_a_design_keeps_it_a_design() -> None:
    text = design(MATMUL_TILE, "matmul", {})
    knobs = CudaKnobs()
    site = knobs.applies(text)[0]
    turned = knobs.apply(text, site, {"matmul_bk": 8})
    found = design_in(turned, FAMILIES)
    assert found is not None
    assert found.setting["bk"] == 8
    assert site.sound({"matmul_bk": 8})
    assert not site.sound({"matmul_tm": 8, "matmul_tn": 8, "matmul_bm": 32, "matmul_bn": 32})
    assert "//| constexpr" not in design(MATMUL_TILE, "matmul", {})


@pytest.mark.parametrize(
    "card", [each for each in all_cards() if isinstance(each.transform, partial)], ids=lambda each: each.name
)
def test_a_move_changes_its_option_and_refuses_what_no_family_can_write(card) -> None:
    move = card.transform()
    assert isinstance(move, Move)
    assert move.applies("#include <cuda_runtime.h>\n__global__ void k(float* x) { x[0] = 1; }\n") == []
    for family in move.families:
        least = {name: min(family.options[name]) for name in move.names if name in family.options and move.rising}
        text = design(family, EXAMPLE[family.name], least)
        sites = move.applies(text)
        assert len(sites) == 1
        changed = move.apply(text, sites[0], {})
        before, after = design_in(text, FAMILIES), design_in(changed, FAMILIES)
        assert before is not None
        assert after is not None
        assert any(before.setting[name] != after.setting[name] for name in move.names if name in family.options)
        assert sum(before.setting[name] != after.setting[name] for name in family.options) <= (4 if move.lead else 2)
        assert move.applies(TOUCHED[EXAMPLE[family.name]][0]) or move.rising


def test_vectors_are_made_wider_and_never_narrower() -> None:
    card = card_named("wide_staging")
    assert card is not None
    assert card.transform is not None
    wider = card.transform()
    assert wider.applies(design(TRANSPOSE, "transpose", {"width": 4})) == []
    site = wider.applies(design(TRANSPOSE, "transpose", {"width": 2}))[0]
    assert site.choices["width"] == (4, 2)
    assert not site.sound({"width": 2})


def test_near_a_design_one_option_is_changed_before_several_are() -> None:
    card = card_named("block_swizzle")
    assert card is not None
    assert card.transform is not None
    text = design(TRANSPOSE, "transpose", {})
    swizzle = card.transform().applies(text)[0]
    first = islice(settings(swizzle.choices, swizzle.presets, (), 0, swizzle.sound), 4)
    assert [(each["group"], each["tile"], each["rows"]) for each in first] == [(n, 64, 8) for n in (4, 8, 16, 2)]
    knobs = CudaKnobs().applies(text)[0]
    turned = list(islice(settings(knobs.choices, knobs.presets, (), 0, knobs.sound), 7))
    assert all(sum(each[name] != values[0] for name, values in knobs.choices.items()) <= 1 for each in turned)
    assert len({next((n for n, v in knobs.choices.items() if each[n] != v[0]), "") for each in turned}) > 3


@pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.name)
def test_every_knob_that_is_offered_keeps_a_design_a_design(family: Family) -> None:
    for width in family.options.get("width", (1,)):
        switched = {"splits": 2, "small": 66, "group": 4, "persist": 2, "width": width}
        text = design(family, EXAMPLE[family.name], {k: v for k, v in switched.items() if k in family.options})
        for site in CudaKnobs().applies(text):
            for name, values in site.choices.items():
                for value in values:
                    turned = {each: listed[0] for each, listed in site.choices.items()} | {name: value}
                    if site.sound(turned):
                        assert design_in(CudaKnobs().apply(text, site, turned), FAMILIES) is not None, (name, value)


def test_another_family_starts_from_the_original() -> None:
    tiled = design(MATMUL_TILE, "matmul", {})
    card = card_named("matmul_tensor")
    assert card is not None
    assert card.transform is not None
    tensor = card.transform()
    text = tensor.apply(tiled, tensor.applies(tiled)[0], {})
    assert text == design(MATMUL_TENSOR, "matmul", {})
    assert MatmulTile().applies(tiled) == []
    rows = card_named("row_groups")
    assert rows is not None
    assert rows.transform is not None
    site = rows.transform().applies(design(SHUFFLE, "reduction", {}))[0]
    assert site.gain == pytest.approx(ROWS.promise - SHUFFLE.promise)
    back = card_named("shuffle_tree")
    assert back is not None
    assert back.transform is not None
    assert (back.transform().applies(design(ROWS, "reduction", {}))[0].gain or 1.0) < 0.05


def test_edits_of_the_original_go_into_the_design() -> None:
    source = TOUCHED["matmul"][0]
    transform = CudaRestrict()
    text = transform.apply(source, transform.applies(source)[0], {})
    tiled = MatmulTile().apply(text, MatmulTile().applies(text)[0], {})
    found = design_in(tiled, FAMILIES)
    assert found is not None
    assert found.original == text


def test_unsound_settings() -> None:
    for wrong in ({"stages": 3}, {"bm": 128, "bn": 128, "tm": 4, "tn": 4}, {"across": 16, "bn": 32}):
        assert not MATMUL_TILE.sound({**defaults(MATMUL_TILE), **wrong})
    for wrong in ({"wm": 64, "wn": 64}, {"bm": 32, "wm": 64}, {"bm": 128, "bn": 128, "bk": 32}):
        assert not MATMUL_TENSOR.sound({**defaults(MATMUL_TENSOR), **wrong})
    assert not ROWS.sound({**defaults(ROWS), "lanes1": 64, "lanes2": 32})
    assert all(family.sound(defaults(family)) for family in FAMILIES)


@pytest.mark.parametrize("tile", [32, 64, 96, 128])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_a_swizzled_tile_has_no_bank_conflicts(tile: int, width: int) -> None:
    """As the text says it, for the vectors of a warp, written along rows and collected along columns."""

    def spread(index: int) -> int:
        return index // 32 % 2 * 3 ^ index // 64 % 2

    text = design(TRANSPOSE, "transpose", {"layout": "swizzled"})
    assert "{ return index / 32 % 2 * 3 ^ index / 64 % 2; }" in text
    assert "return col ^ ((row ^ spread(row) ^ spread(col)) & 31);" in text
    for part in range(width):
        places = [divmod(lane, tile // width) for lane in range(32)]
        moved = [(slow, fast * width + part) for slow, fast in places]
        for cells in (moved, [(fast, slow) for slow, fast in moved]):
            banks = [(row * tile + (col ^ ((row ^ spread(row) ^ spread(col)) & 31))) % 32 for row, col in cells]
            turns = max(banks.count(bank) for bank in banks)
            assert turns == 1 or (tile == 96 and turns == 2), (tile, width, part)


def test_large_tiles_are_asked_for_at_the_launch_and_small_ones_are_not() -> None:
    large = {**defaults(MATMUL_TENSOR), "bm": 128, "bn": 128, "wm": 64, "bk": 32, "staging": "async"}
    assert not MATMUL_TENSOR.sound(large)
    assert MATMUL_TENSOR.sound({**large, "shared": "dynamic"})
    assert not MATMUL_TENSOR.sound({**large, "shared": "dynamic", "stages": 4, "blocks": 2})
    assert not MATMUL_TENSOR.sound({**defaults(MATMUL_TENSOR), "shared": "dynamic"})
    text = design(MATMUL_TENSOR, "matmul", {**large, "shared": "dynamic"})
    assert "cudaFuncSetAttribute(matmul<BM, BN, WM, WN, W>, cudaFuncAttributeMaxDynamicSharedMemorySize" in text
    assert "cudaFuncSetAttribute" not in design(MATMUL_TENSOR, "matmul", {})


def test_rows_are_written_with_the_work_done_once_unless_it_is_asked_for_as_it_was() -> None:
    once, twice = (design(ROWS, "softmax", {"work": work}) for work in ("once", "as_written"))
    assert [text[: text.index("_long(")].count("expf(") for text in (once, twice)] == [1, 2]
    assert "/ sum;" in twice
    assert "output_items[item] * reciprocal" in once


def test_a_fixed_grid_loads_what_is_the_same_for_every_row_once() -> None:
    walking = design(ROWS, "rmsnorm", {"persist": 4})
    assert walking.index("load_row<LANES, V>(weight_items") < walking.index("for (int row = blockIdx.x")
    assert walking.index("load_row<LANES, V>(x_items") > walking.index("for (int row = blockIdx.x")


def test_a_block_that_takes_turns_divides_by_a_period_no_more_than_three_times() -> None:
    once, turns = (design(ELEMENTS, "elementwise", {"persist": persist, "vectors": 4}) for persist in (0, 2))
    assert once[: once.index("tanhf(")].count("% cols") == 2
    assert turns[: turns.index("for (int turn")].count("% cols") == 3
    assert turns[turns.index("for (int turn") : turns.index("tanhf(")].count("% cols") == 0


@pytest.mark.parametrize(
    ("example", "persist", "barriers"), [("softmax", 0, 1), ("softmax", 4, 1), ("reduction", 0, 1), ("reduction", 4, 2)]
)
def test_a_combination_waits_twice_only_where_it_comes_again_at_once(example: str, persist: int, barriers: int) -> None:
    text = design(ROWS, example, {"persist": persist})
    function = text[text.index("combined_sum(T value)") :]
    assert function[: function.index("\n}")].count("__syncthreads();") == barriers
    assert "combined_sum<LANES, 0>(" in text or "combined_sum<LANES, 1>(" in text


@pytest.mark.parametrize(
    ("rows", "cols", "tall"), [(1021, 1533, 96), (2048, 2048, 128), (1500, 1500, 64), (9, 700, 64)]
)
def test_the_tile_is_chosen_by_the_busiest_multiprocessor(rows: int, cols: int, tall: int, workbench) -> None:
    """A kernel that stores how tall its tile is, in place of its sums, says which one the host chose."""
    setting = {"staging": "ahead", "bm": 128, "bn": 128, "wm": 64, "stages": 3, "shared": "dynamic", "small": 132}
    text = design(MATMUL_TENSOR, "matmul", setting)
    host, at = text[text.index('extern "C"') :], text.index('extern "C"')
    told = host.replace("launch_matmul<", "told<")
    kernel = "template <int BM, int, int, int, int> void told(const float*, const float*, float* C, int M, int N, int)"
    body = "{ for (long i = 0; i < static_cast<long>(M) * N; i++) C[i] = BM; }"
    assert told.count("told<") == 6
    assert workbench.cuda_error(f"{text[:at]}{kernel} {body}\n{told}", f"tiles_of_{tall}", [[rows, cols, 5]]) == 0.0


@pytest.mark.slow
def test_the_tile_between_large_and_small_is_right(workbench) -> None:
    setting = {"staging": "ahead", "bm": 128, "stages": 3, "shared": "dynamic", "small": 132, "parts": "mixed"}
    text = design(MATMUL_TENSOR, "matmul", setting)
    taken = text.replace("const size_t medium_share = ", "const size_t medium_share = 0 * ")
    taken = taken.replace("const size_t large_share = ", "const size_t large_share = 1 + ")
    assert taken.count("0 * share_of(96, 128)") == 1
    assert workbench.cuda_error(taken, "matmul", [[97, 130, 17]]) <= 1.0


def test_small_problems_keep_tall_sums_while_two_warps_are_left() -> None:
    setting = {**defaults(MATMUL_TILE), "bm": 128, "bn": 128, "tm": 8, "tn": 8, "small": 132}
    assert MATMUL_TILE.sound(setting)
    assert MATMUL_TILE.sound({**defaults(MATMUL_TILE), "small": 132})
    assert not MATMUL_TILE.sound({**defaults(MATMUL_TILE), "across": 16, "small": 132})


def test_both_roles_find_designs() -> None:
    tiers = {each.tier for each in all_cards() if isinstance(each.transform, partial)}
    assert {Tier.DATA_MOVEMENT, Tier.KNOBS} <= tiers

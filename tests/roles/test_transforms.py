"""Every transform at every site of every kernel keeps the result, on odd shapes, without touching a byte outside."""

import pytest
from kernels import TOUCHED

from roles.techniques.card import Card
from roles.techniques.catalog import all_cards
from roles.techniques.cpp.syntax import parse

CARDS = [card for card in all_cards() if card.transform is not None and "cpp" in card.languages]
EXPECTED = {
    "tile_nest": {"transpose"},
    "fuse_loops": {"extremes", "scale_shift"},
    "online_softmax": {"softmax"},
    "register_block": {"matmul", "matmul_size_t", "matmul_rows", "matmul_transposed", "dense", "distance"},
    "block_accumulated": {"matmul_ikj"},
    "omp_parallel": {
        "matmul",
        "matmul_size_t",
        "matmul_transposed",
        "dense",
        "distance",
        "matmul_ikj",
        "softmax",
        "softmax_rows",
        "rmsnorm",
        "rmsnorm_double",
        "sum_with_directive",
        "extremes",
        "scale_shift",
    },
    "loop_interchange": {"matmul", "matmul_size_t", "matmul_rows", "dense", "distance"},
    "vector_exp": {"softmax", "softmax_rows"},
    "store_once": {"softmax", "softmax_rows"},
    "hoist_reciprocal": {"softmax", "softmax_rows", "rmsnorm", "sum_with_directive"},
    "hoist_call": {"rmsnorm", "rmsnorm_double", "sum_with_directive"},
}


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
@pytest.mark.parametrize("kernel", TOUCHED)
def test_result_is_kept(card: Card, kernel: str, workbench) -> None:
    source, problem, shapes = TOUCHED[kernel]
    assert card.transform is not None
    transform = card.transform()
    text, edits = source, 0
    while (sites := transform.applies(text)) and edits < 4:
        edited = transform.apply(text, sites[0], {})
        assert edited != text
        assert not parse(edited).broken, edited
        text, edits = edited, edits + 1
    if edits:
        assert workbench.worst_error(text, problem, shapes) <= 1.0, text


@pytest.mark.parametrize("name", EXPECTED)
def test_applies_to_kernels_in_other_hands(name: str) -> None:
    card = next(card for card in CARDS if card.name == name)
    assert card.transform is not None
    transform = card.transform()
    assert {kernel for kernel, (source, *_) in TOUCHED.items() if transform.applies(source)} == EXPECTED[name]

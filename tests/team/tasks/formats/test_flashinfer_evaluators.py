"""Evaluators pass what is right in another order or another draw, and nothing else."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from team.tasks.formats.flashinfer.evaluators import MATCHED, ROW_DISTANCE, low_bit
from team.tasks.formats.flashinfer.inputs import packed_keys
from team.tasks.formats.flashinfer.sampling import sampled
from team.tasks.formats.flashinfer.selection import selected, unpacked_keys

Tensors = dict[str, torch.Tensor]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# ---------------------------------------------------------------- the indexer

ROWS, PAGES, PAGE, MOST, HEADS, WIDTH, TOPK = 4, 40, 8, 9, 4, 16, 24
NUMBERS = {"index_head_dim": WIDTH, "page_size": PAGE}
LENGTHS = [72, 0, 20, 65]


@pytest.fixture(scope="module")
def indexed() -> tuple[Tensors, torch.Tensor]:
    """Inputs of a small indexer, and a plain loop's answer in descending order of scores."""
    torch.manual_seed(3)
    keys = torch.randn(PAGES, PAGE, WIDTH)
    inputs = {
        "q_index_fp8": torch.randn(ROWS, HEADS, WIDTH).to(torch.float8_e4m3fn),
        "k_index_cache_fp8": packed_keys(keys).view(PAGES, PAGE, 1, WIDTH + 4),
        "weights": torch.randn(ROWS, HEADS),
        "seq_lens": torch.tensor(LENGTHS, dtype=torch.int32),
        "block_table": torch.randperm(PAGES)[: ROWS * MOST].view(ROWS, MOST).int(),
    }
    narrow, scales = unpacked_keys(inputs["k_index_cache_fp8"], WIDTH)
    assert torch.allclose(narrow.float() * scales[:, None], keys.view(-1, WIDTH), atol=0.2)
    answer = torch.full((ROWS, TOPK), -1, dtype=torch.int32)
    for row, length in enumerate(LENGTHS):
        tokens = [int(inputs["block_table"][row, at // PAGE]) * PAGE + at % PAGE for at in range(length)]
        scored = [
            sum(
                float(inputs["weights"][row, head])
                * max(0.0, float(inputs["q_index_fp8"][row, head].float() @ (narrow[token].float() * scales[token])))
                for head in range(HEADS)
            )
            for token in tokens
        ]
        best = sorted(range(length), key=lambda at: -scored[at])[:TOPK]
        answer[row, : len(best)] = torch.tensor([tokens[at] for at in best], dtype=torch.int32)
    return inputs, answer


def judged(indexed: tuple[Tensors, torch.Tensor], got: torch.Tensor) -> float | str:
    inputs, answer = indexed
    return selected({"topk_indices": got}, {"topk_indices": answer}, inputs, NUMBERS)["topk_indices"]


def test_the_reference_and_any_order_of_it_pass(indexed: tuple[Tensors, torch.Tensor]) -> None:
    answer = indexed[1]
    assert judged(indexed, answer) == 0.0
    assert judged(indexed, answer.flip(1)) == 0.0
    assert judged(indexed, answer[:, torch.randperm(TOPK)]) == 0.0


def _other(answer: torch.Tensor, inputs: Tensors, row: int) -> int:
    """A token of a row that is not selected."""
    tokens = {int(page) * PAGE + at for page in inputs["block_table"][row] for at in range(PAGE)}
    return min(tokens - set(answer[row].tolist()))


WRONG: dict[str, tuple[Callable[[torch.Tensor, Tensors], Any], str]] = {
    "all padding": (lambda got, _: got.fill_(-1), "row 0 selects 0 tokens"),
    "one missing": (lambda got, _: got[0, 5].fill_(-1), "row 0 selects 23 tokens"),
    "one twice": (lambda got, _: got[0, 5].copy_(got[0, 6]), "row 0 selects 1 tokens twice"),
    "a token of nobody": (lambda got, _: got[0, 5].fill_(PAGES * PAGE + 3), "no token of its sequence"),
    "another sequence's": (lambda got, _: got[0, 5].copy_(got[3, 0]), "no token of its sequence"),
    "beyond the length": (lambda got, inputs: got[2, 0].copy_(inputs["block_table"][2, 2] * PAGE + 6), "no token"),
    "a negative that is no padding": (lambda got, _: got[0, 5].fill_(-2), "no token of its sequence"),
    "something in an empty row": (lambda got, _: got[1, 0].copy_(got[0, 0]), "row 1 selects 1 tokens, not 0"),
    "a poor choice for the best": (lambda got, inputs: got[0, 0].fill_(_other(got, inputs, 0)), ""),
    "positions, not tokens": (lambda got, _: got.copy_(torch.arange(TOPK).expand(ROWS, TOPK)), "no token"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_selection_is_rejected(name: str, indexed: tuple[Tensors, torch.Tensor]) -> None:
    change, clause = WRONG[name]
    got = indexed[1].clone()
    change(got, indexed[0])
    verdict = judged(indexed, got)
    assert clause in verdict if isinstance(verdict, str) else verdict > 1.0 and not clause


def test_tokens_that_tie_may_be_exchanged(indexed: tuple[Tensors, torch.Tensor]) -> None:
    inputs, answer = indexed
    cache = inputs["k_index_cache_fp8"].clone()
    last, other = int(answer[0, TOPK - 1]), _other(answer, inputs, 0)
    flat = cache.view(PAGES, -1)
    for width, start in ((WIDTH, 0), (4, PAGE * WIDTH)):  # the key and its scale, copied onto the other token
        target = flat[other // PAGE, start + other % PAGE * width :][:width]
        target.copy_(flat[last // PAGE, start + last % PAGE * width :][:width])
    got = answer.clone()
    got[0, TOPK - 1] = other
    assert judged(({**inputs, "k_index_cache_fp8": cache}, answer), got) == 0.0
    assert judged((inputs, answer), got) != 0.0


# ---------------------------------------------------------------- sampling

WORDS = 200


def drawn(rows: int, top_k: int, top_p: float, seed: int = 1) -> Tensors:
    torch.manual_seed(seed)
    probs = torch.softmax(torch.randn(rows, WORDS) * 2.0, dim=-1)
    limits = {"top_k": torch.full((rows,), top_k, dtype=torch.int32), "top_p": torch.full((rows,), top_p)}
    return {"probs": probs, **limits}


def filtered(inputs: Tensors) -> torch.Tensor:
    """What the definitions' references keep, row by row."""
    kept = []
    for row, k, p in zip(inputs["probs"], inputs["top_k"].tolist(), inputs["top_p"].tolist(), strict=True):
        values, order = row.double().sort(descending=True)
        if 0 < k < WORDS:
            values[k:] = 0.0
            values /= values.sum()
        if p < 1.0:
            before = values.cumsum(0) - values
            values[(before > p) if p > 0 else (torch.arange(WORDS) > 0)] = 0.0
        kept.append(torch.zeros(WORDS, dtype=torch.float64).scatter_(0, order, values / values.sum()))
    return torch.stack(kept)


def verdict(inputs: Tensors, samples: torch.Tensor) -> float | str:
    return sampled({"samples": samples}, {}, inputs, {})["samples"]


@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (10, 1.0), (WORDS, 0.8), (40, 0.5), (1, 1.0), (0, 0.0)])
def test_a_right_sampler_passes(top_k: int, top_p: float) -> None:
    inputs = drawn(128, top_k, top_p)
    shares = [verdict(inputs, torch.multinomial(filtered(inputs), 1).squeeze(1)) for _ in range(5)]
    assert all(isinstance(share, float) and share <= 1.0 for share in shares)


CHEATS: dict[str, Callable[[Tensors, torch.Tensor], torch.Tensor]] = {
    "the likeliest": lambda inputs, kept: kept.argmax(-1),
    "any admissible one": lambda inputs, kept: torch.multinomial((kept > 0).double(), 1).squeeze(1),
    "the first admissible one": lambda inputs, kept: (kept > 0).long().argmax(-1),
    "the median one": lambda inputs, kept: (kept.cumsum(-1) < 0.5).sum(-1),
    "one draw for all": lambda inputs, kept: (kept.cumsum(-1) < 0.137).sum(-1),
    "without the filter": lambda inputs, kept: torch.multinomial(inputs["probs"], 1).squeeze(1),
    "zeros": lambda inputs, kept: torch.zeros(len(kept), dtype=torch.int64),
    "beyond": lambda inputs, kept: torch.full((len(kept),), WORDS),
    "negative": lambda inputs, kept: torch.full((len(kept),), -1),
}


@pytest.mark.parametrize("name", CHEATS)
def test_a_wrong_sampler_is_rejected(name: str) -> None:
    inputs = drawn(128, 40, 0.9)
    found = verdict(inputs, CHEATS[name](inputs, filtered(inputs)))
    assert isinstance(found, str) or found > 1.0, found


def test_of_few_rows_only_what_is_inadmissible_is_rejected() -> None:
    inputs = drawn(4, 40, 0.9)
    kept = filtered(inputs)
    likeliest = verdict(inputs, kept.argmax(-1))
    assert isinstance(likeliest, float)
    assert likeliest <= 1.0
    assert "its filter removes" in str(verdict(inputs, inputs["probs"].argmin(-1)))


def test_the_error_rate_is_as_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """At an error rate of 20 % a right sampler fails at most about one time in five; the bound is that of the text."""
    monkeypatch.setattr("team.tasks.formats.flashinfer.sampling.ERROR", 0.2)
    inputs = drawn(128, 0, 1.0)
    kept = filtered(inputs)
    shares = [verdict(inputs, torch.multinomial(kept, 1).squeeze(1)) for _ in range(60)]
    failed = sum(share > 1.0 for share in shares if isinstance(share, float))
    assert failed <= 0.2 * 60 + 4 * math.sqrt(60 * 0.2 * 0.8)
    assert max(share for share in shares if isinstance(share, float)) > 0.6  # nor is it so wide that nothing would


# ---------------------------------------------------------------- low-bit products


def rows() -> torch.Tensor:
    torch.manual_seed(5)
    return torch.randn(40, 64, dtype=torch.float64)


def low(got: torch.Tensor) -> float | str:
    return low_bit({"output": got.to(torch.bfloat16)}, {"output": rows()}, {}, {})["output"]


def test_rounding_of_a_low_bit_product_passes() -> None:
    share = low(rows() * (1 + 4e-3 * torch.randn(40, 64)))
    assert isinstance(share, float)
    assert 0.0 < share <= 1.0


def test_what_the_share_of_matches_alone_would_pass_is_rejected() -> None:
    without_one = rows()
    without_one[7] = 0.0  # 2.5 % of all elements
    one_wild = rows()
    one_wild[3, ::32] = 1e4  # 0.1 % of them
    for got in (without_one, one_wild):
        wrong = (got - rows()).abs() > 1e-2
        assert float(wrong.double().mean()) < 1 - MATCHED  # as flashinfer-bench measures it, this is right
        share = low(got)
        assert isinstance(share, float)
        assert share > 1.0


def test_a_low_bit_product_with_a_constant_factor_is_rejected() -> None:
    share = low(rows() * (1 + 2 * ROW_DISTANCE))
    assert isinstance(share, float)
    assert share > 1.0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_no_number_is_rejected(bad: float) -> None:
    got = rows()
    got[0, 0] = bad
    assert "no number" in str(low(got))

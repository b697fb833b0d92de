"""Products of TF32 parts on a tensor core that truncates as it adds: why eight terms are as many as it may add.

The model: products are exact, all terms are cut off toward zero beside the largest of them, and so is their sum
(Fasi et al., Numerical behavior of NVIDIA tensor cores, 2021). ``extra`` bits are kept while terms are aligned; none is
known for every architecture, so each is tried. The tolerance is a quarter of that of ``examples/matmul_cuda``, whose
products are deeper, at the judge's largest scale.
"""

import numpy as np
import pytest

ATOL, RTOL, SCALE = 1e-3, 1e-4, 2.0


def tf32(x: np.ndarray) -> np.ndarray:
    """The bits of a value that a tensor core reads."""
    return (x.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def bf16(x: np.ndarray) -> np.ndarray:
    """The nearest bfloat16, ties to even."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def toward_zero(x: np.ndarray, bits: int) -> np.ndarray:
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.trunc(np.ldexp(mantissa, bits)), exponent - bits)


def tensor_core(sums: np.ndarray, a: np.ndarray, b: np.ndarray, extra: int) -> np.ndarray:
    """``sums + (a * b).sum(1)``, as a tensor core adds: (n,), (n, 8), (n, 8)."""
    terms = np.concatenate([sums[:, None].astype(float), a.astype(float) * b], 1)
    _, exponent = np.frexp(np.abs(terms).max(1))
    grid = np.ldexp(1.0, exponent - 24 - extra)[:, None]
    return toward_zero((np.trunc(terms / grid) * grid).sum(1), 24).astype(np.float32)


def errors(depth: int, extra: int, outputs: int = 2000) -> tuple[float, float]:
    """Worst share of the tolerance: everything added in the tensor core, and eight terms alone."""
    rng = np.random.default_rng(depth + extra)
    a, b = (SCALE * rng.standard_normal((outputs, depth)).astype(np.float32) for _ in range(2))
    want = (a.astype(float) * b).sum(1)
    high_a, high_b = tf32(a), tf32(b)
    parts = ((tf32(a - high_a), high_b), (high_a, tf32(b - high_b)), (high_a, high_b))
    inside, rounded = np.zeros(outputs, np.float32), np.zeros(outputs, np.float32)
    for k in range(0, depth, 8):
        eight = np.zeros(outputs, np.float32)
        for left, right in parts:
            inside = tensor_core(inside, left[:, k : k + 8], right[:, k : k + 8], extra)
            eight = tensor_core(eight, left[:, k : k + 8], right[:, k : k + 8], extra)
        rounded = rounded + eight
    allowed = ATOL + RTOL * np.abs(want)
    return float((np.abs(inside - want) / allowed).max()), float((np.abs(rounded - want) / allowed).max())


@pytest.mark.parametrize("extra", [0, 1, 2, 3])
def test_eight_terms_at_a_time_stay_far_within_the_tolerance(extra: int) -> None:
    inside, rounded = errors(1024, extra)
    assert rounded < 0.2
    assert inside > 4 * rounded


def test_long_sums_inside_the_tensor_core_leave_the_tolerance_and_rounded_ones_do_not() -> None:
    inside, rounded = errors(4096, 2, 500)
    assert inside > 1.0
    assert rounded < 0.5


def mixed_errors(depth: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Errors of sums whose small products are made of bfloat16 values, and of sums in single, one term at a time."""
    rng = np.random.default_rng(depth)
    a, b = (SCALE * rng.standard_normal((outputs, depth)).astype(np.float32) for _ in range(2))
    want = (a.astype(float) * b).sum(1)
    low_a, low_b, high_a, high_b = bf16(a - tf32(a)), bf16(b - tf32(b)), tf32(a), tf32(b)
    crossed = [np.stack(each, 2) for each in ((low_a, bf16(a)), (bf16(b), low_b))]  # terms of one instruction
    mixed, single = np.zeros(outputs, np.float32), np.zeros(outputs, np.float32)
    for k in range(0, depth, 16):
        inside = np.zeros(outputs, np.float32)
        for step in (slice(k, k + 8), slice(k + 8, k + 16)):
            inside = tensor_core(inside, *(each[:, step].reshape(outputs, 16) for each in crossed), 2)
            inside = tensor_core(inside, high_a[:, step], high_b[:, step], 2)
        mixed = mixed + inside
    for k in range(depth):
        single = single + a[:, k] * b[:, k]
    return np.abs(mixed - want), np.abs(single - want)


def test_small_products_of_bfloat16_err_as_a_deep_sum_in_single_does_anyway() -> None:
    mixed, single = mixed_errors(4096, 400)
    assert np.sqrt((mixed**2).mean()) < 1.5 * np.sqrt((single**2).mean())
    assert mixed.max() < 0.5 * 4 * ATOL
    mixed, single = mixed_errors(512, 400)
    assert np.sqrt((mixed**2).mean()) > 1.5 * np.sqrt((single**2).mean())  # a shallow one is better in single
    assert mixed.max() < 0.2 * 4 * ATOL

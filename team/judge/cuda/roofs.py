"""The roofs of one GPU, measured: copy bandwidth and matrix rates.

``float32_flops_per_s`` is the best rate for float32 operands, TF32 permitted: a kernel may use the tensor cores as
long as its result is within tolerance. A roof must be above every honest kernel, and what bounds a product of random
matrices is the card's power: on an H200 750 TFLOP/s of float16 at rest, 665 when warm, while a kernel that feeds its
tensor cores from a few tiles ran at 920. So matrices of zeros are multiplied, for which hardly anything switches.
"""

from collections.abc import Callable

import torch

_COPY_BYTES = 1 << 30
_EDGE = 8192
_REPEATS = 5
_NARROW = ("float32", "float16", "bfloat16")


def measure_roofs() -> dict[str, float]:
    """Measure on the current CUDA device (about a second, 2 GiB)."""
    roofs = {"copy_bytes_per_s": _copy_rate()}
    for name in _NARROW:
        roofs[f"{name}_flops_per_s"] = _matmul_rate(getattr(torch, name), _EDGE)
    roofs["float64_flops_per_s"] = _matmul_rate(torch.float64, _EDGE // 2)
    torch.cuda.empty_cache()
    return roofs


def _copy_rate() -> float:
    """Bytes read plus bytes written per second, the best of a few."""
    source = torch.empty(_COPY_BYTES, dtype=torch.uint8, device="cuda").random_(0, 255)
    target = torch.empty_like(source)
    return 2.0 * _COPY_BYTES / _best_seconds(lambda: target.copy_(source))


def _matmul_rate(dtype: torch.dtype, edge: int) -> float:
    """Floating-point operations per second of a square product of matrices of zeros."""
    a, b = (torch.zeros(edge, edge, device="cuda", dtype=dtype) for _ in range(2))
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return 2.0 * edge**3 / _best_seconds(lambda: torch.mm(a, b))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _best_seconds(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(_REPEATS):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        stop.record()
        stop.synchronize()
        best = min(best, start.elapsed_time(stop) * 1e-3)
    return best

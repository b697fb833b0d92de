"""The roofs of one GPU, measured: copy bandwidth and matrix rates.

``float32_flops_per_s`` is the best rate for float32 operands, TF32 permitted: a kernel may use the tensor cores as long
as its result is within tolerance.
"""

import time
from collections.abc import Callable

import torch

_COPY_BYTES = 1 << 30
_EDGE = 8192
_WARM_S = 0.15
"""A card that idled raises its clocks while it works; five products from rest came to two thirds of the rate."""
_REPEATS = 12
_NARROW = ("float32", "float16", "bfloat16")


def measure_roofs() -> dict[str, float]:
    """Measure on the current CUDA device, warm (about two seconds, 2 GiB)."""
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
    """Floating-point operations per second of a square product of random matrices."""
    a, b = (torch.randn(edge, edge, device="cuda", dtype=torch.float32).to(dtype) for _ in range(2))
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return 2.0 * edge**3 / _best_seconds(lambda: torch.mm(a, b))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _best_seconds(work: Callable[[], object]) -> float:
    best, begun = float("inf"), time.monotonic()
    while time.monotonic() - begun < _WARM_S:
        work()
        torch.cuda.synchronize()
    for _ in range(_REPEATS):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        stop.record()
        stop.synchronize()
        best = min(best, start.elapsed_time(stop) * 1e-3)
    return best

"""Run by path: loads a built kernel, feeds it shapes whose buffers end at an unmapped page, prints the worst error.

Each line of standard input: ``{"library": path, "problem": name, "shapes": [[...], ...]}``. It answers with one line: a
JSON list of errors as shares of the tolerance, one a shape. An access past the end of a buffer kills the process.
"""

import ctypes
import json
import mmap
import sys
from functools import partial

import numpy as np

PAGE = mmap.PAGESIZE
LIBC = ctypes.CDLL(None, use_errno=True)
KEPT = []


ALIGNMENT = {"bytes": 4}


def guarded(shape, rng=None):
    """A float32 array whose last byte, rounded up to the alignment, is followed by an unmapped page."""
    size = -(-int(np.prod(shape)) * 4 // ALIGNMENT["bytes"]) * ALIGNMENT["bytes"]
    room = -(-max(size, 1) // PAGE) * PAGE
    memory = mmap.mmap(-1, room + PAGE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if LIBC.mprotect(ctypes.c_void_p(base + room), PAGE, 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    count = int(np.prod(shape))
    array = np.frombuffer(memory, np.float32, count, room - size).reshape(shape)
    KEPT.append(memory)
    array[...] = np.nan if rng is None else rng.standard_normal(shape)
    return array


def matmul(m, n, k, rng, transposed=False):
    a, b, c = guarded((m, k), rng), guarded((n, k) if transposed else (k, n), rng), guarded((m, n))
    right = b.T if transposed else b
    return [a, b, c, m, n, k], c, a.astype(float) @ right.astype(float)


def matmul_bt(m, n, k, rng):
    return matmul(m, n, k, rng, transposed=True)


def matmul_of_longer_rows(m, n, k, rng):
    """Rows of whole vectors, longer than what is multiplied; behind it lies what is no number."""
    down, across = k + 8 - k % 4, n + 8 - n % 4
    a, b, c = guarded((m, down), rng), guarded((k, across), rng), guarded((m, n))
    a[:, k:], b[:, n:] = np.nan, np.nan
    return [a, b, c, m, n, k, down, across], c, a[:, :k].astype(float) @ b[:, :n].astype(float)


def tiles_of(size, m, n, k, rng):
    """What a product stores that only says how tall its tile is."""
    (a, b, c, *_), out, _ = matmul(m, n, k, rng)
    return [a, b, c, m, n, k], out, np.full((m, n), float(size))


tiles_of_64, tiles_of_96, tiles_of_128 = (partial(tiles_of, size) for size in (64, 96, 128))


def dense(m, n, k, rng):
    (a, b, c, *_), out, product = matmul(m, n, k, rng)
    bias = guarded((n,), rng)
    return [a, b, bias, c, m, n, k], out, np.maximum(product + bias, 0.0)


def distance(m, n, k, rng):
    a, b, c = guarded((m, k), rng), guarded((k, n), rng), guarded((m, n))
    want = ((a.astype(float)[:, :, None] - b.astype(float)[None]) ** 2).sum(1)
    return [a, b, c, m, n, k], c, want


def softmax(rows, cols, rng):
    x, y = guarded((rows, cols), rng), guarded((rows, cols))
    x *= 20
    shifted = np.exp(x.astype(float) - x.astype(float).max(1, keepdims=True))
    return [x, y, rows, cols], y, shifted / shifted.sum(1, keepdims=True)


def rmsnorm(rows, hidden, rng):
    x, w, y = guarded((rows, hidden), rng), guarded((hidden,), rng), guarded((rows, hidden))
    wide = x.astype(float)
    return [x, w, y, rows, hidden, 1e-5], y, wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * w


def row_extremes(rows, cols, rng):
    x, y = guarded((rows, cols), rng), guarded((rows, 2))
    return [x, y, rows, cols], y, np.stack([x.max(1), x.min(1)], 1).astype(float)


def transpose(rows, cols, rng):
    x, y = guarded((rows, cols), rng), guarded((cols, rows))
    return [x, y, rows, cols], y, x.T.astype(float)


def scale_shift(rows, cols, rng):
    x, y = guarded((rows, cols), rng), guarded((rows, cols))
    return [x, y, rows, cols], y, x.astype(float) * 2.0 + 1.0


def layernorm(rows, dim, rng):
    x, y = guarded((rows, dim), rng), guarded((rows, dim))
    gamma, beta = guarded((dim,), rng), guarded((dim,), rng)
    wide = x.astype(float)
    shifted = wide - wide.mean(1, keepdims=True)
    want = shifted / np.sqrt((shifted**2).mean(1, keepdims=True) + 1e-5) * gamma + beta
    return [x, gamma, beta, y, rows, dim], y, want


def bias_gelu(rows, cols, rng):
    x, bias, y = guarded((rows, cols), rng), guarded((cols,), rng), guarded((rows, cols))
    v = x.astype(float) + bias
    return [x, bias, y, rows, cols], y, 0.5 * v * (1 + np.tanh(0.7978845608 * (v + 0.044715 * v**3)))


def row_sum(rows, cols, rng):
    x, y = guarded((rows, cols), rng), guarded((rows,))
    return [x, y, rows, cols], y, x.astype(float).sum(1)


def as_argument(value):
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int(value)


def answer(request):
    solve = ctypes.CDLL(request["library"]).solve
    ALIGNMENT["bytes"] = request.get("alignment", 4)
    make = globals()[request["problem"]]
    worst = []
    for number, shape in enumerate(request["shapes"]):
        arguments, got, want = make(*shape, rng=np.random.default_rng(number))
        solve(*map(as_argument, arguments))
        error = np.abs(got - want) / (1e-4 + 1e-4 * np.abs(want))
        worst.append(float(np.nan_to_num(error, nan=1e9).max(initial=0.0)))
    return worst


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)  # noqa: T201

"""Small products, asked for a thousand times each, and their mean."""

import torch

TIMES = 1024


def reference(a, b, y, batches):
    """a (batches, 64, 16), b (batches, 256, 16) -> y (batches, 64, 256) = a b^T, written in place."""
    y.copy_(torch.bmm(a, b.transpose(1, 2)))


def workload_model(batches):
    """A multiplication and an addition each, every time; everything moved once (float16)."""
    sides, result = 64 * 16 + 256 * 16, 64 * 256
    return {"flops": 2.0 * batches * result * 16 * TIMES, "bytes_min": 2.0 * batches * (sides + result)}

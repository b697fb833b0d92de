"""C = A @ B in the dtype of its inputs; the judge hands in float64 copies when it wants higher precision."""

import torch


def reference(A, B, C, M, N, K):
    """A (M, K), B (K, N) -> C (M, N), written in place."""
    torch.matmul(A, B, out=C)


def workload_model(M, N, K):
    """Floor of one launch: multiply-adds count two operations; every matrix moves once (float32)."""
    return {"flops": 2.0 * M * N * K, "bytes_min": 4.0 * (M * K + K * N + M * N)}

"""Sums of rows."""


def reference(x, y, rows, cols):
    """x (rows, cols) -> y (rows,), written in place."""
    y.copy_(x.sum(dim=-1))


def workload_model(rows, cols):
    """An addition an element; everything moved once (float32)."""
    return {"flops": 1.0 * rows * cols, "bytes_min": 4.0 * (rows * cols + rows)}

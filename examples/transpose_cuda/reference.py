"""Matrix transpose."""


def reference(input, output, rows, cols):
    """input (rows, cols) -> output (cols, rows), written in place."""
    output.copy_(input.transpose(0, 1))


def workload_model(rows, cols):
    """Floor of one launch: every element read once and written once (float32)."""
    return {"bytes_min": 8.0 * rows * cols}

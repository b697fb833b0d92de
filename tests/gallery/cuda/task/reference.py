"""Row softmax in the dtype of its input."""

import torch


def reference(input, output):
    """input (rows, cols) -> output (rows, cols), written in place."""
    output.copy_(torch.softmax(input, dim=-1))

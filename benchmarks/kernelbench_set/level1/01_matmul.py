"""A matrix product."""

import torch
from torch import nn


class Model(nn.Module):
    """left (rows, depth) @ right (depth, cols)."""

    def forward(self, left, right):
        return torch.matmul(left, right)


rows = 1024
depth = 1024
cols = 1024


def get_inputs():
    return [torch.randn(rows, depth), torch.randn(depth, cols)]


def get_init_inputs():
    return []

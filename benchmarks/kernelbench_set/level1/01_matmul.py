"""A matrix product."""

import torch
from torch import nn


class Model(nn.Module):
    """left (rows, inner) @ right (inner, cols)."""

    def forward(self, left, right):
        return torch.matmul(left, right)


rows = 1024
inner = 1024
cols = 1024


def get_inputs():
    return [torch.randn(rows, inner), torch.randn(inner, cols)]


def get_init_inputs():
    return []

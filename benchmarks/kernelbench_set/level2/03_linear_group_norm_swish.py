"""A linear layer, a norm over groups of its features, Swish."""

import torch
from torch import nn


class Model(nn.Module):
    """x (rows, inputs) -> (rows, features)."""

    def __init__(self, inputs, features, groups):
        super().__init__()
        self.linear = nn.Linear(inputs, features)
        self.norm = nn.GroupNorm(groups, features)

    def forward(self, x):
        return nn.functional.silu(self.norm(self.linear(x)))


rows = 1024
inputs = 512
features = 1024
groups = 16


def get_inputs():
    return [torch.randn(rows, inputs)]


def get_init_inputs():
    return [inputs, features, groups]

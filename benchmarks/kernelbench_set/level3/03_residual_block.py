"""Two convolutions with batch norms, the input added, ReLU."""

import torch
from torch import nn


class Model(nn.Module):
    """x (batch, channels, side, side) -> (batch, filters, side / 2, side / 2)."""

    def __init__(self, channels, filters):
        super().__init__()
        self.first = nn.Conv2d(channels, filters, 3, stride=2, padding=1, bias=False)
        self.second = nn.Conv2d(filters, filters, 3, padding=1, bias=False)
        self.around = nn.Conv2d(channels, filters, 1, stride=2, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(filters) for _ in range(3))

    def forward(self, x):
        inner = torch.relu(self.norms[0](self.first(x)))
        return torch.relu(self.norms[1](self.second(inner)) + self.norms[2](self.around(x)))


batch = 8
channels = 32
filters = 64
side = 32


def get_inputs():
    return [torch.randn(batch, channels, side, side)]


def get_init_inputs():
    return [channels, filters]

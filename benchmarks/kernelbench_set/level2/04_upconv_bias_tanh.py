"""A transposed convolution, a bias for every channel, tanh."""

import torch
from torch import nn


class Model(nn.Module):
    """x (batch, channels, side, side) -> (batch, filters, 2 * side, 2 * side)."""

    def __init__(self, channels, filters):
        super().__init__()
        self.up = nn.ConvTranspose2d(channels, filters, 4, stride=2, padding=1, bias=False)
        self.bias = nn.Parameter(torch.randn(filters, 1, 1))

    def forward(self, x):
        return torch.tanh(self.up(x) + self.bias)


batch = 8
channels = 32
filters = 16
side = 32


def get_inputs():
    return [torch.randn(batch, channels, side, side)]


def get_init_inputs():
    return [channels, filters]

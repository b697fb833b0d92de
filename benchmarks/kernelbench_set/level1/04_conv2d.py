"""A convolution with padding."""

import torch
from torch import nn


class Model(nn.Module):
    """x (batch, channels, side, side) -> (batch, filters, side, side)."""

    def __init__(self, channels, filters, window):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, window, padding=window // 2)

    def forward(self, x):
        return self.conv(x)


batch = 8
channels = 32
filters = 64
side = 64
window = 3


def get_inputs():
    return [torch.randn(batch, channels, side, side)]


def get_init_inputs():
    return [channels, filters, window]

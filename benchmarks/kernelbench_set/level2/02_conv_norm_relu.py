"""Convolution, batch norm over the batch at hand, ReLU."""

import torch
from torch import nn


class Model(nn.Module):
    """x (batch, channels, side, side) -> (batch, filters, side, side)."""

    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(filters)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


batch = 8
channels = 16
filters = 32
side = 64


def get_inputs():
    return [torch.randn(batch, channels, side, side)]


def get_init_inputs():
    return [channels, filters]

"""The largest of every window."""

import torch
from torch import nn


class Model(nn.Module):
    """x (batch, channels, side, side) -> a quarter of it."""

    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)

    def forward(self, x):
        return self.pool(x)


batch = 16
channels = 64
side = 128


def get_inputs():
    return [torch.randn(batch, channels, side, side)]


def get_init_inputs():
    return []

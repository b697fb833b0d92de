"""A small network for pictures: two convolutions with pools, two linear layers."""

import torch
from torch import nn


class Model(nn.Module):
    """x (batch, 3, side, side) -> (batch, classes)."""

    def __init__(self, filters, side, hidden, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, filters, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(filters, 2 * filters, 5, padding=2),
            nn.ReLU(),
            nn.AvgPool2d(2),
        )
        self.first = nn.Linear(2 * filters * (side // 4) ** 2, hidden)
        self.last = nn.Linear(hidden, classes)

    def forward(self, x):
        flat = torch.flatten(self.features(x), 1)
        return self.last(torch.relu(self.first(flat)))


batch = 64
filters = 16
side = 32
hidden = 128
classes = 10


def get_inputs():
    return [torch.randn(batch, 3, side, side)]


def get_init_inputs():
    return [filters, side, hidden, classes]

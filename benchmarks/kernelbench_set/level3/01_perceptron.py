"""Three linear layers with ReLU between them."""

import torch
from torch import nn


class Model(nn.Module):
    """x (rows, inputs) -> (rows, classes)."""

    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes)
        )

    def forward(self, x):
        return self.layers(x)


rows = 512
inputs = 512
hidden = 1024
classes = 256


def get_inputs():
    return [torch.randn(rows, inputs)]


def get_init_inputs():
    return [inputs, hidden, classes]

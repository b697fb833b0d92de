"""A transformer block: attention over heads and a feed-forward part, norms before both."""

import torch
from torch import nn


class Model(nn.Module):
    """x (batch, length, width) -> the same shape."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.mixed(self.first(x)).view(batch, length, 3, self.heads, width // self.heads)
        queries, keys, values = (part.transpose(1, 2) for part in parts.unbind(2))
        seen = nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(nn.functional.gelu(self.wide(self.second(x))))


batch = 4
length = 256
width = 512
heads = 8


def get_inputs():
    return [torch.randn(batch, length, width)]


def get_init_inputs():
    return [width, heads]

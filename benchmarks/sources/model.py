"""Functions as somebody has them in a model's file."""

import torch

EPSILON = 1e-5


def rms_norm(x, weight):
    return x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + EPSILON) * weight


def determinant(x):
    return torch.linalg.det(x)

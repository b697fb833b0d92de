"""Small functions that together use every rule of the first kernel, each with arguments that show a wrong index."""

from collections.abc import Callable

import torch
from torch.nn import functional as F

from team.tasks.first_kernel.writing import Function

Case = tuple[Callable[..., object], tuple[torch.Tensor, ...]]


def _draw(*shapes: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(sum(map(sum, shapes)))
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


_IDS = torch.tensor([[3, 0, 4], [1, 1, 2]])
CASES: dict[str, Case] = {
    "pointwise": (lambda x: F.gelu(x) + F.silu(x) * torch.tanh(x) - x.abs().sqrt() / 3 + x**3, _draw((5, 7))),
    "clamps": (lambda x: F.hardtanh(x) + F.leaky_relu(x) + torch.clamp(x, min=0.2) + F.elu(x), _draw((5, 7))),
    "exponents": (lambda x: torch.pow(x.abs() + 1, 1.7) + torch.exp(x) + F.softplus(x) + F.mish(x), _draw((5, 7))),
    "choice": (lambda x, y: torch.where(x > y, x, y * 2) + torch.maximum(x, y), _draw((4, 6), (4, 1))),
    "logic": (lambda x: ((x > 0) & (x < 1)).float() + torch.sign(x), _draw((5, 7))),
    "linear": (F.linear, _draw((3, 4, 5), (6, 5), (6,))),
    "batched": (torch.matmul, _draw((2, 3, 4, 5), (2, 3, 5, 6))),
    "transposed": (lambda x, y: x.T @ y.T, _draw((5, 3), (4, 5))),
    "softmax": (lambda x: torch.softmax(x, 1) + torch.log_softmax(x, -1), _draw((3, 4, 5))),
    "norms": (lambda x, w, b: F.layer_norm(x, (6,), w, b) + F.rms_norm(x, (6,), w), _draw((4, 6), (6,), (6,))),
    "group norm": (lambda x, w, b: F.group_norm(x, 2, w, b), _draw((2, 4, 3, 3), (4,), (4,))),
    "instance norm": (lambda x: F.instance_norm(x), _draw((2, 3, 4, 4))),
    "batch norm": (
        lambda x, m, v, w, b: F.batch_norm(x, m, v.abs() + 0.5, w, b),
        _draw((2, 3, 4), (3,), (3,), (3,), (3,)),
    ),
    "conv": (
        lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1, dilation=2),
        _draw((2, 3, 9, 8), (4, 3, 3, 2), (4,)),
    ),
    "grouped": (lambda x, w: F.conv2d(x, w, groups=2), _draw((1, 4, 5, 6), (6, 2, 3, 3))),
    "depthwise": (lambda x, w: F.conv2d(x, w, padding=1, groups=3), _draw((1, 3, 5, 6), (3, 1, 3, 3))),
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b, padding=2), _draw((2, 3, 7), (4, 3, 5), (4,))),
    "conv3d": (lambda x, w: F.conv3d(x, w, padding=1), _draw((1, 2, 4, 5, 3), (3, 2, 3, 3, 3))),
    "upwards": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
        _draw((2, 4, 3, 4), (4, 3, 3, 3), (3,)),
    ),
    "upwards in groups": (lambda x, w: F.conv_transpose1d(x, w, groups=2), _draw((1, 4, 5), (4, 3, 3))),
    "max pool": (lambda x: F.max_pool2d(x, 3, 2, 1), _draw((2, 3, 7, 8))),
    "mean pool": (lambda x: F.avg_pool2d(x, 2) + 0 * F.avg_pool2d(x, 2, padding=0), _draw((2, 3, 6, 8))),
    "pool to one": (lambda x: F.adaptive_avg_pool2d(x, (2, 1)), _draw((2, 3, 6, 8))),
    "pool of one dim": (lambda x: F.max_pool1d(x, 2) + F.avg_pool1d(x, 2), _draw((2, 3, 8))),
    "reductions": (
        lambda x: (x.sum(1), x.mean((0, 2)), x.amax(2), x.min(), x.var(1), x.std(), x.prod(0)),
        _draw((2, 3, 4)),
    ),
    "places": (lambda x: (x.argmax(1), x.argmin(0), *x.max(1)), _draw((5, 7))),
    "running": (lambda x: torch.cumsum(x, 1) + torch.flip(torch.cumsum(x.flip(1), 1), (1,)), _draw((3, 6))),
    "lengths": (lambda x: x / x.norm(dim=1, keepdim=True) + x.norm(p=1), _draw((3, 6))),
    "logsumexp": (lambda x: torch.logsumexp(x, 1), _draw((3, 6))),
    "ids": (lambda ids, t: F.embedding(ids, t).sum(1), (_IDS, *_draw((5, 4)))),
    "cross entropy": (F.cross_entropy, (_draw((4, 5))[0], torch.tensor([0, 4, 2, 2]))),
    "gather": (lambda x, ids: x.gather(1, ids) + x[:, 1:4], (_draw((2, 5))[0], _IDS)),
    "losses": (lambda x, y: F.mse_loss(x, y) + F.smooth_l1_loss(x, y) + F.l1_loss(x, y), _draw((4, 5), (4, 5))),
    "shapes": (
        lambda x: torch.cat([x.permute(2, 0, 1).reshape(4, 6), x.view(6, 4).T], 0)[1:7:2].unsqueeze(0).expand(3, 3, 6),
        _draw((2, 3, 4)),
    ),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=0.5), _draw((2, 3, 4))),
    "split": (lambda x: torch.stack([a * b for a, b in zip(x.chunk(2, 1), x.split(2, 1), strict=True)]), _draw((3, 4))),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        _draw((1, 2, 4, 3), (1, 2, 4, 3), (1, 2, 4, 3)),
    ),
    "triangle": (lambda x: torch.tril(x) @ torch.triu(x), _draw((5, 5))),
    "half": (lambda x, w: F.relu(F.linear(x, w)), tuple(one.half() for one in _draw((3, 5), (4, 5)))),
}


def function_of(name: str) -> tuple[Function, dict[str, torch.Tensor], list[torch.Tensor]]:
    """The case as a function on ``meta``, its arguments by name, and what torch makes of them."""
    call, arguments = CASES[name]
    named = {f"a{place}": value for place, value in enumerate(arguments)}
    returned = call(*arguments)
    wanted = [returned] if isinstance(returned, torch.Tensor) else list(returned)  # type: ignore[call-overload]
    results = [f"out{place}" for place in range(len(wanted))]
    meta = {key: value.to("meta") for key, value in named.items()}

    def on_meta(*tensors: torch.Tensor) -> object:
        return call(*tensors)

    return Function(on_meta, meta, results), named, wanted

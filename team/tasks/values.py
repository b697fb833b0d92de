"""Random contents of an input that the reference module does not make itself. Trusted."""

import torch


def draw(
    values: str, low: int, high: int, shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator
) -> torch.Tensor:
    """Random contents of one input: ``values`` for floats, [low, high) for integers, fair coins for bool.

    Made on the generator's device.
    """
    device = generator.device
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator, device=device).to(dtype)
    if values == "integers" or not dtype.is_floating_point:
        return torch.randint(low, high, shape, generator=generator, device=device).to(dtype)
    if values == "normal":
        return torch.randn(shape, generator=generator, device=device).to(dtype)
    uniform = torch.rand(shape, generator=generator, device=device)
    return (uniform + 1e-3 if values == "positive" else uniform).to(dtype)

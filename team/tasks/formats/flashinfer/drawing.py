"""Seeded drawing of one input set: floats by dtype, integers, cuts of a total. Trusted; on the judge's device.

Large contents are drawn where they are needed; the structure (offsets, page numbers, lengths) on the host, with a
generator of its own, so that it is the same on every device.
"""

import torch

_NARROW = (torch.float8_e4m3fn, torch.float8_e5m2)
_NARROW_LIMIT = 2.0  # as flashinfer-bench draws them


class Drawing:
    """Draws for one seed. ``device`` is where tensors lie in the end."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self.device = device
        self._wide = torch.Generator(device).manual_seed(seed)
        self._host = torch.Generator().manual_seed(seed ^ 0x5EED)

    def normal(self, shape: tuple[int, ...], dtype: torch.dtype, scale: float = 1.0) -> torch.Tensor:
        """Standard normal values times ``scale``; 8-bit floats stay within their usual range."""
        if dtype in _NARROW:
            drawn = torch.randn(shape, generator=self._wide, device=self.device, dtype=torch.float16)
            return drawn.mul_(scale).clamp_(-_NARROW_LIMIT, _NARROW_LIMIT).to(dtype)
        drawn = torch.randn(shape, generator=self._wide, device=self.device, dtype=dtype)
        return drawn if scale == 1.0 else drawn.mul_(scale)

    def uniform(self, shape: tuple[int, ...], dtype: torch.dtype, low: float, high: float) -> torch.Tensor:
        """Values between ``low`` and ``high``."""
        drawn = torch.rand(shape, generator=self._wide, device=self.device)
        return drawn.mul_(high - low).add_(low).to(dtype)

    def integers(self, shape: tuple[int, ...], low: int, high: int) -> torch.Tensor:
        """int64 in [low, high), on the host."""
        return torch.randint(low, high, shape, generator=self._host)

    def order(self, count: int) -> torch.Tensor:
        """A random order of ``count`` things, on the host."""
        return torch.randperm(count, generator=self._host)

    def some(self, count: int, among: int) -> torch.Tensor:
        """``count`` different numbers below ``among``; with repetitions only where there are too few. On the host."""
        if count > among:
            return self.integers((count,), 0, max(among, 1))
        if count * 4 > among:
            return self.order(among)[:count]
        found = self.integers((2 * count + 16,), 0, among).unique()
        while len(found) < count:
            found = torch.cat([found, self.integers((count,), 0, among)]).unique()
        return found[self.order(len(found))[:count]]

    def cut(self, total: int, parts: int, least: torch.Tensor | None = None) -> torch.Tensor:
        """``total`` cut into ``parts`` lengths at random, each at least ``least`` where that is possible. On the host.

        Without ``least``: 1 each, or, of a total that is too small for that, 1 for as many as there are.
        """
        if parts == 0:
            return torch.zeros(0, dtype=torch.int64)
        if least is None:
            least = torch.ones(parts, dtype=torch.int64)
        if int(least.sum()) > total:
            least = torch.zeros(parts, dtype=torch.int64)
            least[self.order(parts)[:total]] = 1
            least *= int(total >= int(least.sum()))
        spare = total - int(least.sum())
        cuts = self.integers((parts - 1,), 0, spare + 1).sort().values
        edges = torch.cat([torch.zeros(1, dtype=torch.int64), cuts, torch.tensor([spare])])
        return least + edges.diff()

    def place(self, values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Values of the host where they belong."""
        return values.to(dtype).to(self.device)


def offsets(lengths: torch.Tensor) -> torch.Tensor:
    """[0, l0, l0 + l1, ...]."""
    return torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])

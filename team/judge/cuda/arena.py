"""Device memory that the judge owns and lends to one runner over CUDA IPC. Trusted on this side only.

Plain allocations (never managed memory), seen here as torch tensors through ``__cuda_array_interface__``, so everything
that ``team.judge.arena`` does with a leased layout it does on the GPU.
"""

from typing import Any

import torch

from team.devices import driver
from team.judge.arena import Arena

LARGE_PAGE = 2 << 20  # bytes; the GPU's own


class CudaArena(Arena):
    """One allocation in the judge's context; ``handle`` lets one runner open it.

    It is a whole number of the GPU's large pages. One that ends within a page is mapped by small ones from end to end
    in whoever opens it, and what streams through more than half a GB of it waits for translations: on an H200 twice as
    long (``scripts/large_pages.py``).
    """

    def __init__(self, size: int) -> None:
        self.size = -(-size // LARGE_PAGE) * LARGE_PAGE
        self._allocation = driver.allocate(self.size)
        self.handle = self._allocation.handle
        self.bytes = torch.as_tensor(_Lent(self._allocation), device="cuda")

    def close(self) -> None:
        """Give the memory back."""
        del self.bytes
        driver.free(self._allocation)


class _Lent:
    """What torch needs to see an allocation as a tensor without copying it."""

    def __init__(self, allocation: driver.Allocation) -> None:
        self.__cuda_array_interface__: dict[str, Any] = {
            "shape": (allocation.size,),
            "typestr": "|u1",
            "data": (allocation.address, False),
            "version": 3,
        }

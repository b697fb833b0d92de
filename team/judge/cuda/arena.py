"""Device memory that the judge owns and lends to one runner over CUDA IPC. Trusted on this side only.

Plain allocations (never managed memory), seen here as torch tensors through ``__cuda_array_interface__``, so everything
that ``team.judge.arena`` does with a leased layout it does on the GPU.
"""

from typing import Any

import torch

from team.devices import driver
from team.judge.arena import PAGE, Arena


class CudaArena(Arena):
    """One allocation in the judge's context; ``handle`` lets one runner open it."""

    def __init__(self, size: int) -> None:
        self.size = -(-size // PAGE) * PAGE
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

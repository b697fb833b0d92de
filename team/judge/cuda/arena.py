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
        torch.cuda.current_stream()  # the primary context, made current in this thread
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


class Sweeper:
    """Reads more than the L2 holds, so that no launch finds in it what the judge has just written.

    A read leaves clean lines: the launches that follow pay for no write-back but their own.
    """

    def __init__(self, l2_bytes: int) -> None:
        self._scratch = torch.zeros(max(2 * l2_bytes, 1 << 20) // 4, dtype=torch.int32, device="cuda")

    def sweep(self) -> None:
        """Queue one pass over the scratch memory on the current stream."""
        self._scratch.amax()

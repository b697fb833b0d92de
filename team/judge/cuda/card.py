"""The judge's own use of one GPU: memory to lend, a cold L2, and whether anybody else computes there. Trusted."""

import time

import torch

from protocol.messages import DeviceInfo
from team.devices import driver
from team.devices.cuda import CudaDevice
from team.devices.telemetry import Reading, Telemetry
from team.errors import UserError
from team.judge.cuda.arena import CudaArena

QUICK_TRIES = 5  # sweeps that tell how long one takes when nobody else computes
SLOWED = 4.0  # times as long, in as many sweeps as LINGERING_TRIES, means that somebody else computes
LINGERING_TRIES = 8


class Card:
    """One GPU in the judge's context."""

    torch_device = "cuda"

    def __init__(self, device: CudaDevice) -> None:
        self.device = device
        torch.cuda.current_stream()  # makes the primary context and keeps it current in this thread
        self._scratch = torch.zeros(max(2 * device.l2_bytes, 1 << 20) // 4, dtype=torch.int32, device="cuda")
        self._telemetry = Telemetry(device.id)
        self._quick_ns = min(self._sweep_ns() for _ in range(QUICK_TRIES))

    def info(self) -> DeviceInfo:
        """What it is, with its roofs."""
        return self.device.info()

    def lend(self, size: int) -> CudaArena:
        """Memory that runners can open."""
        return CudaArena(size)

    def look(self, ours: set[int]) -> Reading:
        """Clocks, heat, throttling and strangers; ``ours`` are the processes that may be there."""
        return self._telemetry.read(ours)

    def drain(self) -> None:
        """Wait for the judge's own arithmetic."""
        torch.cuda.synchronize()

    def calm(self) -> None:
        """Leave nothing of the judge's running, nothing in the L2, and nothing kept in it.

        The L2 is emptied by reading more than it holds: clean lines cost the launches that follow no write-back.
        """
        driver.forget_persisting_lines()
        self._sweep_ns()

    def held_up(self) -> bool:
        """Whether another process keeps the card busy: contexts take turns, so the judge's own work takes longer."""
        return all(self._sweep_ns() > SLOWED * self._quick_ns for _ in range(LINGERING_TRIES))

    def free_share(self) -> float:
        """Share of the device memory that is free."""
        free, total = torch.cuda.mem_get_info()
        return free / total

    def prove_alive(self) -> None:
        """Run a small kernel; raises when the GPU does not answer rightly."""
        probe = torch.arange(1 << 16, device="cuda").sum()
        if int(probe) != (1 << 15) * ((1 << 16) - 1):
            raise UserError(f"GPU {self.device.id} computes wrongly.", "Take it out of service.")

    def _sweep_ns(self) -> int:
        torch.cuda.synchronize()
        started = time.perf_counter_ns()
        self._scratch.amax()
        torch.cuda.synchronize()
        return time.perf_counter_ns() - started

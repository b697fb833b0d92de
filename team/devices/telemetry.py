"""What was going on around a block of measurements: clocks, heat, throttling, strangers. Read, never set."""

import os
from dataclasses import dataclass

import pynvml

from team.devices import nvml

# A power cap is the steady state of any heavy kernel, and both sides run under it; these are not.
_ALARMING = (
    pynvml.nvmlClocksEventReasonHwSlowdown
    | pynvml.nvmlClocksEventReasonHwThermalSlowdown
    | pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown
    | pynvml.nvmlClocksEventReasonSwThermalSlowdown
)


@dataclass(frozen=True)
class Reading:
    """One look at the card."""

    sm_mhz: int
    memory_mhz: int
    celsius: int
    throttled: int
    strangers: tuple[int, ...]


class Telemetry:
    """Watches one GPU. ``ours`` are the processes that may use it besides this one."""

    def __init__(self, uuid: str) -> None:
        pynvml.nvmlInit()
        self._handle = nvml.handle_of(uuid)

    def read(self, ours: set[int]) -> Reading:
        """One look (well under a millisecond)."""
        handle = self._handle
        return Reading(
            sm_mhz=pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
            memory_mhz=pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
            celsius=pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
            throttled=int(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)) & _ALARMING,
            strangers=nvml.strangers(handle, {*ours, os.getpid()}),
        )


def disturbance(before: Reading, after: Reading) -> str:
    """One clause when a block between two readings should be thrown away, else empty."""
    for reading in (before, after):
        if reading.strangers:
            return f"another process ({reading.strangers[0]}) used the GPU"
        if reading.throttled:
            return f"the card throttled (reasons {reading.throttled:#x})"
    if before.memory_mhz != after.memory_mhz:
        return f"the memory clock went from {before.memory_mhz} to {after.memory_mhz} MHz"
    return ""

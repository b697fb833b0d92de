"""How near a kernel is to what its device can do: the task's floor of bytes and operations over measured roofs.

achieved / min(peak, intensity x bandwidth) equals the time at the binding roof over the time taken, which also holds
where there are bytes and no operations. Peaks are measured on the device (``team.judge.cuda.roofs``,
``team.judge.cpu_roofs``) and never looked up. Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009.
"""

import re
from collections.abc import Iterable, Mapping

from protocol.messages import DeviceInfo, Roofline
from protocol.policy import Policy

_CACHE = re.compile(r"L\d")
_BANDWIDTHS = ("copy_bytes_per_s", "memory_bytes_per_s", "cache_bytes_per_s")


def peaks_for(device: DeviceInfo, model: Mapping[str, float]) -> dict[str, float]:
    """The measured roofs that one workload of a device stands under.

    On a CPU data that fit into the last cache may be in the first-level one, so its rate bounds them; memory's bounds
    what does not fit. Which of the two a kernel's data are in nobody knows, and the higher roof promises no less.
    """
    if device.kind != "cpu":
        return dict(device.peaks)
    held = max((_bytes(size) for name, size in device.details.items() if _CACHE.match(name)), default=0)
    unused = "memory_bytes_per_s" if model.get("bytes_min", 0.0) <= held else "cache_bytes_per_s"
    return {name: rate for name, rate in device.peaks.items() if name != unused}


def _bytes(size: str) -> int:
    digits = size.rstrip("KM")
    return int(digits) * {"K": 1 << 10, "M": 1 << 20}.get(size[-1:], 1) if digits.isdigit() else 0


def bandwidth_of(peaks: Mapping[str, float]) -> float | None:
    """Bytes per second of the device's memory, as measured; None when nothing was."""
    return next((peaks[name] for name in _BANDWIDTHS if peaks.get(name)), None)


def peak_of(peaks: Mapping[str, float], dtype: str) -> float | None:
    """Operations per second on operands of ``dtype``, as measured; None when it was not."""
    return peaks.get(f"{dtype}_flops_per_s") or None


def roofline(
    workload: str, time_ns: float, model: Mapping[str, float], peaks: Mapping[str, float], dtype: str
) -> Roofline:
    """One workload that took ``time_ns`` per call against its floor.

    ``model``: ``flops`` and ``bytes_min`` of one call, empty when the task has no model. A roof that was not measured
    does not bind; when none that the model needs was, or there is no model, the mode says so and no roof is named.
    """
    flops, moved = model.get("flops"), model.get("bytes_min")
    bandwidth, peak = bandwidth_of(peaks), peak_of(peaks, dtype)
    floors = {
        "memory": moved / bandwidth * 1e9 if moved and bandwidth else 0.0,
        "compute": flops / peak * 1e9 if flops and peak else 0.0,
    }
    roof = "compute" if floors["compute"] > floors["memory"] else "memory"
    if not floors[roof]:
        mode = "bottleneck_gap_heuristic"
        return Roofline(workload=workload, mode=mode, time_ns=time_ns, flops=flops, bytes_min=moved)
    return Roofline(
        workload=workload,
        mode="workload_model",
        time_ns=time_ns,
        flops=flops,
        bytes_min=moved,
        roof=roof,
        floor_ns=floors[roof],
    )


def is_near_peak(rooflines: Iterable[Roofline], policy: Policy) -> bool:
    """Whether every workload is near its binding roof. Without a model of all of them this is never claimed."""
    shares = [one.share if one.mode == "workload_model" else None for one in rooflines]
    return bool(shares) and all(share is not None and share >= 1.0 - policy.near_peak_within for share in shares)

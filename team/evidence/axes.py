"""How much of each axis a kernel leaves unused. What was not measured is unknown: no gap, and not zero either."""

from collections.abc import Mapping

from protocol.messages import AxisGaps
from protocol.profiling import DRAM, SM
from team.evidence.metrics import AXES, STALL, WORKING, Axis

_COMPUTE = (SM, "tensor_pipe", "fma_pipe")
_MEMORY = (DRAM, "memory_throughput")


def gaps_of(metrics: Mapping[str, float]) -> AxisGaps:
    """Gaps from one kernel's metrics by the house's names (shares of 1).

    Compute: what the busiest of the SM and its arithmetic pipes leaves. Memory: what DRAM leaves, or the memory system
    where DRAM was not measured. Latency: the largest share of their time that warps wait for one and the same reason;
    issuing, losing to another warp and waiting for an arithmetic unit are no waiting.
    """
    busy = [metrics[name] for name in _COMPUTE if name in metrics]
    moved = [metrics[name] for name in _MEMORY if name in metrics]
    idle = {f"{STALL}{reason}" for reason in WORKING}
    waits = [value for name, value in metrics.items() if name.startswith(STALL) and name not in idle]
    return AxisGaps(
        compute=_within(1.0 - max(busy)) if busy else None,
        memory=_within(1.0 - moved[0]) if moved else None,
        latency=_within(max(waits)) if waits else None,
    )


def as_mapping(gaps: AxisGaps) -> dict[Axis, float | None]:
    """The gaps by axis."""
    return {"compute": gaps.compute, "memory": gaps.memory, "latency": gaps.latency}


def widest(gaps: AxisGaps) -> Axis | None:
    """The axis with the largest known gap, in the order of the axes where they are equal; None when none is known."""
    known = as_mapping(gaps)
    there: list[Axis] = [axis for axis in AXES if known[axis] is not None]
    return max(there, key=lambda axis: known[axis] or 0.0) if there else None


def _within(share: float) -> float:
    return min(1.0, max(0.0, share))

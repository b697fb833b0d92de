"""The metrics of a GPU profile under the house's own names: what Nsight Compute calls them, and which are collected.

Names differ between chips and versions, so each metric has several, the preferred one first. What none of a metric's
names brought is unknown: it has no reading, and never the value zero. Percentages become shares of 1. Sections are
NVIDIA's own sets for the chip at hand; the names listed here are collected beside them, and only those that the
installed version knows (``ncu --query-metrics``).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from protocol.profiling import DRAM, OCCUPANCY, SM

Axis = Literal["compute", "memory", "latency"]
AXES: tuple[Axis, ...] = get_args(Axis)
Bundle = Literal["full", "light"]
_ELAPSED, _ACTIVE = "avg.pct_of_peak_sustained_elapsed", "avg.pct_of_peak_sustained_active"
DURATION, REGISTERS = "duration", "registers_per_thread"


@dataclass(frozen=True)
class Metric:
    """One logical metric. ``better``: what a fast kernel shows; empty where neither says anything by itself.

    ``sectioned``: the profiler computes it with a section and does not list it among the metrics of the chip.
    """

    name: str
    sources: tuple[str, ...]
    axes: tuple[Axis, ...] = ()
    better: Literal["higher", "lower", ""] = ""
    unit: str = "share"
    light: bool = False
    sectioned: bool = False
    largest: bool = False  # of several pipes, the busiest


def _m(
    name: str,
    *sources: str,
    axes: tuple[Axis, ...] = (),
    better: Literal["higher", "lower", ""] = "",
    unit: str = "share",
    light: bool = False,
    sectioned: bool = False,
    largest: bool = False,
) -> Metric:
    return Metric(name, sources, axes, better, unit, light, sectioned, largest)


_PIPES = "sm__inst_executed_pipe_"
METRICS: tuple[Metric, ...] = (
    _m(DURATION, "gpu__time_duration.sum", unit="ns", better="lower", light=True),
    _m(SM, f"sm__throughput.{_ELAPSED}", axes=("compute",), better="higher", light=True),
    _m(
        "tensor_pipe",
        f"sm__pipe_tensor_cycles_active.{_ELAPSED}",
        f"sm__pipe_tensor_cycles_active.{_ACTIVE}",
        f"sm__pipe_tensor_op_hmma_cycles_active.{_ACTIVE}",
        f"{_PIPES}tensor_op_gmma.{_ACTIVE}",
        f"{_PIPES}tensor_op_hmma.{_ACTIVE}",
        f"{_PIPES}tensor.{_ACTIVE}",
        axes=("compute",),
        better="higher",
        light=True,
        largest=True,
    ),
    _m("fma_pipe", f"{_PIPES}fma.{_ACTIVE}", f"{_PIPES}fma.{_ELAPSED}", axes=("compute",), better="higher", light=True),
    _m("alu_pipe", f"{_PIPES}alu.{_ACTIVE}", axes=("compute",), better="higher"),
    _m("lsu_pipe", f"{_PIPES}lsu.{_ACTIVE}", axes=("memory",)),
    _m(
        "ipc",
        "sm__inst_executed.avg.per_cycle_active",
        axes=("compute",),
        better="higher",
        unit="inst/cycle",
        light=True,
    ),
    _m("issue_active", f"smsp__issue_active.{_ACTIVE}", axes=("compute", "latency"), better="higher", light=True),
    _m(OCCUPANCY, f"sm__warps_active.{_ACTIVE}", axes=("compute", "latency"), better="higher", light=True),
    _m("theoretical_occupancy", "sm__maximum_warps_per_active_cycle_pct", better="higher", light=True, sectioned=True),
    _m(
        DRAM,
        f"gpu__dram_throughput.{_ELAPSED}",
        f"dram__throughput.{_ELAPSED}",
        axes=("memory",),
        better="higher",
        light=True,
    ),
    _m(
        "memory_throughput", f"gpu__compute_memory_throughput.{_ELAPSED}", axes=("memory",), better="higher", light=True
    ),
    _m("l2_throughput", f"lts__throughput.{_ELAPSED}", axes=("memory",), light=True),
    _m("l1_throughput", f"l1tex__throughput.{_ACTIVE}", axes=("memory",), light=True),
    _m("l2_hit_rate", "lts__t_sector_hit_rate.pct", axes=("memory",), better="higher"),
    _m("l1_hit_rate", "l1tex__t_sector_hit_rate.pct", axes=("memory",), better="higher"),
    _m("dram_bytes_read", "dram__bytes_read.sum", axes=("memory",), better="lower", unit="byte"),
    _m("dram_bytes_written", "dram__bytes_write.sum", axes=("memory",), better="lower", unit="byte"),
    _m(
        "bytes_per_loaded_sector",
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
        axes=("memory",),
        better="higher",
        unit="byte/sector",
    ),
    _m(
        "bytes_per_stored_sector",
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio",
        axes=("memory",),
        better="higher",
        unit="byte/sector",
    ),
    _m(
        "shared_bank_conflicts",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
        axes=("memory",),
        better="lower",
        unit="count",
    ),
    _m("local_loads", "smsp__sass_inst_executed_op_local_ld.sum", axes=("memory",), better="lower", unit="inst"),
    _m("local_stores", "smsp__sass_inst_executed_op_local_st.sum", axes=("memory",), better="lower", unit="inst"),
    _m(
        "warp_latency",
        "smsp__average_warp_latency_per_inst_issued.ratio",
        "smsp__average_warps_active_per_inst_issued.ratio",
        axes=("latency",),
        better="lower",
        unit="cycle/inst",
        light=True,
    ),
    _m("eligible_warps", "smsp__warps_eligible.avg.per_cycle_active", axes=("latency",), better="higher", unit="warp"),
    _m("waves", "launch__waves_per_multiprocessor", unit="wave", light=True, sectioned=True),
    _m(REGISTERS, "launch__registers_per_thread", better="lower", unit="register", light=True, sectioned=True),
    _m("shared_bytes_static", "launch__shared_mem_per_block_static", unit="byte", light=True, sectioned=True),
    _m("shared_bytes_dynamic", "launch__shared_mem_per_block_dynamic", unit="byte", light=True, sectioned=True),
)

WORKING = ("selected", "not_selected", "math_pipe_throttle", "gmma")
"""States of a warp that are no waiting for latency: it issues, another one does, or an arithmetic unit is busy."""

REASONS = (
    "long_scoreboard", "short_scoreboard", "barrier", "mio_throttle", "lg_throttle", "wait", "membar", "no_instruction",
    "branch_resolving", "dispatch_stall", "drain", "imc_miss", "misc", "sleeping", "tex_throttle", *WORKING,
)  # fmt: skip
STALL = "stall_"

SECTIONS: dict[Bundle, tuple[str, ...]] = {
    "light": ("SpeedOfLight", "LaunchStats", "Occupancy", "WarpStateStats"),
    "full": (
        "SpeedOfLight", "LaunchStats", "Occupancy", "WarpStateStats", "SchedulerStats", "ComputeWorkloadAnalysis",
        "MemoryWorkloadAnalysis",
    ),
}  # fmt: skip

PREFERRED: dict[Axis, tuple[str, ...]] = {
    "compute": ("tensor_pipe", "fma_pipe", SM, "ipc", OCCUPANCY),
    "memory": (DRAM, "memory_throughput", "l2_hit_rate", "l1_hit_rate", "shared_bank_conflicts"),
    "latency": (
        f"{STALL}long_scoreboard", f"{STALL}barrier", f"{STALL}mio_throttle", f"{STALL}wait", "warp_latency",
    ),
}  # fmt: skip


def collected(bundle: Bundle) -> tuple[Metric, ...]:
    """The metrics of a set; which ones is pinned here, so that two reports of a campaign compare."""
    return tuple(metric for metric in METRICS if bundle == "full" or metric.light)


def requested(bundle: Bundle, installed: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(names to ask the profiler for, logical metrics that it knows under none of their names).

    ``installed``: the chip's metrics without suffixes; when it is empty, nothing could be asked and sections must do.
    """
    known, names, unknown = set(installed), list[str](), list[str]()
    for metric in collected(bundle):
        if metric.sectioned:
            continue
        there = [source for source in metric.sources if source.partition(".")[0] in known]
        names += there if metric.largest else there[:1]
        unknown += [] if there else [metric.name]
    return tuple(names), tuple(unknown)


def installed_names(said: str) -> frozenset[str]:
    """Names without suffixes from the output of ``ncu --query-metrics``, as table or CSV."""
    words = (line.split()[0].partition(",")[0].strip('"') for line in said.splitlines() if line.split())
    return frozenset(word for word in words if re.fullmatch(r"[a-z][a-z0-9]*__\w+", word))

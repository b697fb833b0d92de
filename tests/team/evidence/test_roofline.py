"""Roofline, gaps and budget: what was not measured is never claimed, and nothing is filled up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.messages import AxisGaps, DeviceInfo, Roofline
from protocol.policy import Policy
from team.evidence.axes import as_mapping, gaps_of, widest
from team.evidence.budget import axis_budget
from team.evidence.metrics import AXES
from team.evidence.roofline import is_near_peak, peaks_for, roofline

LAW = Policy()
PEAKS = {"copy_bytes_per_s": 4e12, "float32_flops_per_s": 4e14}
GAP = st.none() | st.floats(0.0, 1.0)
GAPS = st.builds(AxisGaps, compute=GAP, memory=GAP, latency=GAP)


def test_a_matrix_product_meets_the_compute_roof() -> None:
    model = {"flops": 2.0 * 4096**3, "bytes_min": 4.0 * 3 * 4096**2}
    found = roofline("4096", 1e6, model, PEAKS, "float32")
    assert found.roof == "compute"
    peak = min(PEAKS["float32_flops_per_s"], (found.intensity or 0.0) * PEAKS["copy_bytes_per_s"])
    assert found.share == pytest.approx((found.achieved_flops_per_s or 0.0) / peak)


def test_a_copy_meets_the_memory_roof_though_it_computes_nothing() -> None:
    found = roofline("copy", 100_000.0, {"flops": 0.0, "bytes_min": 2e8}, PEAKS, "float32")
    assert found.roof == "memory"
    assert found.share == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("model", "peaks"),
    [({}, PEAKS), ({"flops": 1e9, "bytes_min": 1e6}, {}), ({"flops": 1e9}, {"copy_bytes_per_s": 1e12})],
)
def test_without_model_or_measured_roof_it_is_a_heuristic(model: dict[str, float], peaks: dict[str, float]) -> None:
    found = roofline("w", 1e3, model, peaks, "float32")
    assert found.mode == "bottleneck_gap_heuristic"
    assert (found.share, found.roof) == (None, "")
    assert not is_near_peak([found], LAW)


def test_near_peak_needs_every_workload_and_the_binding_roof_alone() -> None:
    """A copy at 95 % of the bandwidth is near its peak although its SMs idle; the skill asked for all axes at once."""
    near = roofline("a", 105_000.0, {"flops": 0.0, "bytes_min": 4e8}, PEAKS, "float32")
    far = roofline("b", 500_000.0, {"flops": 0.0, "bytes_min": 4e8}, PEAKS, "float32")
    assert is_near_peak([near], LAW)
    assert not is_near_peak([near, far], LAW)
    assert not is_near_peak([], LAW)
    blind = Roofline(workload="c", mode="bottleneck_gap_heuristic", time_ns=1.0)
    assert not is_near_peak([near, blind], LAW)


def test_achieved_work_decides_and_not_utilisation() -> None:
    """A kernel that moves every byte eight times keeps DRAM busy and is still far from its roof."""
    wasteful = roofline("w", 8 * 100_000.0, {"flops": 0.0, "bytes_min": 4e8}, PEAKS, "float32")
    assert gaps_of({"dram_throughput": 0.99}).memory == pytest.approx(0.01)
    assert wasteful.share == pytest.approx(0.125)


def test_unknown_is_no_gap_and_not_zero() -> None:
    gaps = gaps_of({"sm_throughput": 0.2})
    assert gaps.compute == pytest.approx(0.8)
    assert (gaps.memory, gaps.latency) == (None, None)
    assert axis_budget(gaps, LAW) == {"compute": 2, "memory": 0, "latency": 0}
    assert widest(gaps) == "compute"
    assert widest(AxisGaps()) is None
    assert axis_budget(AxisGaps(), LAW) == dict.fromkeys(AXES, 0)


def test_a_single_gap_is_not_padded_to_three_methods() -> None:
    """The skill forced a third method onto an axis without a gap, and 1/1/1 where there was none at all."""
    assert sum(axis_budget(AxisGaps(compute=0.9, memory=0.0, latency=0.05), LAW).values()) == 2
    assert sum(axis_budget(AxisGaps(compute=0.0, memory=0.0, latency=0.0), LAW).values()) == 0


def test_waiting_is_the_largest_stall_that_is_one() -> None:
    metrics = {"stall_long_scoreboard": 0.3, "stall_selected": 0.5, "stall_math_pipe_throttle": 0.4, "stall_wait": 0.1}
    assert gaps_of(metrics).latency == pytest.approx(0.3)


def test_memory_is_judged_by_dram_where_it_was_measured() -> None:
    assert gaps_of({"dram_throughput": 0.2, "memory_throughput": 0.9}).memory == pytest.approx(0.8)
    assert gaps_of({"memory_throughput": 0.9}).memory == pytest.approx(0.1)


@given(GAPS)
def test_budgets_keep_their_caps_and_follow_the_gaps(gaps: AxisGaps) -> None:
    known, budget = as_mapping(gaps), axis_budget(gaps, LAW)
    wide = {axis: gap for axis, gap in known.items() if gap is not None and gap >= LAW.gap_from}
    assert all(not budget[axis] for axis in AXES if axis not in wide)
    assert all(budget[axis] <= LAW.axis_cap for axis in AXES)
    assert sum(budget.values()) == min(LAW.axis_methods, LAW.axis_cap * len(wide))
    for axis, gap in wide.items():
        assert all(budget[axis] >= budget[other] for other, less in wide.items() if gap > less)


def test_the_largest_remainder_gets_what_is_left() -> None:
    assert axis_budget(AxisGaps(compute=0.5, memory=0.3, latency=0.2), LAW) == {"compute": 1, "memory": 1, "latency": 1}
    assert axis_budget(AxisGaps(compute=0.8, memory=0.4, latency=0.0), LAW) == {"compute": 2, "memory": 1, "latency": 0}


def test_on_a_cpu_what_fits_into_its_caches_is_bound_by_the_first_of_them() -> None:
    details = {"L1d": "32K", "L2": "512K", "L3": "32768K", "cores": "0-1"}
    rates = {"memory_bytes_per_s": 1e10, "cache_bytes_per_s": 4e11, "float32_flops_per_s": 1e11}
    device = DeviceInfo(kind="cpu", id="cpu:0", name="x", details=details, peaks=rates)
    assert "memory_bytes_per_s" not in peaks_for(device, {"bytes_min": 32.0 * 2**20})
    assert "cache_bytes_per_s" not in peaks_for(device, {"bytes_min": 33.0 * 2**20})
    assert peaks_for(device.model_copy(update={"kind": "cuda"}), {"bytes_min": 1.0}) == rates

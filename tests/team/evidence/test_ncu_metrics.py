"""Reports of Nsight Compute under the house's names: units, missing values, launches, and the names it knows."""

from pathlib import Path

import pytest

from protocol.messages import Position
from protocol.policy import Policy
from protocol.profiling import position_of
from team.evidence.axes import gaps_of
from team.evidence.metrics import METRICS, PREFERRED, STALL, collected, installed_names, requested
from team.evidence.readings import in_base_units, readings, top
from team.evidence.reports import RawKernel, Unreadable, number, parse_raw_page, parse_reader, profiles_of

REPORTS = Path(__file__).parent / "reports"
PAGE = (REPORTS / "two_kernels.csv").read_text()


def test_every_launch_is_there_and_the_longest_is_the_subject() -> None:
    subject, other = profiles_of(parse_raw_page(PAGE))
    assert subject.name.startswith("void row_sum<float, 256>(const float *")
    assert (subject.grid, subject.block, subject.duration_ns) == ("(16384, 1, 1)", "(256, 1, 1)", 34592.0)
    assert (other.name, other.duration_ns) == ("zero(float *, int)", 4096.0)


def test_values_have_units_and_percentages_become_shares() -> None:
    metrics = profiles_of(parse_raw_page(PAGE))[0].metrics
    assert metrics["dram_bytes_read"] == 134217728.0
    assert metrics["dram_throughput"] == pytest.approx(0.8841)
    assert metrics["registers_per_thread"] == 32.0
    assert metrics["l1_hit_rate"] == 0.0
    assert position_of(metrics, Policy()) is Position.BANDWIDTH


@pytest.mark.parametrize(
    ("value", "unit", "base"),
    [
        (34.592, "us", (34592.0, "ns")),
        (34.592, "usecond", (34592.0, "ns")),
        (2.0, "msecond", (2e6, "ns")),
        (7.0, "ns", (7.0, "ns")),
        (1.5, "second", (1.5e9, "ns")),
        (134.2, "Mbyte", (134.2e6, "byte")),
        (4.3, "Tbyte/second", (4.3e12, "byte/second")),
        (88.0, "%", (0.88, "share")),
        (3.0, "inst/cycle", (3.0, "inst/cycle")),
    ],
)
def test_a_report_in_scaled_units_means_the_same(value: float, unit: str, base: tuple[float, str]) -> None:
    """The optimizer's skill dropped the units of a page that scales them by itself (section 10, number 18)."""
    found, name = in_base_units(value, unit)
    assert (pytest.approx(found), name) == base


def test_what_is_no_number_is_unknown_and_not_zero() -> None:
    launch = parse_raw_page(PAGE)[1]
    assert "sm__cycles_active.avg" not in launch.values
    assert number("n/a") is None
    assert number("nan") is None
    assert number("1,234.5 (10; 20)") == 1234.5
    assert number("1.5e+09") == 1.5e9
    assert "tensor_pipe" not in RawKernel("k").values
    gaps = gaps_of({})
    assert (gaps.compute, gaps.memory, gaps.latency) == (None, None, None)


def test_stalls_are_shares_of_the_time_of_warps() -> None:
    metrics = profiles_of(parse_raw_page(PAGE))[0].metrics
    stalls = {name: value for name, value in metrics.items() if name.startswith(STALL)}
    assert sum(stalls.values()) == pytest.approx(1.0)
    assert stalls["stall_long_scoreboard"] == pytest.approx(120.0 / 124.0)


def test_the_top_of_an_axis_is_the_preferred_ones_and_then_the_most_severe() -> None:
    subject = profiles_of(parse_raw_page(PAGE))[1]
    found = top(subject.readings, 5)
    assert [one.metric for one in found["compute"]] == list(PREFERRED["compute"])
    assert [one.metric for one in found["latency"]][:4] == [
        "stall_long_scoreboard", "stall_barrier", "stall_wait", "warp_latency",
    ]  # fmt: skip
    assert found["latency"][4].metric == "occupancy"
    assert all(len(ones) == 2 for ones in top(subject.readings, 2).values())
    names = {one.metric for one in found["latency"]}
    assert not names & {"stall_selected", "stall_not_selected"}


def test_the_first_known_name_counts_and_of_pipes_the_busiest() -> None:
    raw = {
        "dram__throughput.avg.pct_of_peak_sustained_elapsed": (40.0, "%"),
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": (0.0, "%"),
        "sm__inst_executed_pipe_tensor_op_gmma.avg.pct_of_peak_sustained_active": (60.0, "%"),
    }
    found = {one.metric: one for one in readings(raw)}
    assert found["dram_throughput"].source.startswith("dram__throughput")
    assert found["tensor_pipe"].value == pytest.approx(0.6)
    assert set(found) == {"dram_throughput", "tensor_pipe"}


def test_names_that_this_version_lacks_are_reported() -> None:
    installed = installed_names((REPORTS / "query.txt").read_text())
    assert "dram__bytes_read" in installed
    assert "Metric" not in installed
    names, unknown = requested("full", installed)
    assert "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed" in names
    assert "dram__throughput.avg.pct_of_peak_sustained_elapsed" not in names
    assert "sm__inst_executed_pipe_tensor_op_gmma.avg.pct_of_peak_sustained_active" in names
    assert "l2_hit_rate" in unknown
    assert "sm_throughput" not in unknown
    assert "registers_per_thread" not in unknown


def test_names_are_read_from_a_csv_listing_too() -> None:
    said = '"Metric Name","Metric Type"\n"dram__bytes","Counter","byte","# of bytes"\n==PROF== done\n'
    assert installed_names(said) == {"dram__bytes"}


def test_the_light_set_still_places_a_kernel() -> None:
    light = {metric.name for metric in collected("light")}
    assert {"sm_throughput", "dram_throughput", "occupancy", "duration"} <= light
    assert light < {metric.name for metric in collected("full")}
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "text", ["", "==ERROR== no", '"ID","Context"\n"","a"\n', '"ID","Kernel Name","x__y"\n"0","k","3"\n']
)
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        parse_raw_page(text)


def test_what_the_profiler_prints_before_the_page_is_passed_over() -> None:
    assert len(parse_raw_page(f"==PROF== Loading report\n==WARNING== x\n{PAGE}")) == 2


def test_the_reader_gives_the_same_launches() -> None:
    said = '[{"name": "k", "grid": "(1, 1, 1)", "block": "", "values": {"gpu__time_duration.sum": [7, "ns"]}}]'
    (launch,) = parse_reader(said)
    assert profiles_of([launch])[0].duration_ns == 7.0
    with pytest.raises(Unreadable):
        parse_reader('{"name": 3}')

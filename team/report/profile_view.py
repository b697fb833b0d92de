"""A profile on a terminal: what may be claimed, position, launches, top metrics per axis, rooflines, machine code."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from protocol.messages import ProfileReport, Reading, Roofline
from protocol.profiling import DRAM, OCCUPANCY, SM
from team.report import wording as w

_WIDTH = 72
_OPCODES = 6


def render_profile(report: ProfileReport, device: str = "") -> RenderableType:
    """The whole report."""
    parts = [_head(report, device), _rooflines(report), _kernels(report), _top(report), _sass(report), _remarks(report)]
    return Group(*(part for part in parts if part is not None))


def metric_value(reading: Reading) -> str:
    """A value with its unit; shares as percentages."""
    if reading.unit == "share":
        return w.percent(reading.value, 1)
    if reading.unit == "ns":
        return w.nanoseconds(reading.value)
    value = f"{reading.value:,.0f}" if abs(reading.value) >= 1000.0 else f"{reading.value:.4g}"
    return f"{value} {reading.unit}".rstrip()


def flop_rate(rate: float) -> str:
    """Operations per second with the prefix that suits them."""
    scale, prefix = (1e12, "T") if rate >= 1e12 else (1e9, "G")
    return f"{rate / scale:.3g} {prefix}FLOP/s"


def distance(one: Roofline) -> str:
    """How far a workload is from its binding roof, in words."""
    if one.share is None:
        return "no workload model or roof: a heuristic of gaps only"
    return f"{w.percent(one.share, 1)} of the {one.roof} roof"


def _head(report: ProfileReport, device: str) -> RenderableType:
    name = report.commit[:12] + (f" on {device}" if device else "")
    text = Text.assemble((name, "bold"), f": {report.position.value}, by {report.tool} ({report.level})")
    lines: list[RenderableType] = [text, Text(w.plain(report.claim), style="dim")]
    gaps = [(axis, gap) for axis, gap in report.gaps.model_dump().items() if gap is not None]
    if gaps:
        lines.append(Text("unused: " + ", ".join(f"{axis} {w.percent(gap, 0)}" for axis, gap in gaps)))
    if report.near_peak:
        lines.append(Text("every workload is near its binding roof", style="green"))
    if report.file:
        lines.append(Text(f"the profiler's own report: {report.file}", style="dim"))
    return Group(*lines)


def _rooflines(report: ProfileReport) -> Table | None:
    if not report.rooflines:
        return None
    table = _table("workload", "per call", "FLOP/byte", "achieved", "roofline")
    for one in report.rooflines:
        rate = one.achieved_flops_per_s
        intensity = "-" if one.intensity is None else f"{one.intensity:.3g}"
        achieved = flop_rate(rate) if rate else "-"
        table.add_row(w.plain(one.workload), w.nanoseconds(one.time_ns), intensity, achieved, distance(one))
    return table


def _kernels(report: ProfileReport) -> Table | None:
    if not report.kernels:
        return None
    table = _table(f"launches of one call on {report.workload}", "time", "grid", "block", "SM", "DRAM", "occupancy")
    for one in report.kernels:
        shares = [one.metrics.get(name) for name in (SM, DRAM, OCCUPANCY)]
        took = "-" if one.duration_ns is None else w.nanoseconds(one.duration_ns)
        said = ["-" if share is None else w.percent(share, 0) for share in shares]
        table.add_row(w.cut(w.plain(one.name), _WIDTH), took, one.grid, one.block, *said)
    return table


def _top(report: ProfileReport) -> Table | None:
    if not any(report.top.values()):
        return None
    table = _table("axis", "metric", "value", "as ncu calls it")
    for axis, readings in report.top.items():
        for at, reading in enumerate(readings):
            table.add_row("" if at else axis, reading.metric, metric_value(reading), reading.source)
    return table


def _sass(report: ProfileReport) -> Table | None:
    if not report.sass:
        return None
    table = _table("machine code of", "most frequent opcodes")
    for name, counts in report.sass.items():
        most = sorted(counts.items(), key=lambda pair: -pair[1])[:_OPCODES]
        table.add_row(w.cut(w.plain(name), _WIDTH), "  ".join(f"{opcode} {count}" for opcode, count in most))
    return table


def _remarks(report: ProfileReport) -> RenderableType | None:
    return Group(*(Text(f"- {w.plain(remark)}") for remark in report.remarks)) if report.remarks else None


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    for name in columns:
        table.add_column(w.plain(name), overflow="fold")
    return table

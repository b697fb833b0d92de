"""What a mind is told of a profile: how far it carries, the metrics that say most, the distance to the roofs."""

from collections.abc import Iterator

from protocol.messages import ProfileReport, Roofline

_LAUNCHES = 6


def in_short(report: ProfileReport) -> Iterator[str]:
    """The claim, the top metrics of each axis (or all there are), unused shares, rooflines, launches."""
    first = {one.metric: one.value for readings in report.top.values() for one in readings} or report.metrics
    figures = ", ".join(f"{name} {value:.4g}" for name, value in first.items())
    yield f"profile by {report.tool}: {figures or 'no figures'}. {report.claim}"
    gaps = [f"{axis} {gap:.0%}" for axis, gap in report.gaps.model_dump().items() if gap is not None]
    if gaps:
        yield f"unused, by axis: {', '.join(gaps)}; an axis that is not named is unknown"
    yield from (_roof(one) for one in report.rooflines)
    if len(report.kernels) > 1:
        launches = [f"{one.name[:80]} {one.duration_ns or 0.0:.0f} ns" for one in report.kernels[:_LAUNCHES]]
        yield f"one call launches {len(report.kernels)} kernels: {'; '.join(launches)}"


def in_full(report: ProfileReport) -> Iterator[str]:
    """The same with every metric of the longest launch, its machine code, and every remark."""
    yield from in_short(report)
    yield from (f"{name}: {value:g}" for name, value in report.metrics.items())
    for name, counts in report.sass.items():
        yield f"opcodes of {name[:80]}: {', '.join(f'{opcode} {count}' for opcode, count in counts.items())}"
    yield from report.remarks


def _roof(one: Roofline) -> str:
    took = f"workload {one.workload}: {one.time_ns / 1e3:.4g} us a call"
    if one.share is None:
        return f"{took}; no model or roof to compare with"
    return f"{took}, {one.share:.1%} of the {one.roof} roof"

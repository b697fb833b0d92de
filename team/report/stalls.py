"""The report's account of waiting: what warps spend their time on, by the first and the last profile with counters."""

from protocol import events as ev
from protocol.messages import ProfileReport
from team.evidence.metrics import STALL
from team.report import wording as w
from team.report.markup import Child, Markup, el
from team.report.reading import Story
from team.report.table import section, small, table

_WIDTH, _ROW, _BAR = 1120.0, 46.0, 26.0
_LEFT, _RIGHT = 128.0, 1110.0
_REASONS = 6  # with a colour of their own; the others are one grey rest
_WORDS = 52.0  # pixels below which a segment carries no figure


def stalls_section(story: Story) -> Markup | None:
    """Two bars of shares and a table of what changed; None while no profile has counted stalls."""
    found = _profiles(story)
    if not found:
        return None
    first, last = found[0], found[-1]
    shown = (first,) if last is first else (first, last)
    reasons = _reasons(shown)
    about = (
        "Shares of the time of resident warps, by hardware counters of one call. A selected warp issues, one that is "
        "not selected could have; all others wait."
    )
    names = ("profiled",) if len(shown) == 1 else ("before", "after")
    rows = [(name, report) for name, report in zip(names, shown, strict=True)]
    drawn = el("div", _draw(rows, reasons), class_="scroll")
    return section("What warps wait for", about, _legend(reasons), drawn, _changes(story, shown))


def stalls_of(report: ProfileReport) -> dict[str, float]:
    """Reason -> share."""
    return {name.removeprefix(STALL): value for name, value in report.metrics.items() if name.startswith(STALL)}


def _profiles(story: Story) -> list[ProfileReport]:
    """Profiles of main where there are some with stalls, else of any commit, in order."""
    there = [body.report for _, body in story.of(ev.ProfileReported) if stalls_of(body.report)]
    state = story.state
    mains = {state.started.commit, *(landed.commit for landed in state.landed)}
    mains |= {state.experiments[landed.experiment].commit for landed in state.landed}
    on_main = [report for report in there if report.commit in mains]
    return on_main or there


def _reasons(shown: tuple[ProfileReport, ...]) -> list[str]:
    """The reasons with the largest shares in any of the profiles."""
    most: dict[str, float] = {}
    for report in shown:
        for reason, share in stalls_of(report).items():
            most[reason] = max(share, most.get(reason, 0.0))
    return sorted(most, key=lambda reason: -most[reason])[:_REASONS]


def _draw(rows: list[tuple[str, ProfileReport]], reasons: list[str]) -> Markup:
    bars = [_bar(at, name, report, reasons) for at, (name, report) in enumerate(rows)]
    height = _ROW * len(rows) + 4.0
    title = el("title", "Stall breakdown, before and after")
    return el("svg", title, bars, class_="chart", viewBox=f"0 0 {_WIDTH:.0f} {height:.0f}", role="img")


def _bar(at: int, name: str, report: ProfileReport, reasons: list[str]) -> Markup:
    shares, top = stalls_of(report), _ROW * at + 8.0
    parts: list[Markup] = []
    x = _LEFT
    for index, reason in enumerate([*reasons, "other"]):
        share = shares.get(reason, 0.0) if index < len(reasons) else _rest(shares, reasons)
        width = (_RIGHT - _LEFT) * share
        if width > 0.2:
            parts.append(_segment(index, reason, share, (x, top, width)))
        x += width
    heading = el("text", name, x=_LEFT - 12.0, y=top + 12.0, class_="label end")
    commit = el("text", w.short_commit(report.commit), x=_LEFT - 12.0, y=top + 26.0, class_="tick end")
    return el("g", heading, commit, parts)


def _segment(index: int, reason: str, share: float, place: tuple[float, float, float]) -> Markup:
    x, top, width = place
    look = f"segment {'rest' if index >= _REASONS else f'c{index}'}"
    tip = el("title", f"{_words(reason)}: {w.percent(share, 1)}")
    box = el("rect", tip, x=x, y=top, width=max(0.5, width - 1.5), height=_BAR, rx=2.0, class_=look)
    if width < _WORDS:
        return box
    return el("g", box, el("text", w.percent(share, 0), x=x + 8.0, y=top + 17.5, class_="on"))


def _rest(shares: dict[str, float], reasons: list[str]) -> float:
    return max(0.0, sum(shares.values()) - sum(shares.get(reason, 0.0) for reason in reasons))


def _legend(reasons: list[str]) -> Markup:
    keys = [el("span", _key(f"c{index}"), _words(reason)) for index, reason in enumerate(reasons)]
    return el("div", keys, el("span", _key("rest"), "other"), class_="legend")


def _key(look: str) -> Markup:
    box = el("rect", x=1, y=1, width=12, height=12, rx=2, class_=f"segment {look}")
    return el("svg", box, class_="key", viewBox="0 0 14 14", width=14, height=14, aria_hidden="true")


def _changes(story: Story, shown: tuple[ProfileReport, ...]) -> Markup:
    columns = (
        ("profile", "strong"), ("kernel", "wide"), ("time", "num"), ("position", "fit"), ("SM", "num"), ("DRAM", "num"),
        ("occupancy", "num"), ("unused, by axis", "fit"),
    )  # fmt: skip
    return table(columns, [_change(story, report) for report in shown])


def _change(story: Story, report: ProfileReport) -> list[Child]:
    subject = report.kernels[0] if report.kernels else None
    took = subject.duration_ns if subject else None
    gaps = [f"{axis} {w.percent(gap, 0)}" for axis, gap in report.gaps.model_dump().items() if gap is not None]
    shares = (report.metrics.get(name) for name in ("sm_throughput", "dram_throughput", "occupancy"))
    number = next((one.number for one in story.state.experiments.values() if one.commit == report.commit), 0)
    which = [w.short_commit(report.commit), small(f"#{number}" if number else report.workload)]
    return [
        which,
        w.cut(subject.name, 60) if subject else "-",
        w.page_time(took) if took else "-",
        report.position.value,
        *("-" if share is None else w.percent(share, 0) for share in shares),
        ", ".join(gaps) or "-",
    ]


def _words(reason: str) -> str:
    return reason.replace("_", " ")

"""The report's roofline: measured roofs on logarithmic axes, and each workload's way from the baseline to main."""

import math
from itertools import product

from protocol.messages import Roofline
from team.report import wording as w
from team.report.glyphs import colour_class, glyph, inline_glyph
from team.report.labels import Box, Wish, drawn_label, place
from team.report.markup import Child, Markup, el
from team.report.profile_view import flop_rate
from team.report.reading import Story
from team.report.roofline_scale import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Scale, decades, scale_of
from team.report.table import section, table
from team.report.way import Roofs, Step, Way, way_of

_MOST_LABELS = 12


def roofline_section(story: Story) -> Markup | None:
    """A plot and a table; None without a model of the task, measured roofs and a baseline."""
    way = way_of(story)
    if way is None or not way.steps:
        return None
    counted = {name: steps for name, steps in way.steps.items() if steps[0].line.flops and steps[0].line.intensity}
    about = (
        f"Operations of the task's own model against roofs measured on {w.short_device(way.roofs.device)}. A workload "
        "keeps its intensity; open marks are the baseline, small ones landings, full ones main."
    )
    if way.roofs.device.startswith("cpu"):
        about += (
            " A CPU's roofs are what no kernel exceeds: twice the rates of multiply-adds and of the first-level cache."
        )
    drawn = el("div", _draw(way.roofs, counted), class_="scroll") if counted else None
    return section("Roofline", about, _legend(list(way.steps)) if counted else None, drawn, _table(way))


def _draw(roofs: Roofs, ways: dict[str, tuple[Step, ...]]) -> Markup:
    scale = scale_of(roofs, ways)
    indices = {name: at for at, name in enumerate(ways)}
    labels = place(_wishes(scale, ways), _obstacles(scale, roofs, ways), Box(LEFT, TOP, RIGHT, BOTTOM), _MOST_LABELS)
    return el(
        "svg",
        el("title", f"Roofline of {roofs.device}: {len(ways)} workloads from the baseline to main"),
        _grid(scale),
        _roofs(scale, roofs),
        [_way(scale, indices[name], steps) for name, steps in ways.items()],
        [drawn_label(label) for label in labels],
        class_="chart",
        viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
        role="img",
    )


def _grid(scale: Scale) -> list[Markup]:
    drawn: list[Markup] = []
    for rate in decades(scale.low, scale.high):
        y = scale.y(rate)
        drawn.append(el("line", x1=LEFT, x2=RIGHT, y1=y, y2=y, class_="grid"))
        drawn.append(el("text", _short(rate), x=LEFT - 9.0, y=y + 4.0, class_="tick end"))
    for intensity in decades(scale.left, scale.right):
        x = scale.x(intensity)
        drawn.append(el("line", x1=x, x2=x, y1=TOP, y2=BOTTOM, class_="grid"))
        drawn.append(el("text", f"{intensity:g}", x=x, y=BOTTOM + 20.0, class_="tick mid"))
    drawn.append(el("line", x1=LEFT, x2=RIGHT, y1=BOTTOM, y2=BOTTOM, class_="axis"))
    under = "operations per byte that must move"
    drawn.append(el("text", under, x=(LEFT + RIGHT) / 2, y=BOTTOM + 44.0, class_="tick mid"))
    drawn.append(el("text", "FLOP/s", x=LEFT - 9.0, y=TOP - 6.0, class_="tick end"))
    return drawn


def _roofs(scale: Scale, roofs: Roofs) -> list[Markup]:
    """A slope for all that moves bytes up to its ridge, and the level of the arithmetic behind it."""
    drawn = [part for name, rate in roofs.slopes.items() for part in _slope(scale, roofs, name, rate)]
    if roofs.peak is not None:
        name = f"{roofs.dtype} {flop_rate(roofs.peak)}"
        drawn.append(el("text", name, x=RIGHT - 4.0, y=scale.y(roofs.peak) - 9.0, class_="tick end"))
    return drawn


def _slope(scale: Scale, roofs: Roofs, name: str, rate: float) -> list[Markup]:
    start = max(scale.left, scale.low / rate)
    ridge = scale.right if roofs.peak is None else min(scale.right, roofs.peak / rate)
    if start >= ridge:  # all that is shown lies behind the ridge
        return [] if roofs.peak is None else [_level(scale, LEFT, roofs.peak)]
    end = scale.x(ridge)
    path = f"M{scale.x(start):.1f} {scale.y(rate * start):.1f}L{end:.1f} {scale.y(rate * ridge):.1f}"
    middle = math.sqrt(start * ridge)
    x, y = scale.x(middle), scale.y(rate * middle)
    turn = -math.degrees(math.atan2(y - scale.y(rate * ridge), end - x))
    large = rate >= 1e12
    said = f"{name} {rate / (1e12 if large else 1e9):.3g} {'TB/s' if large else 'GB/s'}"
    words = el("text", said, x=x, y=y - 9.0, class_="tick mid", transform=f"rotate({turn:.1f} {x:.1f} {y:.1f})")
    level = [] if roofs.peak is None else [_level(scale, end, roofs.peak)]
    return [el("path", d=path, class_="main"), *level, words]


def _level(scale: Scale, start: float, peak: float) -> Markup:
    return el("path", d=f"M{start:.1f} {scale.y(peak):.1f}H{RIGHT:.1f}", class_="main")


def _way(scale: Scale, index: int, steps: tuple[Step, ...]) -> Markup:
    places = [scale.place(step) for step in steps]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    line = el("path", d=path, class_=f"trail {colour_class(index)}")
    marks = [
        _mark(index, at, len(steps), place, step) for at, (place, step) in enumerate(zip(places, steps, strict=True))
    ]
    return el("g", line, marks)


def _mark(index: int, at: int, count: int, place: tuple[float, float], step: Step) -> Markup:
    last = at == count - 1
    size = 5.0 if last else 4.2 if at == 0 else 2.4
    number = f"#{step.number} " if step.number else ""
    tip = f"{step.line.workload}\n{number}{step.name}\n{w.nanoseconds(step.line.time_ns)}, {_share_of(step)}"
    return glyph(index, *place, size, at > 0 or (last and count > 1), tip)


def _wishes(scale: Scale, ways: dict[str, tuple[Step, ...]]) -> list[Wish]:
    wishes: list[Wish] = []
    for name, steps in ways.items():
        line = steps[-1].line
        x, y = scale.place(steps[-1])
        wishes.append(Wish(w.cut(name, 26), f" {_part(line)}", x, y, line.flops or 0.0))
    return wishes


def _obstacles(scale: Scale, roofs: Roofs, ways: dict[str, tuple[Step, ...]]) -> list[Box]:
    boxes: list[Box] = []
    for steps in ways.values():
        for step in steps:
            x, y = scale.place(step)
            boxes.append(Box(x - 6.0, y - 6.0, x + 6.0, y + 6.0))
    for at, rate in product(range(120), roofs.slopes.values()):
        x = LEFT + (RIGHT - LEFT) * at / 120
        y = scale.y(roofs.under(scale.left * (scale.right / scale.left) ** (at / 120), rate))
        boxes.append(Box(x - 5.0, y - 4.0, x + 5.0, y + 4.0))
    return boxes


def _legend(names: list[str]) -> Markup:
    marks = [el("span", inline_glyph(at), w.cut(name, 40)) for at, name in enumerate(names[:_MOST_LABELS])]
    return el("div", marks, class_="legend")


def _table(way: Way) -> Markup:
    columns = (
        ("workload", "strong"), ("FLOP/byte", "num"), ("binding roof", "fit"), ("baseline", "num"), ("main", "num"),
        ("achieved", "num"), ("of the roof", "num"),
    )  # fmt: skip
    return table(columns, [_row(steps) for steps in way.steps.values()])


def _row(steps: tuple[Step, ...]) -> list[Child]:
    first, last = steps[0].line, steps[-1].line
    rate = last.achieved_flops_per_s
    return [
        last.workload,
        f"{last.intensity:.3g}" if last.intensity is not None else "-",
        last.roof,
        w.page_time(first.time_ns),
        w.page_time(last.time_ns),
        flop_rate(rate) if rate else "-",
        f"{_part(first)} \N{RIGHTWARDS ARROW} {_part(last)}",
    ]


def _share_of(step: Step) -> str:
    return f"{_part(step.line)} of the {step.line.roof} roof"


def _part(line: Roofline) -> str:
    """The share of the binding roof, with two digits where it is small."""
    share = line.share or 0.0
    return w.percent(share, 0 if share >= 0.1 else 1 if share >= 0.01 else 2)


def _short(rate: float) -> str:
    for scale, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if rate >= scale:
            return f"{rate / scale:g} {prefix}"
    return f"{rate:g}"
